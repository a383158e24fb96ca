"""What a run of labels found: how many of each, the documents of one, the run itself."""

import streamlit as st

from .....indexer.runs import Item, Run
from .....indexer.wording import counted
from .....pipelines.runs import delete, rename
from ....api import Collection
from ...members import show_members
from ...plain import escape_markdown
from ...ways_on import sentences
from .charts import show_counts


def show_outcome(collection: Collection, run: Run, items: list[Item], *, changeable: bool) -> None:
    """Show the distribution, the documents of a label, and what can be done with the run."""
    report = run.report
    cells = st.columns(4)
    cells[0].metric("Documents", f"{run.documents:,}")
    cells[1].metric("Labels", f"{sum(item.number >= 0 for item in items):,}")
    cells[2].metric("Corrected", f"{report.get('corrected', 0):,}", help="Labels that a person gave.")
    if report.get("agreement") is not None:
        told = f"On {report['held_back']:,} documents that were judged and held back."
        cells[3].metric("Agreement", f"{report['agreement']:.0%}", help=told)
    st.caption(_made(run))
    show_counts({item.name: item.data.get("size", 0) for item in items}, report.get("documents", run.documents))
    show_members(collection, run, items, "Documents labelled", "label")
    if changeable:
        _change(collection, run)


def _made(run: Run) -> str:
    said = f"{escape_markdown(str(run.parameters.get('engine')))}, {escape_markdown(str(run.parameters.get('model')))}"
    judged = run.report.get("judged")
    said += f" · {counted(judged, 'document')} judged" if judged else ""
    where = run.parameters.get("where")
    said += f" · only {escape_markdown(where)}" if where else ""
    return f"{said} · {run.created[:16].replace('T', ' ')} UTC · {run.seconds:,.1f} s"


def _change(collection: Collection, run: Run) -> None:
    with st.container(horizontal=True):
        with st.popover("Rename", icon=":material/edit:"), sentences():
            name = st.text_input("New name of the run", key="label_rename")
            if st.button("Rename", type="primary", key="label_rename_do", disabled=not name.strip()):
                rename(collection, run.name, name.strip(), "label")
                st.session_state["_label_run"] = name.strip()
                st.rerun()
        with st.popover("Delete", icon=":material/delete:"), sentences():
            st.text(f"Delete the labels {run.name}? The documents and the corrections stay.")
            if st.button("Delete them", type="primary", key="label_delete"):
                delete(collection, run.name, "label")
                st.rerun()
