"""Methods of a collection by name, for calls of `sonde.connect` that have no other route."""

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from fastapi import APIRouter
from fastapi.responses import Response

from ....indexer.errors import NOT_UNICODE, NothingToIndexError, SondeError, UsageError, WriterBusyError, as_text
from ....indexer.ingest import BuildReport
from ....indexer.progress import Notify, silent
from ....indexer.store.runs import Run
from ....indexer.upkeep.info import Info
from ....pipelines.search.results import Results
from ....pipelines.search.settings import SearchSettings
from ...api.arguments import not_bound, settings_from
from ..context import PROBLEMS, Context, Reader, Writer
from ..hosted import Hosted, SearchJob
from ..problems import FAILED, ProblemError
from ..remote import NOTHING, OF_RUNS, READING, WRITING
from ..responses import Result
from ..route import CheckedRoute, json_answer, json_bytes
from ..schemas import Call
from ..wire import decode, encode

router = APIRouter(tags=["methods"], responses=PROBLEMS, route_class=CheckedRoute)

RUNS_BY_NAME = ("Topics", "Map")
NOT_OVER_THE_WIRE = (
    "device",
    "dtype",
    "model",
    "rerank_model",
    "settings",
    "progress",
    "notify",
    "namer",
    "namer_model",
    "namer_show",
)
"""Options that choose what the service loads or calls. Requests may not use them to reach a model, folder or host."""
OWN_RERANKER = "late"
"""The reranker that requests may name, because it needs only the collection's model."""
SEARCHES = ("like", "search", "search_many", "similar")
COUNTS = ("k", "count")
"""Options of reading methods that set how much is returned at once."""
FOLDER = re.compile(r"(?:^|[\s'\"(])(?:/|[A-Za-z]:\\)[\w.]")


@router.post("/read/{method}", response_model=Result, summary="Call a read method of a collection")
async def read(method: str, body: Call, context: Reader) -> Response:
    """Call a method of the Python API that reads; return its result in the format of `sonde.connect`."""
    host = context.hosts.find(body.collection)
    if method == "search":
        return await _searched(host, body, context)
    _check_known(method, (*READING, "rows"))
    if method == "rows":
        body.options.setdefault("count", context.settings.max_k)
    return await context.slow(_answered, host, lambda: host.collection, context, body, method)


@router.post("/read/{opened}/{method}", response_model=Result, summary="Read a topic run or a map")
async def read_run(opened: str, method: str, body: Call, context: Reader) -> Response:
    """Return an attribute of topics or of a map, or the result of one of their methods."""
    _check_of_run(opened, method, writes=False)
    host = context.hosts.find(body.collection)
    return await context.slow(_answered, host, partial(_opened, host, opened, body.run), context, body, method)


@router.post("/write/{method}", response_model=Result, summary="Call a write method of a collection")
async def write(method: str, body: Call, context: Writer) -> Response:
    """Call a method that writes and return its result. The time limit of searches does not apply to writes."""
    _check_known(method, (*WRITING, "map", "put", "topics"))
    host = context.hosts.find(body.collection)
    return await host.writes.run(
        method, lambda notify: _answered(host, lambda: host.collection, context, body, method, notify)
    )


@router.post("/write/{opened}/{method}", response_model=Result, summary="Make or change a topic run or a map")
async def write_run(opened: str, method: str, body: Call, context: Writer) -> Response:
    """Call a method that changes a run; return the name of the created or changed run, or the method's other result."""
    _check_of_run(opened, method, writes=True)
    host = context.hosts.find(body.collection)
    return await host.writes.run(
        f"{opened}/{method}",
        lambda notify: _answered(host, lambda: _opened(host, opened, body.run), context, body, method, notify),
    )


async def _searched(host: Hosted, body: Call, context: Context) -> Response:
    """Run a search in a batch with others that arrive at the same time, and return its results.

    Raises:
        UsageError: A setting or the query is not valid.
    """
    query, settings = await context.quick(_search_of, context, body)
    with _known_failures(host):
        return json_answer(await context.in_time(host.searches.submit(SearchJob(query, settings, _rendered))))


def _search_of(context: Context, body: Call) -> tuple[str, SearchSettings]:
    """Return the query and the settings of a search.

    Raises:
        UsageError: A setting or the query is not valid.
    """
    options = _options(context, body, "search")
    if "query" not in options:
        raise ProblemError(422, "search: missing a required argument: 'query'", "query", code="wrong-call")
    query = as_text(options.pop("query"), "query")
    settings = settings_from(SearchSettings, None, options, "search")
    settings.check()
    return query, settings


def _rendered(results: Results) -> bytes:
    return json_bytes({"result": encode(results)})


def _opened(host: Hosted, opened: str, name: str | None) -> Any:
    """Return the topics or the map of a run, or of the newest run if no name is given."""
    return getattr(host.collection, opened)(name)


def _check_known(method: str, known: Sequence[str]) -> None:
    """Reject a method that is not one of these.

    Raises:
        ProblemError: The method does not exist (404).
    """
    if method not in known:
        raise ProblemError(404, f"there is no method {method!r}; there are: {', '.join(known)}", "method")


def _check_of_run(opened: str, method: str, *, writes: bool) -> None:
    """Reject a method that topics and maps do not have, or what opens neither.

    Raises:
        ProblemError: There is no such method (404).
    """
    if opened not in OF_RUNS:
        raise ProblemError(404, f"{opened!r} opens no run: use {' or '.join(OF_RUNS)}", "opened")
    _check_known(method, OF_RUNS[opened][writes])


def _options(context: Context, body: Call, method: str) -> dict[str, Any]:
    """Return the arguments of a call, after applying the size limits of the other routes.

    Raises:
        ProblemError: An argument is not valid, too large, or not allowed over HTTP (422).
    """
    try:
        json.dumps(body.options, ensure_ascii=False).encode()  # fails for half of a surrogate pair
        options = {name: decode(value) for name, value in body.options.items()}
    except UnicodeEncodeError:
        raise ProblemError(422, f"the text {NOT_UNICODE}", "options", code="not-unicode") from None
    except (ValueError, TypeError, KeyError, RecursionError, SondeError) as error:
        raise ProblemError(422, f"invalid options: {error}", "options") from None
    own = [name for name, value in options.items() if value is None or _own_reranker(name, value)]
    if refused := [name for name in NOT_OVER_THE_WIRE if name in options and name not in own]:
        said = f"{refused[0]} cannot be chosen over HTTP: the service decides it"
        raise ProblemError(422, said, refused[0], code="unknown-option")
    for name, value in options.items():
        _check_size(context, name, value)
    if method not in WRITING:
        _check_counts(context, options, method)
    return options


def _own_reranker(name: str, value: Any) -> bool:
    return name == "rerank_model" and isinstance(value, str) and value == OWN_RERANKER


def _check_size(context: Context, name: str, value: Any) -> None:
    """Reject a list or a text that exceeds the limits of the other routes.

    Raises:
        ProblemError: The value is too long (422).
    """
    if isinstance(value, (list, tuple, np.ndarray)):
        context.check_count(np.size(value) if isinstance(value, np.ndarray) else len(value), name)
    if isinstance(value, str):
        context.check_length(value, name)


def _check_counts(context: Context, options: Mapping[str, Any], method: str) -> None:
    """Reject a call that would return more at once than other routes allow.

    Raises:
        ProblemError: A count is too large (422).
    """
    most = context.settings.max_k
    for name in COUNTS:
        if isinstance(value := options.get(name), int) and value > most:
            raise ProblemError(422, f"{name} is {value:,}; the maximum is {most:,}", name, code="out-of-range")
    page = [options.get("k", SearchSettings().k), options.get("offset", 0)]
    if method in SEARCHES and all(isinstance(each, int) for each in page):
        context.check_page(*page)


def _result(host: Hosted, subject: Any, method: str, options: dict[str, Any], notify: Notify) -> Any:
    """Return an attribute or a method's result as JSON values; for topics and maps, return the run's name."""
    found: Any = getattr(subject, method)
    if callable(found):
        _name_run(host, inspect.signature(found), options)
        told = [name for name in ("progress", "notify") if name in inspect.signature(found).parameters]
        options |= dict.fromkeys(told, notify)
        if method in WRITING and "by" in inspect.signature(found).parameters:
            options.setdefault("by", "HTTP")
        try:
            inspect.signature(found).bind(**options)
        except TypeError as error:
            raise not_bound(method, inspect.signature(found), error, NOT_OVER_THE_WIRE) from None
        found = found(**options)
    if type(found).__name__ in RUNS_BY_NAME:
        return found.name
    if isinstance(found, Info):
        found = replace(found, path=host.name)
    if isinstance(found, BuildReport):
        found = replace(found, skipped_file=None)  # a path on the server
    return encode(list(found) if isinstance(found, Iterator) else found)


def _name_run(host: Hosted, signature: inspect.Signature, options: dict[str, Any]) -> None:
    """Put a run in place of its name, for a method that takes a `Run`: JSON has only the name."""
    wanted = signature.parameters.get("run")
    if wanted is not None and wanted.annotation in (Run, "Run") and isinstance(options.get("run"), str):
        options["run"] = host.collection.run(options["run"]).run


def _answered(
    host: Hosted, of: Callable[[], Any], context: Context, body: Call, method: str, notify: Notify = silent
) -> Response:
    """Return a call's result in JSON; `notify` receives the progress of the method.

    Raises:
        UsageError: An argument is not valid.
        ProblemError: The call fails (409); the message names no folder of this machine.
    """
    with _known_failures(host):
        options = _options(context, body, method)
        return json_answer(json_bytes({"result": _result(host, of(), method, options, notify)}))


@contextmanager
def _known_failures(host: Hosted) -> Iterator[None]:
    """Turn what a call raises into problems.

    Raises:
        ProblemError: The call failed (409), what it names does not exist (404), or the collection is damaged (500).
    """
    try:
        yield
    except (UsageError, WriterBusyError):
        raise
    except NothingToIndexError as error:
        raise ProblemError(409, _without_folders(str(error), host), "documents", code=NOTHING) from None
    except SondeError as error:
        status = {"damaged": 500, "not-found": 404}.get(error.code, 409)
        raise ProblemError(status, _without_folders(str(error), host), error.field, code=error.code) from None


def _without_folders(message: str, host: Hosted) -> str:
    """Replace the collection's folder in a message with its name; replace the message if it names other folders."""
    shown = message.replace(str(host.opening.folder), host.name)
    return FAILED if FOLDER.search(shown) else shown
