"""Mistakes in a collection's texts and labels: what to look for, and the documents that were found."""

import streamlit as st

from ....indexer.store.kinds import CHECK
from ....indexer.wording import counted
from ...api import Collection
from ...api.functions import among
from ..jobs.panel import ask_name, may_start, start
from ..page import escape_markdown, link, show_members, submitted
from ..workspace import Workspace
from .kept import show_kept

NONE = "none"


def show_checks(shelf: Workspace, name: str) -> None:
    """Offer a check, and show what the newest ones found."""
    nothing = (
        "Not checked yet",
        "A check finds doubtful labels, duplicates, outliers, texts in other languages, boilerplate and personal data.",
        ":material/fact_check:",
    )
    show_kept(shelf, name, CHECK, nothing, _new, _show)


def _new(shelf: Workspace, collection: Collection, running: bool) -> None:
    columns = [NONE, *(field for field, type in collection.fields().items() if type != "list")]
    label = st.selectbox(
        "Column with labels", columns, key="check-label", help="The check looks for labels that may be wrong."
    )
    split = st.selectbox(
        "Column with splits",
        columns,
        key="check-split",
        help="The check looks for texts that are in more than one split.",
    )
    region = st.text_input(
        "Country of phone numbers", key="check-region", placeholder="US", autocomplete="off",
        help="Two letters. Without it, only numbers with + and a country code are found.",
    ).strip()  # fmt: skip
    name, replace, missing = ask_name(collection, "Name", CHECK.name, CHECK, "check-name")
    given = {"--label": label, "--split": split, "--region": region}
    options = [word for option, value in given.items() if value not in ("", NONE) for word in (option, value)]
    if submitted("Check", missing, key="check-start", type="primary", disabled=not may_start(running)):
        start(shelf, collection, f"Check '{name}'", "check", "--name", name, *options, *replace)


def _show(collection: Collection, name: str) -> None:
    found = collection.run(name, CHECK)
    report = found.run.report
    st.caption(
        f"Findings in {report['found']:,} of {counted(report['documents'], 'document')} · {found.run.seconds:,.1f} s"
    )
    changed = (found.run.documents, len(collection)) != (report["found"], report["documents"])
    if changed:
        st.caption(f"{counted(found.run.documents, 'document')} now: the collection has changed since. Check it again.")
    for note in report["notes"]:
        st.caption(escape_markdown(note))
    items = [item for item in found.items if item.data["size"]]
    nothing = [item.name for item in found.items if not item.data["size"]]
    with st.container(horizontal=True):
        for item in items:
            label = f"{escape_markdown(item.name)}: {item.data['size']:,}"
            link("search", label, where=among(CHECK.column(name), "list", [item.name]))
    if nothing:
        st.caption(f"{'No findings now' if changed else 'Nothing found'}: {', '.join(nothing)}.")
    show_members(collection, found.run, items, "Documents", "finding")
