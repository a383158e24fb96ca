"""A run of labels against a column that holds the truth: accuracy, each class, confusion."""

from html import escape
from typing import Any

import numpy as np
import streamlit as st

from .....indexer.runs import Run
from .....pipelines.evaluate.labels import LabelQuality, evaluate_labels
from .....pipelines.plots.text import plain
from ....api import Collection
from ...generation import stamp
from ...plain import escape_markdown
from ...theme import HEAT, theme
from ...ways_on import empty

MOST = 25
"""Classes in the table of confusion."""


def show_truth(collection: Collection, run: Run) -> None:
    """Show how good the labels are where a column knows the truth."""
    with collection.view() as view:
        columns = [field.name for field in view.fields.values() if field.type in ("text", "list", "boolean", "integer")]
    if not columns:
        empty("No column to compare with", "Index a column that holds the true label of some documents.")
        return
    truth = st.selectbox("Column that holds the truth", columns, key="truth", bind="query-params")
    found = _quality(collection, run.name, truth, (*stamp(collection), run.number, run.created))
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
    return evaluate_labels(_collection, run, truth)


def _confusion(found: LabelQuality) -> None:
    import plotly.graph_objects as go

    sizes: dict[str, int] = {}
    for one, two, count in found.confusion:
        for name in (one, two):
            sizes[name] = sizes.get(name, 0) + count
    names = sorted(sorted(sizes), key=lambda name: -sizes[name])[:MOST]
    place = {name: number for number, name in enumerate(names)}
    cells = np.zeros((len(names), len(names)), np.int64)
    for one, two, count in found.confusion:
        if one in place and two in place:
            cells[place[one], place[two]] = count
    shown = [escape(plain(name, 24)) for name in names]
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
