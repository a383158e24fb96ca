"""A collection on another machine, with the methods of a local one."""

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Self

from ...indexer.document import Document, Value
from ...indexer.errors import MissingExtraError, SondeError, Texts, UsageError, as_text, as_texts
from ...indexer.progress import Notify, silent
from ...pipelines.label import Classified, Entailment, Labels, LabelSettings, check_sentences, make_labels
from ...pipelines.search.results import Hit, Match, Passage, Reranking, Results, Scores, Sentence, Why
from ...pipelines.search.settings import SearchSettings
from ..api.arguments import S, settings_from
from .remote import READING, WRITING, RemoteMap, RemoteTopics, options_of, remote_method
from .wire import decode, encode

if TYPE_CHECKING:
    import httpx2
    import numpy as np
    import pandas as pd

    from ...indexer.ingest import BuildReport
    from ..api import Collection as Local
else:
    Local = object

AT_ONCE = 500
"""Documents in one request."""
PAGE = 1_000
"""Documents that are read in one request."""


class RemoteCollection(Local):
    """A collection behind `sonde serve`: the methods of a local one, with the same results and the same errors.

    What is not defined here is made by `remote_method`, with the signature of the local method. Options that choose
    a model or a device are refused: the service decides those. `progress` is not called.
    """

    def __init__(self, http: "httpx2.Client", collection: str | None = None) -> None:
        """Take an open HTTP client whose base is the service, and the collection's name there."""
        self._http = http
        self.collection = collection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    if not TYPE_CHECKING:  # to a type checker, these are the methods of a local collection

        def __getattr__(self, name: str) -> Any:
            method = remote_method(name)
            setattr(type(self), name, method)
            return getattr(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *READING, *WRITING})

    def __len__(self) -> int:
        return self.info().documents

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def search(
        self, query: str, k: int | None = None, *, settings: SearchSettings | None = None, **options: Any
    ) -> Results:
        """Return the k documents that answer the query best; `options` as the service's `/search` takes them.

        Raises:
            UsageError: A setting, the filter or the query is not valid.
            SondeError: The service cannot be reached, refuses the key, or is too busy.
        """
        given = _chosen(SearchSettings, settings, options, "search", k)
        return _results(self._post("/search", {"query": as_text(query, "query"), **given}))

    def similar(
        self, id: str | int, k: int | None = None, *, settings: SearchSettings | None = None, **options: Any
    ) -> Results:
        """Return the k documents most similar to the stored document `id`, itself left out.

        Raises:
            SondeError: There is no such document, or as for `search`.
        """
        given = _chosen(SearchSettings, settings, options, "similar", k)
        return _results(self._post("/similar", {"id": as_text(id, "id"), **given}))

    def like(
        self, text: str, k: int | None = None, *, settings: SearchSettings | None = None, **options: Any
    ) -> Results:
        """Return the k documents most similar to an example text.

        Raises:
            UsageError: The text is empty or a setting is not valid.
            SondeError: As for `search`.
        """
        given = _chosen(SearchSettings, settings, options, "like", k)
        return _results(self._post("/similar", {"text": as_text(text, "text"), **given}))

    def classify(
        self, texts: Texts, labels: Labels, *, settings: LabelSettings | None = None, **options: Any
    ) -> list[Classified]:
        """Label texts that are in no collection; `options` as the service's `/label` takes them.

        Raises:
            UsageError: A text, a label or a setting is not valid.
            SondeError: The service's model is not available, or as for `search`.
        """
        named = {label.name: label.description for label in make_labels(labels, several=True)}
        given = {"texts": as_texts(texts, "text"), "labels": named}
        found = self._post("/label", given | _chosen(LabelSettings, settings, options, "classify"))["texts"]
        return [Classified(tuple(each["labels"]), each["scores"], each["engine"], each["model"]) for each in found]

    def entail(self, premise: str, hypothesis: str) -> Entailment:
        """Say whether a sentence follows from another.

        Raises:
            UsageError: A sentence is empty.
            SondeError: As for `classify`.
        """
        check_sentences(premise, hypothesis)
        return Entailment(**self._call("POST", "/entail", json={"premise": premise, "hypothesis": hypothesis}))

    def embed(self, texts: Texts, *, query: bool = False) -> "np.ndarray":
        """Return float32 [n, d], the texts' vectors from the service's model.

        Raises:
            SondeError: As for `search`.
        """
        import numpy as np

        return np.array(self._post("/embed", {"texts": as_texts(texts, "text"), "query": query})["vectors"], np.float32)

    def put(self, documents: Sequence[Document | Mapping[str, Any]], *, progress: Notify = silent) -> "BuildReport":
        """Add documents or replace those of the same id; see the local method. Each 500 are one commit.

        Raises:
            UsageError: A document cannot be used; those of earlier slices of 500 are then written.
            SondeError: The key may only read, another process is writing, or as for `search`.
        """
        if isinstance(documents, (str, bytes, Mapping)):
            raise UsageError(f"{reprlib.repr(documents)} is not a list of documents: give [{{'id': …, 'text': …}}, …]")
        parts = [documents[at : at + AT_ONCE] for at in range(0, len(documents), AT_ONCE)] or [[]]
        return reduce(_together, (self.call("write/put", {"documents": list(part)}) for part in parts))

    def rows(self, *, vectors: bool = False, start: int = 0, count: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield every document as a dictionary, a page of 1,000 at a time; see the local method.

        Raises:
            SondeError: As for `search`.
        """
        end = None if count is None else start + count
        while end is None or start < end:
            page = PAGE if end is None else min(PAGE, end - start)
            found = self.call("read/rows", {"vectors": vectors, "start": start, "count": page})
            yield from found
            if len(found) < page:
                return
            start += page

    def to_pandas(self, *, vectors: bool = False) -> "pd.DataFrame":
        """Return all documents with their metadata as a DataFrame.

        Raises:
            MissingExtraError: pandas is not installed.
            SondeError: As for `search`.
        """
        from ...indexer.store.export import frame_of

        return frame_of(self.rows(vectors=vectors))

    def topics(self, name: str = "topics", **options: Any) -> "RemoteTopics":
        """Find topics, keep them as a run, and return them; see the local method."""
        return RemoteTopics(self, self._made("topics", name, options))

    def topic_run(self, name: str | None = None, *, progress: Notify = silent) -> "RemoteTopics":
        """Return the topics of a run that is kept, the newest if no name is given."""
        return RemoteTopics(self, self.call("read/topic_run/name", {}, name))

    def map(self, name: str = "map", **options: Any) -> "RemoteMap":
        """Lay out the documents on a plane, keep that as a run, and return it; see the local method."""
        return RemoteMap(self, self._made("map", name, options))

    def map_run(self, name: str | None = None) -> "RemoteMap":
        """Return a map that is kept, the newest if no name is given."""
        return RemoteMap(self, self.call("read/map_run/name", {}, name))

    def call(self, method: str, options: Mapping[str, Any], run: str | None = None) -> Any:
        """Return what a method of the service returns, as the same types.

        Args:
            method: "read/NAME" or "write/NAME", or with the method that opens a run before the name.
            options: Its arguments by name.
            run: Name of the run, for methods of topics and maps.
        """
        body = {"options": {name: encode(value) for name, value in options.items()}} | ({"run": run} if run else {})
        return decode(self._post(f"/{method}", body)["result"])

    def _made(self, method: str, name: str, options: dict[str, Any]) -> str:
        return self.call(f"write/{method}", {"name": name, **options_of(options)})

    def _named(self) -> dict[str, Any]:
        return {"collection": self.collection} if self.collection else {}

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self._call("POST", path, json=self._named() | body)

    def _call(self, method: str, path: str, **given: Any) -> Any:
        import httpx2

        try:
            answer = self._http.request(method, path, **given)
        except httpx2.HTTPError as error:
            raise SondeError(f"{self._http.base_url} cannot be reached: {error}") from None
        if answer.is_success:
            return answer.json()
        try:
            problem = answer.json()
            detail, code = problem["detail"], problem.get("code")
            field = (problem.get("errors") or [{}])[0].get("field")
        except (ValueError, KeyError, TypeError, AttributeError):
            detail, code, field = f"{self._http.base_url} answers with status {answer.status_code}", None, None
        kind = UsageError if answer.status_code == 422 else SondeError
        raise kind(detail, code=code, field=field)


def connect(
    url: str, *, key: str | None = None, collection: str | None = None, timeout: float = 60.0
) -> RemoteCollection:
    """Open a collection that `sonde serve` serves.

    Args:
        url: The service, "http://127.0.0.1:8080".
        key: An API key, where the service asks for one.
        collection: Its name there; may be left out where there is only one.
        timeout: Seconds to wait for an answer.

    Raises:
        MissingExtraError: httpx2 is not installed.
    """
    try:
        import httpx2
    except ImportError:
        raise MissingExtraError("httpx2", "serve", "`sonde.connect`") from None
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return RemoteCollection(httpx2.Client(base_url=url, headers=headers, timeout=timeout), collection)


def _chosen(
    kind: type[S], settings: S | None, options: dict[str, Any], method: str, k: int | None = None
) -> dict[str, Any]:
    """Return the fields that differ from their defaults: the service knows those, and not every field."""
    given = settings_from(kind, settings, options if k is None else {"k": k, **options}, method)
    given.check()  # type: ignore[attr-defined]
    values = {field.name: getattr(given, field.name) for field in fields(kind)}  # type: ignore[arg-type]
    default = kind()
    return {name: value for name, value in values.items() if value != getattr(default, name)}


def _together(one: "BuildReport", two: "BuildReport") -> "BuildReport":
    """Return what two commits did together."""
    sums = {
        each.name: getattr(one, each.name) + getattr(two, each.name)
        for each in fields(one)
        if isinstance(getattr(one, each.name), int | float)
    }
    return replace(two, **sums, skipped_rows=(*one.skipped_rows, *two.skipped_rows))


def _results(found: dict[str, Any]) -> Results:
    hits = tuple(_hit(hit) for hit in found["hits"])
    notes = tuple(found["notes"])
    times = {"seconds": found["seconds"], "loading_seconds": found.get("loading_seconds", 0.0)}
    return Results(found["query"], found["mode"], hits, found["strategy"], notes, **times)


def _hit(values: dict[str, Any]) -> Hit:
    metadata: dict[str, Value] = values["metadata"]
    known = {field.name for field in fields(Scores)}
    scores = Scores(**{name: value for name, value in values["scores"].items() if name in known})
    passage, why, second = Passage(**values["passage"]), values.get("why"), values.get("reranker")
    return Hit(
        values["rank"], values["id"], values["score"], values["title"], values["text"], metadata, scores, passage,
        _why(why) if why else None, Reranking(**second) if second else None,
    )  # fmt: skip


def _why(values: dict[str, Any]) -> Why:
    terms, title_terms = (tuple((start, end) for start, end in values[name]) for name in ("terms", "title_terms"))
    sentences = tuple(Sentence(**sentence) for sentence in values["sentences"])
    return Why(terms, title_terms, sentences, tuple(Match(**match) for match in values.get("matches", ())))
