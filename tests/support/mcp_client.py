"""A client of an MCP server in the same process."""

from typing import Any

import anyio
from mcp import Client


def call(server: Any, tool: str, **arguments: Any) -> Any:
    """Call a tool and return its structured result, or its error message."""

    async def run() -> Any:
        async with Client(server) as client:
            found = await client.call_tool(tool, arguments)
            return str(getattr(found.content[0], "text", "")) if found.is_error else found.structured_content

    return anyio.run(run)
