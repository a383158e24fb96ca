"""Cards of jobs: progress, result, and what can be done about each."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from .....indexer.errors import UsageError
from .....indexer.wording import counted, per_second
from ....api.functions import duration, size
from ....stopped import goes_on
from ...jobs import Job, Jobs
from ...jobs.panel import command_line
from ...page import escape_markdown, failure
from ...workspace import Workspace, may_write

Report = Mapping[str, Any]


def told(job: Job) -> list[str]:
    """Return what a job that is done has to say; nothing where its output is not known."""
    values: list[Report] = [value for value in job.output if isinstance(value, dict)]
    tell = _TOLD.get(job.command[0] if job.command else "")
    if tell is None:
        return ["Done."]
    try:
        return tell(values)
    except (KeyError, TypeError, ValueError, IndexError):
        return ["Done."]


def skipped_rows(job: Job) -> tuple[int, list[dict[str, str]]]:
    """Return how many rows an index run skipped, and the first of them with the reasons."""
    report = next((value for value in job.output if isinstance(value, dict) and "skipped_rows" in value), None)
    if report is None:
        return 0, []
    rows = [{"Where": str(row["origin"]), "Why": str(row["reason"])} for row in report["skipped_rows"]]
    return int(report["skipped"]), rows


def findings(job: Job) -> list[str]:
    """Return what `sonde verify` found, a sentence each."""
    return [
        f"{value['part']}: {value['problem']}"
        for value in job.output
        if isinstance(value, dict) and {"part", "problem"} <= value.keys()
    ]


def _index(values: list[Report]) -> list[str]:
    report = values[-1]
    counts = [
        f"{counted(report[name], 'document')} {name}"
        for name in ("added", "replaced", "unchanged", "deleted")
        if report[name]
    ]
    sentences = [(", ".join(counts) or "Nothing to do") + "."]
    if report["duplicate_ids"]:
        sentences.append(f"{counted(report['duplicate_ids'], 'id')} came again: the last one was kept.")
    if report["cut_tokens"]:
        sentences.append(
            f"{counted(report['cut_tokens'], 'token')} of {counted(report['cut_documents'], 'document')} cut off."
        )
    return sentences


def _verify(values: list[Report]) -> list[str]:
    del values
    return ["Everything is sound: every digest, every count, and both indexes."]


def _repair(values: list[Report]) -> list[str]:
    return [f"{value['done']}" for value in values] or ["There was nothing to repair."]


def _compact(values: list[Report]) -> list[str]:
    report = values[-1]
    return [
        f"{counted(report['removed'], 'tombstone')} removed, {counted(report['segments_before'], 'segment')} became "
        f"{report['segments']:,}, vectors {size(report['bytes_before'])} became {size(report['bytes'])}."
    ]


def _delete(values: list[Report]) -> list[str]:
    return [f"{counted(values[-1]['deleted'], 'document')} deleted."]


_TOLD: dict[str, Callable[[list[Report]], list[str]]] = {
    "index": _index,
    "verify": _verify,
    "repair": _repair,
    "compact": _compact,
    "delete": _delete,
}

EARLIER = 20
AGAIN = {
    True: ("Resume", "The same command goes on from there."),
    False: ("Run again", "The same command starts from the beginning."),
}
NEWS = 600.0
"""Seconds for which the end of a job is shown whatever collection is looked at."""
STOPPED = ("cancelled", "killed", "failed")
SHOWN_WORDS = 12
"""Arguments of a command that a page shows; a delete may name thousands of ids."""
KILLED = "Its process was killed. What was committed stays."


def show_job_cards(shelf: Workspace, jobs: list[Job], name: str | None) -> None:
    """Show running jobs, the newest of each collection that has ended, until it is dismissed, and earlier ones."""
    current, earlier = _sorted(jobs, name)
    for job in current:
        if job.state == "running":
            _running_card(shelf.jobs, job)
        elif may_write():
            _ended_card(shelf, job, name)
    if earlier and may_write():
        with st.expander(f"Earlier jobs ({len(earlier)})"):
            _earlier(shelf.jobs, earlier)


def fraction(job: Job) -> float:
    """Return how much of its newest stage a job has done, 0 to 1; 0 while its end is not known."""
    progress = job.progress
    return min(1.0, progress.done / progress.total) if progress and progress.total else 0.0


def _sorted(jobs: list[Job], name: str | None) -> tuple[list[Job], list[Job]]:
    """Return the jobs to show as cards, and the others."""
    current: list[Job] = []
    earlier: list[Job] = []
    seen: set[str] = set()
    for job in jobs:
        if job.is_result and job.state == "done":
            continue  # the page Evaluate shows it
        newest = job.collection not in seen
        seen.add(job.collection)
        news = job.state != "done" or job.collection == name or time.time() - job.started - job.seconds < NEWS
        (current if job.state == "running" or (newest and news) else earlier).append(job)
    return current, earlier


def _running_card(jobs: Jobs, job: Job) -> None:
    with st.container(border=True):
        with _line(job.title):
            _command(jobs, job)
            if may_write() and st.button("Cancel", key=f"cancel-{job.id}", icon=":material/stop_circle:"):
                with st.spinner("Stopping …"):
                    jobs.cancel(job)
                st.rerun()
        st.progress(fraction(job), text=escape_markdown(_how_far(job)))
        said = [jobs.shortened(sentence) for sentence in job.said[-2:]]
        if said:
            st.caption(escape_markdown(" · ".join(said)))


def _line(title: str, more: str = "") -> DeltaGenerator:
    """Begin a card: its title on the left, and what is drawn inside on the right."""
    line = st.container(horizontal=True, vertical_alignment="center")
    line.markdown(f"**{escape_markdown(title)}**{more}", width="stretch")
    return line


def _how_far(job: Job) -> str:
    progress, pace = job.progress, job.pace
    if progress is None:
        return f"starting, {duration(job.seconds)} so far"
    of = f" of {progress.total:,}" if progress.total else ""
    rate = f" · {per_second(pace.rate)} a second" if pace else ""
    left = f" · about {duration(pace.left)} left" if pace and pace.left else ""
    return f"{progress.stage}: {progress.done:,}{of} {progress.unit}{rate}{left}"


def _ended_card(shelf: Workspace, job: Job, name: str | None) -> None:
    with st.container(border=True):
        with _line(job.title, f" · {duration(job.seconds)}"):
            _command(shelf.jobs, job)
            if job.state == "done" and job.collection != name and job.collection in shelf.names():
                st.button("Open", key=f"open-{job.id}", icon=":material/folder_open:", on_click=_open, args=[job])
            if job.state in STOPPED:
                label, what = AGAIN[goes_on(job.command)]
                st.button(
                    label, key=f"resume-{job.id}", icon=":material/play_arrow:", help=what,
                    on_click=_resume, args=[shelf.jobs, job],
                )  # fmt: skip
            st.button(
                "Dismiss", key=f"forget-{job.id}", icon=":material/close:", on_click=shelf.jobs.forget, args=[job]
            )
        _ending(job, shelf.jobs)


def _resume(jobs: Jobs, job: Job) -> None:
    """Called before the page is drawn: a run that finds other jobs running starts again and would forget the click."""
    try:
        jobs.resume(job)
    except UsageError as error:
        st.toast(failure(error))


def _ending(job: Job, jobs: Jobs) -> None:
    if job.state == "done":
        for sentence in told(job):
            st.text(sentence)
        _skipped(job)
    elif job.command[0] == "verify" and job.output:
        st.warning(f"Found {counted(len(job.output), 'problem')}: see Health.")
    elif job.state == "failed":
        st.error(escape_markdown(jobs.shortened(job.error)))
    else:
        kept = "What was committed stays." if goes_on(job.command) else "Nothing was stored or changed."
        st.warning(KILLED if job.state == "killed" else f"Cancelled. {kept}")


def _skipped(job: Job) -> None:
    count, rows = skipped_rows(job)
    if not count:
        return
    with st.expander(f"{counted(count, 'row')} skipped"):
        st.dataframe(rows, hide_index=True, height=min(38 + 35 * len(rows), 250))
        if count > len(rows):
            st.caption(f"These are the first {len(rows):,}. About shows more of them.")


def _earlier(jobs: Jobs, earlier: list[Job]) -> None:
    rows: list[dict[str, Any]] = [
        {"Job": job.title, "Ended": job.state, "Seconds": round(job.seconds), "Said": _last(job, jobs)}
        for job in earlier[:EARLIER]
    ]
    st.dataframe(rows, hide_index=True)
    if st.button("Forget these", key="forget-earlier"):
        for job in earlier:
            jobs.forget(job)
        st.rerun()


def _last(job: Job, jobs: Jobs) -> str:
    if job.state == "failed":
        return jobs.shortened(job.error)
    return " ".join(told(job)) if job.state == "done" else ""


def _command(jobs: Jobs, job: Job) -> None:
    words = [*job.command[:SHOWN_WORDS], *(["…"] if len(job.command) > SHOWN_WORDS else [])]
    with st.popover("Command", icon=":material/terminal:"):
        st.code(jobs.shortened(command_line(words)), language=None, wrap_lines=True)


def _open(job: Job) -> None:
    st.session_state["collection"] = job.collection
