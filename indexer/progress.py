"""What a long piece of work tells about itself while it runs, and how it learns that nobody waits for it any more."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stage has come; `total` is None where the end is not known, and may be an estimate."""

    stage: str
    done: int
    total: int | None
    unit: str
    estimated: bool = False


Notify = Callable[[Progress | str], None]
"""Receives progress, and sentences that the user should read."""


def silent(_: Progress | str) -> None:
    """Tell nobody."""


NOTE = "note: "
"""Prefix of a sentence that reports what was done without asking."""


class Noted:
    """Forwards events, and keeps the notes without their prefix."""

    def __init__(self, notify: Notify) -> None:
        self.notes: list[str] = []
        self._notify = notify

    def __call__(self, event: Progress | str) -> None:
        """Take progress or a sentence."""
        if isinstance(event, str) and event.startswith(NOTE):
            self.notes.append(event.removeprefix(NOTE))
        self._notify(event)


class ProgressBar:
    """Shows progress as tqdm bars in a terminal or a notebook, and messages above them.

    Pass it to any method as `progress`. It shows one bar at a time: that of the newest stage.
    """

    def __init__(self) -> None:
        self._stage = ""
        self._bar: Any = None

    def __call__(self, event: Progress | str) -> None:
        """Show a sentence, or how far a stage has come."""
        from tqdm.auto import tqdm

        if isinstance(event, str):
            tqdm.write(event)
            return
        if event.stage != self._stage:
            self.close()
            self._stage = event.stage
            self._bar = tqdm(desc=event.stage, total=event.total, unit=f" {event.unit}")
        self._bar.total = event.total
        self._bar.update(event.done - self._bar.n)
        if event.done == event.total:
            self.close()

    def close(self) -> None:
        """Leave the last bar as it is; nothing if there is none."""
        if self._bar is not None:
            self._bar.close()
        self._stage, self._bar = "", None


class Notice(UserWarning):
    """A sentence for the user about where work is done; Python shows each of them once in a process."""


def tell(sentence: str) -> None:
    """Show a sentence once in this process."""
    warnings.warn(Notice(sentence), stacklevel=2)


@contextmanager
def notices_to(show: Callable[[str], None]) -> Iterator[None]:
    """Within the block, give notices to `show` instead of Python's own display of warnings."""
    with warnings.catch_warnings():
        display = warnings.showwarning

        def showwarning(message: Warning | str, *given: Any, **named: Any) -> None:
            show(str(message)) if isinstance(message, Notice) else display(message, *given, **named)

        warnings.showwarning = showwarning
        yield


class UnwantedError(BaseException):
    """Nobody waits for the result. It is no `Exception`, so that nothing takes it for a failure of the work."""


_wanted: ContextVar[Callable[[], bool]] = ContextVar("wanted")


@contextmanager
def while_wanted(wanted: Callable[[], bool]) -> Iterator[None]:
    """Within the block, let `check_wanted` stop the work as soon as `wanted` returns False."""
    token = _wanted.set(wanted)
    try:
        yield
    finally:
        _wanted.reset(token)


def check_wanted() -> None:
    """Go on if somebody waits for the result; a step of a search that takes milliseconds begins with this.

    Raises:
        UnwantedError: Nobody does.
    """
    wanted = _wanted.get(None)
    if wanted is not None and not wanted():
        raise UnwantedError
