"""What a label run found: counts, documents, and how it compares with the truth."""

import html
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
import streamlit as st

from .....indexer.store.kinds import LABEL
from .....indexer.store.runs import Item, Run
from .....indexer.wording import counted
from .....pipelines.evaluate.labels import LabelQuality
from .....pipelines.plots.colors import one_line
from ....api import Collection
from ...page import HEAT, empty, escape_markdown, sentences, show_members, theme

BAR = (
    "<div style='display:grid;grid-template-columns:minmax(6rem,14rem) 1fr 9rem;gap:.75rem;align-items:center;"
    "font-size:.9rem;margin:.15rem 0'>"
    "<span style='overflow:hidden;text-overflow:ellipsis;white-space:nowrap'>{0}</span>"
    "<span style='background:rgba(128,128,128,.15);border-radius:3px'><span style='display:block;height:.8rem;"
    "border-radius:3px;background:var(--st-primary-color,#0f6e84);width:{1:.1f}%'></span></span>"
    "<span style='text-align:right;font-variant-numeric:tabular-nums'>{2:,} · {3:.1%}</span></div>"
)
MOST = 40
"""Bars that are drawn, the longest."""


def show_counts(counts: Mapping[str, int], total: int) -> None:
    """Show how many of `total` documents each label has, the most frequent first."""
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    longest = max((count for _, count in ranked), default=0) or 1
    bars = (
        BAR.format(html.escape(name), 100 * count / longest, count, count / max(total, 1))
        for name, count in ranked[:MOST]
    )
    st.html("".join(bars))
    if len(ranked) > MOST:
        st.caption(f"and {len(ranked) - MOST:,} more labels")


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
                collection.rename_run(run.name, name.strip(), kind=LABEL)
                st.session_state["_label_run"] = name.strip()
                st.rerun()
        with st.popover("Delete", icon=":material/delete:"), sentences():
            st.text(f"Delete the labels {run.name}? The documents and the corrections stay.")
            if st.button("Delete them", type="primary", key="label_delete"):
                collection.delete_run(run.name, kind=LABEL)
                st.rerun()


TRUTH_MOST = 25
"""Classes in the table of confusion."""


def show_truth(collection: Collection, run: Run) -> None:
    """Show how good the labels are where a column knows the truth."""
    columns = [name for name, type in collection.fields().items() if type in ("text", "list", "boolean", "integer")]
    if not columns:
        empty("No column to compare with", "Index a column that holds the true label of some documents.")
        return
    truth = st.selectbox("Column that holds the truth", columns, key="truth", bind="query-params")
    found = _quality(collection, run.name, truth, (*collection.documents_state(), run.number, run.created))
    cells = st.columns(3)
    cells[0].metric("Documents with both", f"{found.documents:,}")
    cells[1].metric("Accuracy", f"{found.accuracy:.3f}")
    cells[2].metric("Macro F1", f"{found.macro_f1:.3f}")
    for note in found.notes:
        st.warning(escape_markdown(note))
    if found.confusion:
        _confusion(found)
    table = [
        {"label": each.label, "precision": round(each.precision, 3), "recall": round(each.recall, 3),
         "F1": round(each.f1, 3), "documents": each.support}
        for each in found.classes
    ]  # fmt: skip
    st.dataframe(table, hide_index=True)


@st.cache_data(show_spinner="Comparing …", max_entries=16)
def _quality(_collection: Collection, run: str, truth: str, key: tuple[Any, ...]) -> LabelQuality:
    del key
    return _collection.evaluate_labels(run, truth)


def _confusion(found: LabelQuality) -> None:
    import plotly.graph_objects as go

    sizes: dict[str, int] = {}
    for one, two, count in found.confusion:
        for name in (one, two):
            sizes[name] = sizes.get(name, 0) + count
    names = sorted(sorted(sizes), key=lambda name: -sizes[name])[:TRUTH_MOST]
    place = {name: number for number, name in enumerate(names)}
    cells = np.zeros((len(names), len(names)), np.int64)
    for one, two, count in found.confusion:
        if one in place and two in place:
            cells[place[one], place[two]] = count
    shown = [escape(one_line(name, 24)) for name in names]
    figure = go.Figure(
        go.Heatmap(z=np.log1p(cells), x=shown, y=shown, colorscale=HEAT[theme()], showscale=False, xgap=1, ygap=1,
                   text=[[f"{count:,}" if count else "" for count in row] for row in cells.tolist()],
                   texttemplate="%{text}", hovertemplate="truly %{y}, labelled %{x}: %{text}<extra></extra>")
    )  # fmt: skip
    figure.update_layout(
        height=140 + 30 * len(names), margin={"l": 10, "r": 10, "t": 10, "b": 10},
        xaxis={"type": "category", "title": "labelled", "side": "top"},
        yaxis={"type": "category", "title": "truly", "autorange": "reversed", "automargin": True},
    )  # fmt: skip
    st.plotly_chart(figure, alt="Documents by true label and given label")
