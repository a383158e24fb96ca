"""An MCP server that reports in one line what is wrong with a request, and answers every request that has an id."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from difflib import get_close_matches
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

from ...indexer.wording import existing


class CheckedServer(MCPServer[Any]):
    """The SDK's server; it ignores unknown arguments, shows pydantic's messages and leaves bad requests unanswered."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call a tool.

        Raises:
            ToolError: There is no such tool or argument, a value is of the wrong type, or the tool fails.
        """
        tools = {tool.name: tool for tool in await self.list_tools()}
        if name not in tools:
            raise ToolError(f"there is no tool {name[:80]!r}: {existing(tools)}")
        known = tools[name].input_schema.get("properties", {})
        if unknown := next((each for each in arguments if each not in known), None):
            raise ToolError(f"{name} has no argument {unknown[:80]!r}{_hint(unknown, known)}")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(_in_one_line(name, error.__cause__)) from None
            if isinstance(error.__cause__, ToolError):
                raise ToolError(str(error.__cause__)) from None  # without the SDK's "Error executing tool"
            raise

    async def run_stdio_async(self) -> None:
        """Serve one assistant on standard input and output; a line that is not a valid request gets an error."""
        async with stdio_server() as (lines, answers), _answering_all(lines, answers) as requests:
            server = self._lowlevel_server
            await server.run(requests, answers, server.create_initialization_options())


def _hint(unknown: str, known: Iterable[str]) -> str:
    names = list(known)
    close = get_close_matches(unknown, names, 1)
    return f": did you mean {close[0]!r}?" if close else f": use {', '.join(names)}" if names else ": it takes none"


def _in_one_line(tool: str, error: ValidationError) -> str:
    found = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in found["loc"])
    if found["type"] == "missing":
        return f"{tool} needs the argument {place!r}"
    return f"{tool}: {place}: {found['msg'][0].lower()}{found['msg'][1:]}"


@asynccontextmanager
async def _answering_all(lines: Any, answers: Any) -> AsyncIterator[MemoryObjectReceiveStream[SessionMessage]]:
    """Yield the messages that are valid, and answer the others, which the SDK only logs."""
    sender: MemoryObjectSendStream[SessionMessage]
    sender, receiver = anyio.create_memory_object_stream[SessionMessage](0)

    async def forward() -> None:
        async with sender:
            async for item in lines:
                if isinstance(item, Exception):
                    await answers.send(SessionMessage(_refusal(item)))
                else:
                    await sender.send(item)

    async with anyio.create_task_group() as group:
        group.start_soon(forward)
        yield receiver
        group.cancel_scope.cancel()


def _refusal(error: Exception) -> JSONRPCError:
    """Return the answer to an invalid line: one that is not JSON, or not a message of JSON-RPC 2.0."""
    details = error.errors(include_url=False) if isinstance(error, ValidationError) else []
    if not details or details[0]["type"] == "json_invalid":
        return JSONRPCError(
            jsonrpc="2.0", id=None, error=ErrorData(code=PARSE_ERROR, message="the line is not valid JSON")
        )
    given = next((each["input"] for each in details if isinstance(each["input"], dict) and "id" in each["input"]), {})
    key = given.get("id")
    sound = key if isinstance(key, (int, str)) and not isinstance(key, bool) else None
    said = "the message is not a valid JSON-RPC 2.0 request: it needs jsonrpc, id, method and, as an object, params"
    return JSONRPCError(jsonrpc="2.0", id=sound, error=ErrorData(code=INVALID_REQUEST, message=said))
