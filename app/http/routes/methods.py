"""Methods of a collection by name: what `sonde.connect` calls where no other route fits."""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from ....indexer.errors import SondeError, UsageError, WriterBusyError
from ....indexer.ingest import BuildReport
from ....indexer.upkeep.info import Info
from ..context import PROBLEMS, Context, Reader, Writer
from ..hosted import Hosted
from ..problems import FAILED, ProblemError
from ..remote import READING, WRITING
from ..schemas import Call
from ..wire import decode, encode

router = APIRouter(tags=["methods"], responses=PROBLEMS)

OF_RUNS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "topic_run": (
        ("by", "documents", "name", "newer", "of", "outliers", "over", "run", "search", "topic", "topics", "tree"),
        ("merge", "reduce", "split", "update"),
    ),
    "map_run": (("name", "newer", "places", "regions", "run"), ("update",)),
}
"""By the method that opens a run: what reads topics or a map, and what changes them."""
RUNS_BY_NAME = ("Topics", "Map")
NOT_OVER_THE_WIRE = ("device", "dtype", "model", "rerank_model", "settings", "progress")
"""Options that choose what the service loads: a request must not make it fetch a model or open a folder."""
COUNTS = ("k", "count")
"""Options of reading methods that say how much is returned at once."""
FOLDER = re.compile(r"(?:^|[\s'\"(])(?:/|[A-Za-z]:\\)[\w.]")


@router.post("/read/{method}", summary="Call a method of a collection that reads")
async def read(method: str, body: Call, context: Reader) -> JSONResponse:
    """Return what the method of the Python API returns, in the form that `sonde.connect` reads."""
    host, work = _work(context, body, method, (*READING, "rows"), lambda host: host.collection)
    return await _answered(host, context.in_thread(work))


@router.post("/read/{opened}/{method}", summary="Read a topic run or a map")
async def read_run(opened: str, method: str, body: Call, context: Reader) -> JSONResponse:
    """Return an attribute of topics or of a map, or what a method of theirs returns."""
    known = OF_RUNS.get(opened, ((), ()))[0]
    host, work = _work(context, body, method, known, lambda host: _opened(host, opened, body.run))
    return await _answered(host, context.in_thread(work))


@router.post("/write/{method}", summary="Call a method of a collection that writes")
async def write(method: str, body: Call, context: Writer) -> JSONResponse:
    """Return what the method returns. A write takes as long as it takes: the time limit of searches is not its own."""
    host, work = _work(context, body, method, (*WRITING, "map", "put", "topics"), lambda host: host.collection)
    async with host.writing:
        return await _answered(host, run_in_threadpool(work))


@router.post("/write/{opened}/{method}", summary="Make or change a topic run or a map")
async def write_run(opened: str, method: str, body: Call, context: Writer) -> JSONResponse:
    """Return the name of the run that was made or changed, or what else the method returns."""
    known = OF_RUNS.get(opened, ((), ()))[1]
    host, work = _work(context, body, method, known, lambda host: _opened(host, opened, body.run))
    async with host.writing:
        return await _answered(host, run_in_threadpool(work))


def _opened(host: Hosted, opened: str, name: str | None) -> Any:
    """Return the topics or the map of a run, the newest if no name is given."""
    return getattr(host.collection, opened)(name)


def _work(
    context: Context, body: Call, method: str, known: Sequence[str], of: Callable[[Hosted], Any]
) -> tuple[Hosted, Callable[[], Any]]:
    """Return the collection and what answers the call.

    Raises:
        ProblemError: There is no such method (404), or an option is not taken over the wire (422).
    """
    if method not in known:
        hint = f"there are: {', '.join(known)}" if known else "there are none"
        raise ProblemError(404, f"there is no method {method!r}; {hint}", "method")
    options = _options(context, body, method)
    host = context.hosts.find(body.collection)
    return host, lambda: _result(host, of(host), method, options)


def _options(context: Context, body: Call, method: str) -> dict[str, Any]:
    """Return the arguments of a call, no larger than the service takes elsewhere.

    Raises:
        ProblemError: One is not valid, too large, or not taken over the wire (422).
    """
    try:
        options = {name: decode(value) for name, value in body.options.items()}
    except (ValueError, TypeError, KeyError, RecursionError, SondeError) as error:
        raise ProblemError(422, f"the options are not valid: {error}", "options") from None
    if refused := [name for name in NOT_OVER_THE_WIRE if name in options]:
        raise ProblemError(422, f"{refused[0]} cannot be chosen over HTTP: the service decides it", refused[0])
    if method == "rows":
        options.setdefault("count", context.settings.max_k)
    for name, value in options.items():
        if isinstance(value, (list, tuple)):
            context.check_count(len(value), name)
        if isinstance(value, str) and len(value) > context.settings.max_text:
            raise ProblemError(
                422, f"{len(value):,} characters, and at most {context.settings.max_text:,} are taken", name
            )
        many = name in COUNTS and method not in WRITING and isinstance(value, int) and value > context.settings.max_k
        if many:
            raise ProblemError(422, f"{name} is {value:,}, and at most {context.settings.max_k:,} are returned", name)
    return options


def _result(host: Hosted, subject: Any, method: str, options: dict[str, Any]) -> Any:
    """Return JSON values of an attribute, or of what a method returns; of topics and maps, the run's name."""
    found: Any = getattr(subject, method)
    if callable(found):
        try:
            inspect.signature(found).bind(**options)
        except TypeError as error:
            raise UsageError(f"{method}: {error}") from None
        found = found(**options)
    if type(found).__name__ in RUNS_BY_NAME:
        return found.name
    if isinstance(found, Info):
        found = replace(found, path=host.name)
    if isinstance(found, BuildReport):
        found = replace(found, skipped_file=None)  # a path of the server
    return encode(list(found) if isinstance(found, Iterator) else found)


async def _answered(host: Hosted, waited: Awaitable[Any]) -> JSONResponse:
    try:
        return JSONResponse({"result": await waited})
    except (UsageError, WriterBusyError):
        raise
    except SondeError as error:
        raise ProblemError(409, _without_folders(str(error), host), error.field, code=error.code) from None


def _without_folders(message: str, host: Hosted) -> str:
    """Return a message that names the collection in place of its folder, and no other folder of the server."""
    shown = message.replace(str(host.collection.path), host.name)
    return FAILED if FOLDER.search(shown) else shown
