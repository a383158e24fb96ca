"""Cards of jobs: progress, result, and what can be done about each."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ....indexer.errors import UsageError
from ....indexer.wording import counted, per_second
from ...api.functions import duration, size, unread_lines
from ...stopped import goes_on
from ..jobs import Job, Jobs
from ..jobs.panel import command_line, show_cancel, show_notes, time_left
from ..page import escape_markdown, failure, link
from ..words import in_places
from ..workspace import Workspace, may_write

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


def model_change(job: Job) -> Report | None:
    """Return what a change of model did; None as long as that is not known."""
    return next((value for value in job.output if isinstance(value, dict) and "switched" in value), None)


def said_of_model(did: Report) -> str:
    """Return what a change of model did, in a sentence."""
    if did["switched"]:
        return f"The collection now uses {did['after']} instead of {did['before']}."
    refusal = (did["comparison"] or {}).get("refusal")
    return f"The collection keeps {did['before']}" + (f": {in_places(refusal)}." if refusal else ".")


def _index(values: list[Report]) -> list[str]:
    report = values[-1]
    counts = [
        f"{counted(report[name], 'document')} {name}"
        for name in ("added", "replaced", "unchanged", "deleted")
        if report[name]
    ]
    sentences = [(", ".join(counts) or "Nothing to do") + "."]
    if report["duplicate_ids"]:
        sentences.append(f"{counted(report['duplicate_ids'], 'id')} repeated: the last row was kept.")
    for name, count in report.get("left_out", {}).items():
        sentences.append(f"{counted(count, 'value')} of {name} did not fit the type: left out.")
    sentences += [f"{line}." for line in unread_lines(report.get("unread_files", {}))]
    if report["cut_tokens"]:
        sentences.append(
            f"{counted(report['cut_tokens'], 'token')} of {counted(report['cut_documents'], 'document')} were cut off."
        )
    return sentences


def _verify(values: list[Report]) -> list[str]:
    del values
    return ["No problems found. All checksums, counts and indexes are correct."]


def _repair(values: list[Report]) -> list[str]:
    return [f"{value['done']}" for value in values] or ["There was nothing to repair."]


def _compact(values: list[Report]) -> list[str]:
    report = values[-1]
    return [
        f"Removed {counted(report['removed'], 'deleted passage')}. "
        f"Merged {counted(report['segments_before'], 'segment')} into {report['segments']:,}. "
        f"On disk: {size(report['disk_before'])} before, {size(report['disk'])} now."
    ]


def _delete(values: list[Report]) -> list[str]:
    return [f"{counted(values[-1]['deleted'], 'document')} deleted."]


_TOLD: dict[str, Callable[[list[Report]], list[str]]] = {
    "index": _index,
    "verify": _verify,
    "repair": _repair,
    "compact": _compact,
    "delete": _delete,
    "model": lambda values: [said_of_model(values[-1])],
}

EARLIER = 20
AGAIN = {
    True: ("Resume", "Continues from there with the same command."),
    False: ("Run again", "Starts the same command from the beginning."),
}
STOPPED = ("cancelled", "killed", "failed")
SHOWN_WORDS = 12
"""Arguments of a command that a card shows; a delete may name thousands of ids."""
KEPT, NOTHING = "What was committed is kept.", "Nothing was stored or changed."


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
            continue  # the Evaluate page shows it
        if job.background:  # nobody waits for it; its page shows what it made
            (current if job.state == "running" else earlier).append(job)
            continue
        newest = job.collection not in seen
        seen.add(job.collection)
        news = job.state != "done" or job.collection == name
        (current if job.state == "running" or (newest and news) else earlier).append(job)
    return current, earlier


def _running_card(jobs: Jobs, job: Job) -> None:
    with st.container(border=True):
        with _line(job.named):
            _command(job)
            if may_write():
                show_cancel(jobs, job, st.container(width="content"))
        st.progress(fraction(job), text=escape_markdown(how_far(job)))
        said = [jobs.shortened(sentence) for sentence in job.said[-2:]]
        if said:
            st.caption(escape_markdown(" · ".join(said)))


def _line(title: str, more: str = "") -> DeltaGenerator:
    """Begin a card: its title on the left, and what is drawn inside on the right."""
    line = st.container(horizontal=True, vertical_alignment="center")
    line.markdown(f"**{escape_markdown(title)}**{more}", width="stretch")
    return line


def how_far(job: Job) -> str:
    """Return what a running job does now and how far it is, as a sentence."""
    progress, pace = job.progress, job.pace
    if progress is None:
        first = "reading files and loading the model" if job.command[:1] == ("index",) else "starting"
        return f"{first}, {duration(job.seconds)} so far"
    if not progress.done:
        return f"{progress.stage}: the first {progress.unit}, {duration(job.seconds)} so far"
    of = f" of {progress.total:,}" if progress.total else ""
    rate = f" · {per_second(pace.rate)} a second" if pace else ""
    return f"{progress.stage}: {progress.done:,}{of} {progress.unit}{rate}{time_left(job)}"


def _ended_card(shelf: Workspace, job: Job, name: str | None) -> None:
    with st.container(border=True):
        with _line(job.named, f" · {duration(job.seconds)}"):
            _command(job)
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
        _ending(job, shelf)
        if job.state == "done" and job.command[:1] == ("index",) and job.collection == name:
            _lead_on(shelf.jobs, job)


def _lead_on(jobs: Jobs, job: Job) -> None:
    """Say what can be done with texts that have just been indexed, a click away."""
    behind = jobs.behind(job.collection)
    if behind:
        st.caption(escape_markdown(f"{behind.title}: running in the background."))
    with st.container(horizontal=True):
        link("search", "Search")
        link("map", "Map")
        link("clusters", "Topics")
        link("labels", "Label")


def _resume(jobs: Jobs, job: Job) -> None:
    """Called before the page is drawn: a run that finds other jobs running starts again and would forget the click."""
    try:
        jobs.resume(job)
    except UsageError as error:
        st.toast(failure(error))


def _ending(job: Job, shelf: Workspace) -> None:
    if job.state == "done":
        for sentence in told(job):
            st.text(sentence)
        show_notes(job)
        _skipped(job)
    elif job.command[0] == "verify" and job.output:
        st.warning(f"Found {counted(len(job.output), 'problem')}. See Health.")
    elif job.command[0] == "model" and (did := model_change(job)):
        st.warning(escape_markdown(f"{said_of_model(did)} Model shows the comparison."))
    elif job.state == "failed":
        st.error(escape_markdown(shelf.jobs.shortened(job.error)))
    else:
        # A first index run that stopped before its first commit leaves no collection.
        kept = KEPT if goes_on(job.command) and job.collection in shelf.names() else NOTHING
        st.warning(f"{'The process was killed' if job.state == 'killed' else 'Cancelled'}. {kept}")


def _skipped(job: Job) -> None:
    count, rows = skipped_rows(job)
    if not count:
        return
    with st.expander(f"{counted(count, 'row')} skipped"):
        st.dataframe(rows, hide_index=True, height=min(38 + 35 * len(rows), 250))
        if count > len(rows):
            st.caption(f"These are the first {len(rows):,}. About shows more.")


def _earlier(jobs: Jobs, earlier: list[Job]) -> None:
    rows: list[dict[str, Any]] = [
        {"Job": job.named, "Result": job.state, "Seconds": round(job.seconds), "Message": _last(job, jobs)}
        for job in earlier[:EARLIER]
    ]
    st.dataframe(rows, hide_index=True)
    if st.button("Clear", key="forget-earlier"):
        for job in earlier:
            jobs.forget(job)
        st.rerun()


def _last(job: Job, jobs: Jobs) -> str:
    if job.state == "failed":
        return jobs.shortened(job.error)
    return " ".join(told(job)) if job.state == "done" else ""


def _command(job: Job) -> None:
    with st.popover("Command", icon=":material/terminal:"):
        st.code(command_line(job, SHOWN_WORDS), language=None, wrap_lines=True)


def _open(job: Job) -> None:
    st.session_state["collection"] = job.collection
