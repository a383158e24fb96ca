"""An MCP server over one collection, for assistants (Model Context Protocol, over standard input and output)."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from ..indexer.errors import MissingExtraError, SondeError
from ..indexer.store.fields import json_value
from ..indexer.store.kinds import CLUSTER, TOPIC, RunKind
from ..indexer.wording import counted
from ..pipelines.search.results import Hit, Results
from .api import Collection

if TYPE_CHECKING:
    from mcp.server import MCPServer

MOST_HITS = 50
MOST_TEXTS = 100
SHOWN = 2_000
"""Characters of a passage in a list of hits; `get_document` gives the whole text."""


def serve(collection: Collection) -> None:
    """Answer one assistant over standard input and output until it goes.

    Raises:
        MissingExtraError: The MCP SDK is not installed.
    """
    server_of(collection).run("stdio")


def server_of(collection: Collection) -> "MCPServer[Any]":
    """Return a server with the tools `search`, `similar`, `get_document`, `list_topics`, `list_clusters` and `label`.

    Raises:
        MissingExtraError: The MCP SDK is not installed.
    """
    try:
        from mcp.server import MCPServer
        from mcp.types import ToolAnnotations
    except ImportError:
        raise MissingExtraError("mcp", "mcp", "`sonde mcp`") from None
    server = MCPServer("sonde", instructions=_instructions(collection), log_level="WARNING")
    reading = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    tools = _Tools(collection)
    for tool in (
        tools.search, tools.similar, tools.get_document, tools.list_topics, tools.list_clusters, tools.label,
    ):  # fmt: skip
        server.tool(annotations=reading)(tool)
    return server


def _instructions(collection: Collection) -> str:
    info = collection.info()
    columns = ", ".join(f"{name} ({kind})" for name, kind in info.fields.items()) or "none"
    return (
        f"Search a collection of {counted(info.documents, 'document')} ({collection.path.stem}) by meaning and by "
        f"words. Metadata columns for `where`: {columns}."
    )


class _Tools:
    """The tools; their docstrings are what the assistant reads."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    def search(
        self,
        query: Annotated[str, "What to look for, in words."],
        k: Annotated[int, "Documents to return, 1 to 50."] = 10,
        where: Annotated[str | None, "SQL condition on metadata, such as: year >= 2020"] = None,
        mode: Annotated[str, "hybrid, dense (meaning) or lexical (words)."] = "hybrid",
    ) -> dict[str, Any]:
        """Find the documents that answer a query best; each with its best passage, id, relevance and metadata.

        Relevance is the estimated chance that a document answers, 0 to 1. If every hit is weak, the notes begin with
        "nothing here seems to answer this".
        """
        return _answer(lambda: self._collection.search(query, k=min(k, MOST_HITS), where=where, mode=mode))

    def similar(
        self,
        id: Annotated[str, "A document's id, as search returns it."],
        k: Annotated[int, "Documents to return, 1 to 50."] = 10,
        where: Annotated[str | None, "SQL condition on metadata."] = None,
    ) -> dict[str, Any]:
        """Find the documents most similar to a stored one."""
        return _answer(lambda: self._collection.similar(id, k=min(k, MOST_HITS), where=where))

    def get_document(self, id: Annotated[str, "A document's id, as search returns it."]) -> dict[str, Any]:
        """Return the whole text of a document with its title and metadata."""
        try:
            found = self._collection.get(id)
        except SondeError as error:
            raise _tool_error(str(error)) from None
        metadata = {name: json_value(value) for name, value in found.metadata.items()}
        return {"id": found.id, "title": found.title, "text": found.text, "metadata": metadata}

    def list_topics(self, run: Annotated[str | None, "A run's name; the newest if left out."] = None) -> dict[str, Any]:
        """List the topics that were found in the collection, with their terms."""
        return self._items(TOPIC, run)

    def list_clusters(
        self, run: Annotated[str | None, "A run's name; the newest if left out."] = None
    ) -> dict[str, Any]:
        """List the clusters that were found in the collection, with their terms."""
        return self._items(CLUSTER, run)

    def label(
        self,
        texts: Annotated[list[str], "Texts to be labelled, 100 at most."],
        labels: Annotated[dict[str, str], "Two or more labels, each with a description, which may be empty."],
    ) -> dict[str, Any]:
        """Give each text the label that fits it best, from the labels' names and descriptions alone."""
        if len(texts) > MOST_TEXTS:
            raise _tool_error(f"{len(texts):,} texts; the maximum for one call is {MOST_TEXTS}")
        try:
            found = self._collection.classify(texts, labels)
        except SondeError as error:
            raise _tool_error(str(error)) from None
        return {"labels": [each.label for each in found]}

    def _items(self, kind: RunKind, name: str | None) -> dict[str, Any]:
        try:
            found = self._collection.newest_run(kind, name)
        except SondeError as error:
            raise _tool_error(str(error)) from None
        items = [{"number": item.number, "name": item.name, **item.data} for item in found.items]
        return {"run": found.run.name, "items": items}


def _answer(search: Any) -> dict[str, Any]:
    try:
        results: Results = search()
    except SondeError as error:
        raise _tool_error(str(error)) from None
    return {"notes": list(results.notes), "hits": [_hit(hit) for hit in results]}


def _hit(hit: Hit) -> dict[str, Any]:
    return {
        "id": hit.id,
        "title": hit.title,
        "relevance": round(hit.relevance, 4),
        "weak": hit.weak,
        "score": round(hit.score, 4),
        "scores": {name: round(value, 4) for name, value in asdict(hit.scores).items() if value is not None},
        "passage": hit.passage.text[:SHOWN],
        "metadata": {name: json_value(value) for name, value in hit.metadata.items()},
    }


def _tool_error(message: str) -> Exception:
    from mcp.server.mcpserver.exceptions import ToolError

    return ToolError(message)
