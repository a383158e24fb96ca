"""Charts of a run (curve, tree, breakdown), and two groups or runs side by side."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from ....indexer.store.fields import PERIODS, Period
from ....indexer.store.kinds import RunKind
from ....indexer.store.runs import Item, Run
from ....indexer.wording import counted
from ....pipelines.analysis.breakdown import RunBreakdown
from ....pipelines.compare import Contrast, RunComparison
from ....pipelines.plots import CurvePlot, LinesPlot, TreePlot
from ....pipelines.plots.colors import escaped, one_line
from ....pipelines.topics import Topics
from ...api import Collection
from ..jobs.panel import may_start, start
from ..page import HEAT, chips, empty, escape_markdown, show_text, shown_score, theme
from ..words import MEASURES, explained
from ..workspace import Workspace, may_write
from .cards import filter_of, options_of

SHORT = 300
SAMPLE = 1_000
"""Documents of each side that terms are counted in."""


def show_compare(collection: Collection, runs: list[Run], run: Run, items: list[Item]) -> None:
    """Show two groups of a run side by side, and how far another run agrees."""
    groups = options_of(items)
    if len(groups) < 2:
        empty("Nothing to compare", "This run has fewer than two groups.")
        return
    names = list(groups)
    left, right = st.columns(2)
    first = left.selectbox("One group", names, key="one", bind="query-params")
    second = right.selectbox("Another", names, index=1, key="other", bind="query-params")
    if first == second:
        st.info("Choose two different groups.")
    else:
        key = (*collection.documents_state(), run.number, run.created)
        _side_by_side(
            collection, _contrast(collection, run.kind, run.name, groups[first], groups[second], key), first, second
        )
    others = [other.kind.column(other.name) for other in runs if other.number != run.number]
    if others:
        st.header("Compare with another run", anchor=False)
        chosen = st.selectbox("Run to compare with", others, key="against", bind="query-params")
        other = next(each for each in runs if each.kind.column(each.name) == chosen)
        _two_runs(_comparison(collection, run.name, other.name, run.kind if run.kind is other.kind else None,
                              (*collection.documents_state(), run.number, other.number)))  # fmt: skip


@st.cache_data(show_spinner="Comparing …", max_entries=32)
def _contrast(_collection: Collection, kind: RunKind, run: str, one: int, two: int, key: tuple[Any, ...]) -> Contrast:
    del key
    return _collection.contrast([filter_of(kind.column(run), number) for number in (one, two)], SAMPLE)


@st.cache_data(show_spinner="Comparing …", max_entries=32)
def _comparison(
    _collection: Collection, one: str, two: str, kind: RunKind | None, key: tuple[Any, ...]
) -> RunComparison:
    del key
    return _collection.compare_runs(one, two, kind=kind)


def _side_by_side(collection: Collection, found: Contrast, *names: str) -> None:
    told = "These terms distinguish the groups. Terms in parentheses may differ only by chance."
    st.caption(f"Cosine of the two means: {shown_score(found.similarity)}. {told}")
    for cell, side, name in zip(st.columns(2), found.sides, names, strict=True):
        with cell.container(border=True, gap="small"):
            show_text(name)
            show_text(counted(side.documents, "document"), small=True)
            known = set(side.beyond_chance)
            chips((term if term in known else f"({term})", f"{score:.1f}") for term, score in side.terms[:12])
            for document in collection.documents(side.examples[:3]).values():
                text = f"{document.title}\n{document.text}".strip()
                show_text(text if len(text) <= SHORT else text[:SHORT] + " …", small=True)


def _two_runs(found: RunComparison) -> None:
    for note in found.notes:
        st.info(escape_markdown(f"{note[:1].upper()}{note[1:]}."))
    cells = st.columns(3)
    cells[0].metric("Documents in both", f"{found.documents:,}")
    cells[1].metric("NMI", f"{found.nmi:.2f}", help=explained("NMI"))
    cells[2].metric("ARI", shown_score(found.ari), help=explained("ARI"))
    table = [
        {"what": what, "group": f"{change.number} {change.name}", "documents": change.size,
         "parts": ", ".join(f"{share:.0%} {number} {name}" for number, name, share in change.parts)}
        for what, changes in (("split", found.split), ("merged", found.merged)) for change in changes
    ]  # fmt: skip
    if table:
        st.dataframe(table, hide_index=True)
    else:
        st.text(f"{found.runs[1]} splits or merges no group of {found.runs[0]}.")


AUTOMATIC = "automatic"
"""The period that the dates decide."""
SHOWN = 12
"""Groups in a table of classes, the largest."""


def show_curve(run: Run) -> None:
    """Show silhouette and stability over k."""
    figure = CurvePlot("", run.report["curve"], run.report["k"]).interactive()
    figure.update_layout(margin={"t": 20}, title=None)
    st.plotly_chart(figure, alt="Silhouette and stability by the number of clusters")
    st.caption(
        f"k = {run.report['k']:,} is the smallest k whose score (silhouette and stability) is close to the best. Where "
        "the curve is flat, other values are as good. To use one, start a new run.",
        help=f"Silhouette: {MEASURES['silhouette']}. Stability: {MEASURES['stability of topics']}.",
    )


def show_tree(shelf: Workspace, collection: Collection, run: Run, items: list[Item], running: bool) -> None:
    """Show which topics are alike, and let them be joined or split."""
    topics = collection.topic_run(run.name)
    leaves = len(topics.model.vectors)
    if leaves < 2:
        empty("No hierarchy", "There are fewer than two dense groups.")
        return
    if may_write():
        _cut(shelf, collection, run, topics, running)
    st.plotly_chart(
        _tree(collection, run.name, (*collection.documents_state(), run.number, *_names(items))),
        alt="The tree of topics",
    )


def _names(items: list[Item]) -> list[str]:
    """Return what renaming changes, for the keys of caches."""
    return [item.name for item in items]


def _cut(shelf: Workspace, collection: Collection, run: Run, topics: Topics, running: bool) -> None:
    leaves = len(topics.model.vectors)
    idle = may_start(running)
    left, one, middle, two = st.columns([3, 1, 3, 1], vertical_alignment="bottom")
    count = left.slider(
        "Topics", 1, leaves, min(max(len(topics), 1), leaves), help="The number of topics after merging.", key="cut"
    )
    if one.button("Apply", disabled=not idle or count == len(topics), width="stretch"):
        title = f"Reduce '{run.name}' to {counted(count, 'topic')}"
        start(shelf, collection, title, "topic", "--reduce-to", str(count), "--run", run.name)
    merged = {f"{t.number} {t.name}": t.number for t in topics if len(t.leaves) > 1}
    which = middle.selectbox(
        "Split a merged topic", list(merged), key="split", disabled=not merged, placeholder="no merged topics"
    )
    if two.button("Split", disabled=not idle or not merged, width="stretch"):
        start(shelf, collection, "Split a topic", "topic", "--split", str(merged[which]), "--run", run.name)


@st.cache_resource(show_spinner="Drawing the tree …", max_entries=8)
def _tree(_collection: Collection, name: str, key: tuple[Any, ...]) -> Any:
    del key
    topics = _collection.topic_run(name)
    named = {topic.leaves: f"{topic.number} · {topic.name}" for topic in topics}
    of_leaf = {leaf: f"{topic.number} · {topic.name}" for topic in topics for leaf in topic.leaves}
    leaves = [named.get((leaf,)) or of_leaf.get(leaf, str(leaf)) for leaf in range(len(topics.model.vectors))]
    figure = TreePlot("", leaves, topics.model.tree, [node.name for node in topics.tree()]).interactive()
    figure.update_layout(title=None, margin={"t": 10})
    return figure


def show_breakdown(collection: Collection, run: Run, levels: Sequence[str]) -> None:
    """Show how many documents each group has by period or class of a column; where there are levels, at one of them."""
    fields = collection.fields()
    if not fields:
        empty("No columns", "The documents have no metadata.")
        return
    dates = [name for name, type in fields.items() if type == "date"]
    names = [*dates, *(name for name in fields if name not in dates)]
    left, middle, right = st.columns([2, 1, 1], vertical_alignment="bottom")
    column = left.selectbox("Column", names, key="column", bind="query-params")
    periods = [AUTOMATIC, *PERIODS] if column in dates else [AUTOMATIC]
    period = middle.selectbox("Period", periods, key="period", bind="query-params", disabled=column not in dates)
    share = right.toggle("Show shares", key="share", bind="query-params")
    name = _level(run, levels) if levels else run.kind.column(run.name)
    given: Any = None if period == AUTOMATIC else period
    key = (*collection.documents_state(), collection.state())  # an edit moves documents
    found = _breakdown(collection, name, column, given, key)
    rows = [place for place, item in enumerate(found.items) if item.number >= 0]
    rows = sorted(rows, key=lambda place: -int(found.counts[place].sum()))
    values: np.ndarray = found.shares if share else found.counts
    if found.period:
        _lines(found, rows, values, share)
    else:
        _table(found, rows[:SHOWN], values, share)
        if len(rows) > SHOWN:
            st.caption(f"The {SHOWN} largest of {len(rows):,} groups.")
    if found.without:
        st.caption(f"{counted(found.without, 'document')} without a value in this column.")


def _level(run: Run, levels: Sequence[str]) -> str:
    """Let a level be chosen, the top one if none is; return its column."""
    main = run.kind.column(run.name)
    named = {column.removeprefix(f"{main} "): column for column in levels}
    chosen = st.segmented_control(
        "Level", list(named), default=next(iter(named)), key=f"level of {main}", format_func=escape_markdown
    )
    return named[chosen] if chosen else levels[0]


@st.cache_data(show_spinner="Counting …", max_entries=32)
def _breakdown(
    _collection: Collection, run: str, column: str, period: Period | None, key: tuple[Any, ...]
) -> RunBreakdown:
    del key
    return _collection.breakdown(run, column, period=period)


def _lines(found: RunBreakdown, rows: list[int], values: np.ndarray, share: bool) -> None:
    names = [f"{found.items[place].number} · {found.items[place].name}" for place in rows]
    nothing = [[""] * len(found.parts)] * len(rows)
    unit = f"share of the {found.period}" if share else "documents"
    figure = LinesPlot("", found.parts, names, values[rows].round(4), nothing, unit).interactive()
    figure.update_layout(title=None, margin={"t": 20}, xaxis={"automargin": True})  # dates are never cut
    st.plotly_chart(figure, alt=f"Groups by {found.period}")


def _table(found: RunBreakdown, rows: list[int], values: np.ndarray, share: bool) -> None:
    import plotly.graph_objects as go

    names = [escaped(one_line(f"{found.items[place].number} {found.items[place].name}", 40)) for place in rows]
    parts = [escaped(one_line(part, 24)) for part in found.parts]
    cells = values[rows]
    texts = [[f"{cell:.0%}" if share else f"{cell:,}" for cell in row] for row in cells.tolist()]
    figure = go.Figure(
        go.Heatmap(z=cells, x=parts, y=names, text=texts, texttemplate="%{text}", showscale=False,
                   colorscale=HEAT[theme()], hovertemplate="%{y}<br>%{x}: %{text}<extra></extra>")
    )  # fmt: skip
    figure.update_layout(
        height=120 + 32 * len(rows), margin={"l": 10, "r": 10, "t": 10, "b": 10},
        xaxis={"type": "category", "side": "top"},
        yaxis={"type": "category", "autorange": "reversed", "automargin": True},
    )  # fmt: skip
    st.plotly_chart(figure, alt=f"Groups by {found.column}")
