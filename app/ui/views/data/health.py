"""Whether a collection is sound, mending it, and tidying it up."""

import streamlit as st

from .....indexer.build.estimate import duration
from .....indexer.wording import counted
from ...jobs import Job
from ...plain import escape_markdown
from ...shelf import Shelf
from .outcome import findings, told

WORK = {
    "verify": ("Verify", ":material/health_and_safety:", "Compute every digest anew, and check both indexes."),
    "repair": ("Repair", ":material/healing:", "Rebuild indexes from vectors, and lost vectors from texts."),
    "compact": (
        "Compact",
        ":material/compress:",
        "Drop what was deleted, and merge files. Searching goes on meanwhile.",
    ),
}


def show_health(shelf: Shelf, name: str) -> None:
    """Offer to verify, repair and compact, and show what the last check found."""
    busy = shelf.jobs.running(name)
    if busy:
        st.info(escape_markdown(f"{busy.title} is running."))
    for command, (title, icon, what) in WORK.items():
        cells = st.columns([1, 5], vertical_alignment="center")
        if cells[0].button(title, key=f"health-{command}", icon=icon, disabled=busy is not None, width="stretch"):
            shelf.jobs.start(f"{title} {name}", name, [command, str(shelf.path(name)), "--json"])
            st.rerun()
        cells[1].text(what)
    checked = next((job for job in shelf.jobs.of(name) if job.command[0] == "verify" and job.state != "running"), None)
    if checked:
        _finding(shelf, name, checked)


def _finding(shelf: Shelf, name: str, job: Job) -> None:
    st.markdown(f"**The last check** · {duration(job.seconds)}")
    found = findings(job)
    if job.state == "done":
        st.success(" ".join(told(job)))
    elif not found:
        st.error(escape_markdown(job.error))
    else:
        st.warning(f"{counted(len(found), 'problem')}. Repair mends what can be derived.")
        for sentence in found:
            st.text(sentence)
    mended = [other for other in shelf.jobs.of(name) if other.started > job.started and other.command[0] == "repair"]
    if found and any(other.state == "done" for other in mended):
        st.caption("It has been repaired since: verify it again.")
