"""An MCP server that reports in one line what is wrong with a request, and answers every request that has an id."""

import inspect
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import wraps
from itertools import count
from typing import Annotated, Any, get_args, get_origin

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolResult,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    TextContent,
    Tool,
    ToolAnnotations,
)
from pydantic import Field, ValidationError

from ...indexer.errors import nearest
from ...indexer.wording import existing

WAIT = 2.0
"""Seconds after which a call that still runs says so, and between two such messages."""
NO_REQUEST = "the message is not a valid JSON-RPC 2.0 request: it needs jsonrpc, id, method and, as an object, params"


class CheckedServer(MCPServer[Any]):
    """The SDK's server; it ignores unknown arguments, shows pydantic's messages and leaves bad requests unanswered.

    The SDK also announces prompts and resources, of which there are none here.
    """

    def __init__(self, *given: Any, **settings: Any) -> None:
        """Take the arguments of the SDK's server."""
        super().__init__(*given, **settings)
        handlers = self._lowlevel_server._request_handlers
        for method in [each for each in handlers if each.startswith(("prompts/", "resources/"))]:
            del handlers[method]

    def add_described(self, tool: Callable[..., Any], annotations: ToolAnnotations) -> None:
        """Add a tool; a sentence in an argument's annotation describes the argument."""
        signature = inspect.signature(tool)
        described = [each.replace(annotation=_described(each.annotation)) for each in signature.parameters.values()]

        @wraps(tool)
        def call(**given: Any) -> Any:
            return tool(**given)

        call.__signature__ = signature.replace(parameters=described)  # type: ignore[attr-defined]
        self.add_tool(call, description=inspect.getdoc(tool), annotations=annotations)

    async def list_tools(self) -> list[Tool]:
        """Return the tools with schemas without what says nothing: titles, and that null is allowed."""
        return [
            each.model_copy(update={"input_schema": _tidy(each.input_schema), "output_schema": None})
            for each in await super().list_tools()
        ]

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
            return _compact(await _watched(super().call_tool(name, arguments, context), context))
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(_in_one_line(name, error.__cause__)) from None
            if isinstance(error.__cause__, ToolError):
                raise ToolError(str(error.__cause__)) from None  # without the SDK's "Error executing tool"
            raise

    async def run_stdio_async(self) -> None:
        """Serve one assistant on standard input and output; a line that is not a valid request gets an error."""
        async with stdio_server() as (lines, answers), _answering_all(lines, answers) as (requests, told):
            server = self._lowlevel_server
            await server.run(requests, told, server.create_initialization_options())


async def _watched(call: Awaitable[Any], context: Any) -> Any:
    """Return the result of a call, or raise its error; report that it runs, if the assistant asks for progress."""
    found, wrong = None, list[Exception]()

    async def report() -> None:
        for number in count(1):
            await anyio.sleep(WAIT)
            await context.report_progress(number * WAIT, message=f"running for {number * WAIT:g} s")

    async with anyio.create_task_group() as group:
        if context is not None:
            group.start_soon(report)
        try:
            found = await call
        except Exception as error:  # raised below: a task group would put it into an exception group
            wrong.append(error)
        group.cancel_scope.cancel()
    if wrong:
        raise wrong[0]
    return found


def _described(annotation: Any) -> Any:
    kind, *said = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    return Annotated[(kind, *(Field(description=each) if isinstance(each, str) else each for each in said))]


def _tidy(schema: Any) -> Any:
    """Return a schema of arguments; an argument that may be left out has a default, so null need not be named."""
    if not isinstance(schema, dict):
        return schema
    found = {name: _tidy(value) for name, value in schema.items() if name != "title" or not isinstance(value, str)}
    kinds = [_tidy(each) for each in found.get("anyOf", ())]
    some = [each for each in kinds if each != {"type": "null"}]
    if kinds and len(some) == 1:
        found = {**some[0], **{name: value for name, value in found.items() if name != "anyOf"}}
    elif kinds:
        found["anyOf"] = some
    if "default" in found and found["default"] is None:
        del found["default"]
    return found


def _compact(result: Any) -> Any:
    """Return a result whose text is JSON without blanks: the SDK indents it."""
    if not isinstance(result, CallToolResult) or result.structured_content is None:
        return result
    text = json.dumps(result.structured_content, ensure_ascii=False, separators=(",", ":"))
    return result.model_copy(update={"content": [TextContent(type="text", text=text)]})


def _hint(unknown: str, known: Iterable[str]) -> str:
    names = list(known)
    near = nearest(unknown, names)
    return f": did you mean {near!r}?" if near else f": use {', '.join(names)}" if names else ": it takes none"


def _in_one_line(tool: str, error: ValidationError) -> str:
    found = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in found["loc"])
    if found["type"] == "missing":
        return f"{tool} needs the argument {place!r}"
    return f"{tool}: {place}: {found['msg'][0].lower()}{found['msg'][1:]}"


class _Unanswered:
    """The requests that have no answer yet."""

    def __init__(self) -> None:
        self._ids: Counter[str] = Counter()
        self._less = anyio.Event()

    def note(self, message: object) -> None:
        """Note a message of the assistant: a request, or a notice that it cancels one, which then gets no answer."""
        if isinstance(message, JSONRPCRequest):
            self._ids[str(message.id)] += 1
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self.end((message.params or {}).get("requestId"))

    def end(self, id: object) -> None:
        """Note that a request is over."""
        self._ids[str(id)] = max(0, self._ids[str(id)] - 1)
        self._less.set()
        self._less = anyio.Event()

    async def end_of_all(self) -> None:
        """Wait until every request is over."""
        while any(count > 0 for count in self._ids.values()):
            await self._less.wait()


@asynccontextmanager
async def _answering_all(
    lines: Any, answers: Any
) -> AsyncIterator[tuple[MemoryObjectReceiveStream[SessionMessage], MemoryObjectSendStream[SessionMessage]]]:
    """Yield the messages that are valid, and a stream for their answers.

    Invalid lines are answered here, since the SDK only logs them. The end of the input is passed on when all requests
    are answered: at that end, the SDK stops those that still run.
    """
    sender, receiver = anyio.create_memory_object_stream[SessionMessage](0)
    told, written = anyio.create_memory_object_stream[SessionMessage](0)
    unanswered, reading = _Unanswered(), anyio.CancelScope()

    async def forward() -> None:
        with reading:
            async with sender:
                await read()

    async def read() -> None:
        async for item in lines:
            if isinstance(item, Exception):
                await answers.send(SessionMessage(_refusal(item)))
            else:
                unanswered.note(item.message)
                await sender.send(item)
        await unanswered.end_of_all()

    async def answer() -> None:
        async with answers:
            async for item in written:
                await answers.send(item)
                if isinstance(item.message, JSONRPCResponse | JSONRPCError):
                    unanswered.end(item.message.id)

    async with anyio.create_task_group() as group:
        group.start_soon(forward)
        group.start_soon(answer)
        yield receiver, told
        reading.cancel()
        await told.aclose()


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
    return JSONRPCError(jsonrpc="2.0", id=sound, error=ErrorData(code=INVALID_REQUEST, message=NO_REQUEST))
