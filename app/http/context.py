"""What every route needs: collections, limits, guard, and the models that requests share."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from ...pipelines.label import NliJudge, load_nli
from .guard import Guard
from .hosted import Hosts
from .problems import ProblemError
from .schemas import ProblemOut
from .settings import ServeSettings


class Models:
    """The NLI model of the service; requests can name no other, so nobody makes the service fetch one."""

    def __init__(self, device: str) -> None:
        """Take the device that models run on."""
        self._device = device
        self._loading = threading.Lock()
        self._nli: NliJudge | None = None

    def nli(self) -> NliJudge:
        """Return the NLI model.

        Raises:
            SondeError: It is not available.
        """
        with self._loading:
            if self._nli is None:
                self._nli = NliJudge(load_nli(device=self._device))
            return self._nli


T = TypeVar("T")
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemOut, "description": text, "content": {"application/problem+json": {}}}
    for status, text in {
        400: "The body is no JSON.",
        401: "No valid key.",
        403: "The key may only read.",
        404: "There is no such thing.",
        409: "Another process is writing.",
        413: "The body is too large.",
        422: "A field is wrong; `errors` names it.",
        429: "Too many requests.",
        503: "Too much is waiting, or it took too long.",
    }.items()
}


@dataclass(frozen=True, slots=True)
class Context:
    """The parts of a running service."""

    hosts: Hosts
    settings: ServeSettings
    guard: Guard
    models: Models

    async def in_time(self, waited: Awaitable[T]) -> T:
        """Return what is waited for.

        Raises:
            TimeoutError: It takes longer than the service allows.
        """
        return await asyncio.wait_for(waited, self.settings.timeout)

    async def in_thread(self, function: Callable[..., T], *args: Any, **options: Any) -> T:
        """Run what blocks beside the event loop, in time."""
        return await self.in_time(run_in_threadpool(partial(function, *args, **options)))

    def check_text(self, text: str, field: str) -> None:
        """Refuse a text that is too long, blank or no valid Unicode.

        Raises:
            ProblemError: It is (422), with the field's name.
        """
        if len(text) > self.settings.max_text:
            raise ProblemError(
                422, f"{len(text):,} characters, and at most {self.settings.max_text:,} are taken", field
            )
        if not text.strip():
            raise ProblemError(422, "the text is empty", field)
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise ProblemError(422, "the text holds half a surrogate pair", field)

    def check_count(self, count: int, field: str) -> None:
        """Refuse too many texts.

        Raises:
            ProblemError: There are (422).
        """
        if count > self.settings.max_texts:
            raise ProblemError(422, f"{count:,} entries, and at most {self.settings.max_texts:,} are taken", field)


def context(request: Request) -> Context:
    """Return the running service's parts."""
    return request.app.state.context


def reader(request: Request, found: Annotated[Context, Depends(context)]) -> Context:
    """Let a request pass that reads."""
    found.guard.admit(request, "read")
    return found


def writer(request: Request, found: Annotated[Context, Depends(context)]) -> Context:
    """Let a request pass that writes."""
    found.guard.admit(request, "write")
    return found


Reader = Annotated[Context, Depends(reader)]
Writer = Annotated[Context, Depends(writer)]
