"""An MCP server over collections, for assistants (Model Context Protocol)."""

from .server import server_of

__all__ = ["server_of"]
