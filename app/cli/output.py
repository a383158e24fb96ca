"""What the command line prints, text of strangers never as a control sequence; and options that commands share."""

import errno
import json
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, TextIO, cast

import typer

from ...indexer.errors import Message, SondeError
from ...indexer.progress import NOTE, Notify, Progress
from ...indexer.wording import per_second, visible


def collections_in(incomplete: str) -> list[str]:
    """Return the paths that begin with `incomplete` and are collections, for the completion of a shell."""
    folder, _, name = incomplete.rpartition("/")
    place = Path(f"{folder}/" if incomplete.startswith("/") else folder or ".")
    begun = [each for each in place.glob("*") if each.name.startswith(name)] if place.is_dir() else []
    found = [each for each in begun if _is_collection(each)]
    if not found:
        found = [inner for each in begun if each.is_dir() for inner in each.iterdir() if _is_collection(inner)]
    lead = "./" if incomplete.startswith("./") else ""
    return sorted(f"{lead}{path}" for path in found)


def _is_collection(folder: Path) -> bool:
    from ..api.functions import lasting_file

    return lasting_file(folder) is not None


CollectionPath = Annotated[
    Path, typer.Argument(metavar="C.sonde", help="The collection.", autocompletion=collections_in)
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda …")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON lines on stdout.")]
Seed = Annotated[int, typer.Option("--seed", help="Random seed.")]
RunName = Annotated[str, typer.Option("--name", metavar="RUN", help="Name of the run.")]
Replace = Annotated[bool, typer.Option("--replace", help="Replace a run of the same name.")]
BiencoderDtype = Annotated[str | None, typer.Option("--dtype", help="auto, float32, bfloat16, float16 or int8 (CPU).")]
TruncateDim = Annotated[
    int | None, typer.Option("--truncate-dim", help="Keep the first N dimensions (Matryoshka models).")
]
QueryPrompt = Annotated[str | None, typer.Option("--query-prompt", help="Text put before every query.")]
DocumentPrompt = Annotated[str | None, typer.Option("--document-prompt", help="Text put before every passage.")]
Names = Annotated[
    str,
    typer.Option(
        "--names", help="How to choose names: terms (words alone), model (embeddings too), or auto: model if available."
    ),
]
LabelsFile = Annotated[Path | None, typer.Option("--labels-file", metavar="F", help="File with one label per line.")]
NamingEngine = Annotated[
    str, typer.Option("--engine", help="How to choose among the labels: similarity, or nli, which reads five texts.")
]
NamerAddress = Annotated[
    str | None,
    typer.Option("--namer", metavar="URL", help="Ask this OpenAI-compatible endpoint for names; sends it texts."),
]
NamerModel = Annotated[str | None, typer.Option("--namer-model", metavar="M", help="The model of --namer to ask.")]
NamerShow = Annotated[
    bool, typer.Option("--namer-show", help="Send nothing; show what --namer would be sent, and keep the usual names.")
]
Mask = Annotated[
    bool,
    typer.Option("--mask", help="Replace personal data, e.g. e-mail addresses by [email]. Names are not replaced."),
]
MaskRegion = Annotated[
    str | None,
    typer.Option("--region", metavar="CODE", help="With --mask: country of phone numbers without a country code."),
]

SNIPPET = 240


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON line."""
    print(json.dumps(value, ensure_ascii=False, default=str))


def say(message: str) -> None:
    """Print a sentence on stderr; work goes on if nobody reads it any more."""
    try:
        print(in_options(message), file=sys.stderr)
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO):  # a pipe whose reader left, a terminal that was closed
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def say_notes(notes: Iterable[str]) -> None:
    """Print each note of the library on stderr, named as such."""
    for note in notes:
        say(NOTE + in_options(note))


def snippet(text: str, length: int = SNIPPET) -> str:
    """Return text as one line of printable characters, shortened at a word."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: length * 4]).split())
    return line if len(line) <= length else line[:length].rsplit(" ", 1)[0] + " …"


SECONDS, MOST_SECONDS, LINES = 0.2, 2.0, 300
"""Between two lines of the same stage: a few at first, in a long run a second or two, so that the file stays small."""


class ProgressFile:
    """Appends what a command tells: a sentence as a JSON string, progress as an object with its time in `at`."""

    def __init__(self, path: Path) -> None:
        """Take the file's path."""
        self._path = path
        self._began = time.monotonic()
        self._last: tuple[str, float] = ("", 0.0)

    def __call__(self, event: Progress | str) -> None:
        """Append an event; progress of one stage every now and then, its end always."""
        if isinstance(event, str):
            self._write(json.dumps(event.marked if isinstance(event, Message) else event))
            return
        now = time.monotonic()
        stage, written = self._last
        apart = min(MOST_SECONDS, max(SECONDS, (now - self._began) / LINES))
        if stage == event.stage and now - written < apart and event.done != event.total:
            return
        self._last = (event.stage, now if event.done else -math.inf)  # what follows a start is told at once
        self._write(json.dumps({**asdict(event), "at": round(time.time(), 2)}))

    def _write(self, line: str) -> None:
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")


PLAIN_SECONDS = 10.0
LEAST_SECONDS = 1.0
"""What a stage must have run before its pace is told."""


@contextmanager
def progress(quiet: bool = False) -> Iterator[Notify]:
    """Show progress and sentences while the block runs; sentences alone when `quiet`.

    Where the variable SONDE_PROGRESS names a file, all of it goes there instead: the web UI shows it.
    """
    if os.environ.get("SONDE_PROGRESS"):
        yield ProgressFile(Path(os.environ["SONDE_PROGRESS"]))
        return
    if quiet or not sys.stderr.isatty():
        yield _Plain(quiet)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}{task.fields[pace]}"),
    )
    console = Console(file=unchanged(sys.stderr))  # the bar moves the cursor
    with Bar(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
        tasks: dict[str, int] = {}
        paces = Paces()

        def show(event: Progress | str) -> None:
            if isinstance(event, str):
                bar.console.print(visible(in_options(event)), markup=False, highlight=False)
                return
            pace = paces(event)
            if event.stage not in tasks:
                tasks[event.stage] = bar.add_task(visible(event.stage), unit=event.unit, pace=pace)
            known = tasks[event.stage]
            bar.update(known, completed=event.done, total=event.total, unit=event.unit, pace=pace)  # type: ignore[arg-type]

        yield show


class Paces:
    """How fast each stage is, and how long it still takes, in words."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[float, int]] = {}

    def __call__(self, event: Progress) -> str:
        """Return ", 120/s, 40 s left", or "" while that cannot be told and when the stage has ended."""
        now = time.monotonic()
        began, before = self._first.setdefault(event.stage, (now, event.done))
        if now - began < LEAST_SECONDS or event.done <= before or _ended(event):
            return ""
        rate = (event.done - before) / (now - began)
        left = f", {max(1, round((event.total - event.done) / rate)):,} s left" if event.total else ""
        return f", {per_second(rate)}/s{left}"


def _ended(event: Progress) -> bool:
    return event.total is not None and event.done >= event.total


class _Plain:
    """Plain lines, the first after some seconds and then at the same distance."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.last = time.monotonic()
        self.paces = Paces()

    def __call__(self, event: Progress | str) -> None:
        if isinstance(event, str):
            say(event)
            return
        now, pace = time.monotonic(), self.paces(event)
        if not event.done and event.total is None:  # a stage that may have nothing to do
            return
        if not self.quiet and now - self.last >= PLAIN_SECONDS:
            self.last = now
            of = f" of {'about ' if event.estimated else ''}{event.total:,}" if event.total else ""
            say(f"{event.stage}: {event.done:,}{of} {event.unit}{pace}")


OTHERS = {
    "k": "-k", "kinds": "--by", "made_of": "--pairs", "ids": "ID", "groups": "GROUP", "query": "QUERY", "texts": "TEXT",
    "clusters": "--cluster", "target_recall": "--recall", "memory_budget": "--memory",
}  # fmt: skip
"""What has another name here than in Python, or none: a positional argument has that of the help text."""


def keep_error(error: SondeError) -> None:
    """Write an error beside the file that SONDE_PROGRESS names, if any: the web UI has its own words for it."""
    events = os.environ.get("SONDE_PROGRESS")
    if not events:
        return
    kept = {"code": error.code, "field": error.field, "value": repr(error.value), "message": error.message.marked}
    with suppress(OSError):
        Path(events).with_name("error.json").write_text(json.dumps(kept), "utf-8")


def option(field: str) -> str:
    """Return the option for an argument of Python: `--reduce-to` for `reduce_to`."""
    return OTHERS.get(field) or f"--{field.replace('_', '-')}"


def in_options(sentence: str) -> str:
    """Return a sentence of the library as the command line says it."""
    return sentence.render(option) if isinstance(sentence, Message) else sentence


def quoted(collection: Path | str) -> str:
    """Return a collection for a command line, also one in an object store: `Path` takes a slash from "s3://"."""
    from ..api.functions import address_of

    return quote(address_of(Path(collection)) or str(collection))


def show_controls() -> None:
    """Let standard output and standard error show control characters, whatever is printed and by whom."""
    sys.stdout = cast(TextIO, VisibleStream(unchanged(sys.stdout)))
    sys.stderr = cast(TextIO, VisibleStream(unchanged(sys.stderr)))


def unchanged(stream: TextIO) -> TextIO:
    """Return the stream that writes control characters as they are: for progress bars, and data for another program."""
    return stream.stream if isinstance(stream, VisibleStream) else stream


class VisibleStream:
    """An output stream that shows control characters in what is written to it.

    Attributes:
        stream: Writes them as they are.
    """

    def __init__(self, stream: TextIO) -> None:
        """Take the stream that writes."""
        self.stream = stream

    def write(self, text: str) -> int:
        """Write text, control characters shown; return the number of characters of the text."""
        self.stream.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Return what else belongs to the stream."""
        return getattr(self.stream, name)
