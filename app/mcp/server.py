"""The MCP server over collections, for assistants (Model Context Protocol)."""

from importlib import metadata
from typing import TYPE_CHECKING, Any

from ...indexer.errors import MissingExtraError
from ...indexer.wording import counted
from ..api import Collection
from .editing import EditingTools

if TYPE_CHECKING:
    from mcp.server import MCPServer


def server_of(*collections: Collection, edit: bool = False) -> "MCPServer[Any]":
    """Return a server with the tools of `Tools`.

    Args:
        collections: What it offers.
        edit: Whether it also offers the tools that edit taxonomies.

    Raises:
        MissingExtraError: The MCP SDK is not installed.
        UsageError: Two collections have the same name.
    """
    try:
        from mcp.types import ToolAnnotations

        from .checked import CheckedServer
    except ImportError:
        raise MissingExtraError("mcp", "all", "`sonde mcp`") from None
    tools = EditingTools(collections)
    server = CheckedServer(
        "sonde", version=metadata.version("sonde"), instructions=_instructions(tools.named()), log_level="WARNING"
    )
    reading = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    for tool in tools.every:
        server.tool(annotations=reading)(tool)
    undoable = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
    for tool in tools.writing if edit else ():
        server.tool(annotations=undoable)(tool)
    return server


def _instructions(collections: dict[str, Collection]) -> str:
    parts = []
    for name, collection in collections.items():
        info = collection.info()
        columns = ", ".join(f"{column} ({kind})" for column, kind in info.fields.items()) or "none"
        parts.append(f"{name}: {counted(info.documents, 'document')}; metadata columns for `where`: {columns}.")
    said = "Search collections of documents by meaning and by words, count and compare them, and look at their groups."
    return " ".join([said, *parts])
