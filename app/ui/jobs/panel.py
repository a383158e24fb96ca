"""Jobs as a page shows them: started, watched while they run, and how they ended."""

import shlex
import time
from collections.abc import Collection as Known
from collections.abc import Sequence
from hashlib import sha256

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ....indexer.files import write_durably
from ....indexer.store.kinds import RunKind
from ....indexer.wording import counted
from ...api import Collection
from ...api.functions import duration
from ..page import escape_markdown, shut_popovers
from ..words import without_folders
from ..workspace import SUFFIX, Workspace, may_write
from . import Job, Jobs

WATCHED = "_watched"
EVERY = 1.0
"""Seconds between two looks at a running job."""
TOLD = 20.0
"""Seconds for which a page says how a job ended: on a busy machine it is drawn twice at once, and must say it twice."""


def name_of(collection: Collection) -> str:
    """Return the name under which the shelf knows a collection."""
    return collection.path.name.removesuffix(SUFFIX)


ON_DEVICE = ("check", "cluster", "compact", "duplicates", "label", "map", "repair", "taxonomy", "topics", "watch")
"""Commands that take the device of the web UI."""


def start(shelf: Workspace, collection: Collection, title: str, command: str, *arguments: str) -> None:
    """Start `sonde COMMAND C.sonde ARGUMENTS…` as a job, and draw the page again; a command can have two words.

    Raises:
        UsageError: Another job works on this collection.
    """
    words, device = command.split(), shelf.settings.device
    if device != "auto" and words[0] in ON_DEVICE and "--device" not in arguments:
        arguments = (*arguments, "--device", device)
    job = shelf.jobs.start(title, name_of(collection), (*words, str(collection.path), *arguments))
    st.session_state[WATCHED] = job.id
    shut_popovers()
    st.rerun()


def show_work(shelf: Workspace, collection: Collection) -> bool:
    """Show the job that works on a collection, or how the one that this session watched ended.

    Returns whether one runs beside which no other may start; one in the background is no such job.

    While one runs, a part of the page looks again every second, and draws all of it again at the end.
    """
    busy = shelf.jobs.running(name_of(collection))
    with st.container(key="work"):  # always there, so that what follows keeps its place, and a popover stays open
        if busy is not None:
            st.session_state[WATCHED] = busy.id
            st.fragment(_watch, run_every=EVERY)(shelf, busy.id)
            return True
        ended = shelf.jobs.find(st.session_state.get(WATCHED, ""))
        if ended is not None and ended.collection == name_of(collection) and _is_news(ended):
            _tell(shelf, ended)
        if (behind := shelf.jobs.behind(name_of(collection))) is not None:
            st.fragment(_watch, run_every=EVERY)(shelf, behind.id)
    return False


def _is_news(job: Job) -> bool:
    first = st.session_state.setdefault(f"_told:{job.id}", time.monotonic())
    return time.monotonic() - first < TOLD


def may_start(running: bool) -> bool:
    """Return whether this session may start work now."""
    return may_write() and not running


def free_name(name: str, taken: Known[str]) -> str:
    """Return the name, or the first of NAME-2, NAME-3, … that nothing has."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    return found


NO_NAME = "Type a name."
NAME_TAKEN = "Type another name, or tick the box to replace the run."


def ask_name(collection: Collection, label: str, name: str, kind: RunKind, key: str) -> tuple[str, list[str], str]:
    """Ask for a new run's name; a run that has it already is replaced only where a checkbox says so.

    Args:
        collection: Where the run is written.
        label: The label of the text box.
        name: What is proposed, with a number behind it if it is taken.
        kind: The new run's kind.
        key: Begins the keys of the widgets.

    Returns:
        The name, "" as long as the run cannot be started; the options of the command that replaces a run; and what is
        missing in the first case, "" in the other.
    """
    runs = collection.uncounted_runs(kind)
    taken = {run.name for run in runs}
    first = free_name(name, taken)
    box = f"{key}:{first}"  # a new proposal is a new box: the old one would keep what it showed
    given = st.text_input(label, first, key=box).strip()
    known = next((run for run in runs if run.name == given and run.complete), None)
    if known is None:
        return given, [], "" if given else NO_NAME
    st.text(
        f"The {kind} run {given} already has this name: {counted(known.documents, 'document')}, "
        f"created {known.created[:16].replace('T', ' ')} UTC."
    )
    free = free_name(given, taken)
    st.button(
        f"Use {escape_markdown(free)}", key=f"{key}_free", type="tertiary",
        on_click=st.session_state.__setitem__, args=[box, free],
    )  # fmt: skip
    return (given, ["--replace"], "") if _replace(given, key) else ("", [], NAME_TAKEN)


def _replace(name: str, key: str) -> bool:
    label = f"Replace the run '{escape_markdown(name)}'"
    return st.checkbox(label, key=f"{key}_replace:{name}", help="You may lose the names that you gave to its groups.")


def ask_replace(name: str, key: str) -> list[str]:
    """Ask whether a run may be replaced; return the options of the command that does, none as long as it may not."""
    return ["--replace"] if _replace(name, key) else []


def labels_file(shelf: Workspace, lines: Sequence[str]) -> str:
    """Write labels, one a line, to a file beside the jobs, where one that goes on finds it, and return its path."""
    folder = shelf.jobs.folder / "labels"
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{line}\n" for line in lines)
    path = folder / f"{sha256(text.encode()).hexdigest()[:16]}.txt"
    write_durably(path, lambda stream: stream.write(text.encode()))
    return str(path)


def command_line(job: Job, most: int | None = None) -> str:
    """Return what a user would type for a job; collections and uploaded files are named without the server's folders.

    Args:
        job: The job.
        most: Arguments to return at most; all if None.
    """
    words = [without_folders(word, job.folder.parent) for word in job.command[:most]]
    words += ["…"] if len(words) < len(job.command) else []
    return shlex.join(["sonde", *(word.rsplit("/", 1)[-1] if word.endswith(SUFFIX) else word for word in words)])


def _watch(shelf: Workspace, id: str) -> None:
    job = shelf.jobs.find(id)
    if job is None or job.state != "running":
        st.rerun()
    progress = job.progress
    with st.container(border=True):
        left, right = st.columns([5, 1], vertical_alignment="center")
        said = progress.stage if progress else (job.said[-1] if job.said else "starting")
        share = min(1.0, progress.done / progress.total) if progress and progress.total else 0.0
        counts = f" · {progress.done:,} of {progress.total:,} {progress.unit}" if progress and progress.total else ""
        left.progress(share, escape_markdown(f"{job.named}: {said}{counts}{time_left(job)}"))
        if may_write():
            show_cancel(shelf.jobs, job, right)


def time_left(job: Job) -> str:
    """Return about how long the present stage of a job still takes, as the end of a line; "" while it is not known."""
    pace = job.pace
    return f" · about {duration(pace.left)} left" if pace and pace.left else ""


def show_cancel(jobs: Jobs, job: Job, place: DeltaGenerator) -> None:
    """Draw the button that stops a job.

    What it does is called before the page is drawn: a page that looks again at that moment would forget the click.
    """
    stopping = job.asked_to_stop
    place.button(
        "Stopping …" if stopping else "Cancel", key=f"cancel-{job.id}", icon=":material/stop_circle:",
        disabled=stopping, on_click=jobs.ask_to_stop, args=[job],
    )  # fmt: skip


MOST_NOTES = 5


def show_notes(job: Job) -> None:
    """Show what a job noted, a line each; they may quote texts, so they are never Markdown."""
    for note in job.notes[:MOST_NOTES]:
        st.text(f"Note: {note}")
    if len(job.notes) > MOST_NOTES:
        st.text(f"and {len(job.notes) - MOST_NOTES:,} more in the output")


def _tell(shelf: Workspace, job: Job) -> None:
    title = escape_markdown(job.named)
    said, command = st.columns([5, 1], vertical_alignment="center")
    with command.popover("Command", help="The same from the command line", width="stretch"):
        st.code(command_line(job), language=None, wrap_lines=True)
    if job.state == "done":
        said.success(f"{title}: done", icon=":material/check:")
        if not job.is_result:  # its page says them with the figures
            with said:
                show_notes(job)
    elif job.state == "cancelled":
        said.info(f"{title} was cancelled. Earlier results are unchanged.")
    else:
        said.error(f"{title} failed: {escape_markdown(shelf.jobs.shortened(job.error))}")
