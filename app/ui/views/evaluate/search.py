"""How good search is, from judgements: those that the collection keeps, or those of two files."""

from typing import Any

import streamlit as st

from .....indexer.wording import counted
from .....pipelines.evaluate.judgements import Judgements
from ....api import Collection
from ...page import address, empty, escape_markdown, sentences
from ...workspace import Workspace
from .results import chosen_result, measure

MODES = ("dense", "lexical", "hybrid", "rerank")
KEPT, FILES = "Judgements kept here", "Two files"
FEW = 20
"""Queries below which an interval says little."""


def show_search(shelf: Workspace, collection: Collection, may_start: bool) -> None:
    """Draw the part about search."""
    kept = collection.judgements()
    with st.container(border=True):
        source = st.segmented_control(
            "From", (KEPT, FILES), default=KEPT, required=True, key="from", label_visibility="collapsed"
        )
        files = _show_files(shelf) if source == FILES else _show_kept(kept)
        modes = st.multiselect("Modes", MODES, default=MODES[:3], key="modes", bind="query-params",
                               help="Differences are to the first one.")  # fmt: skip
        ready = bool(modes) and (bool(kept.answered) if source != FILES else files is not None)
        if st.button("Measure", key="measure_search", type="primary", disabled=not (ready and may_start)):
            with sentences():
                given = _arguments(shelf, files) if source == FILES else ()
                measure(shelf, collection, "Measure search", "search", "--modes", ",".join(modes), *given)
    found = chosen_result(shelf, collection, "search")
    if found:
        _show_table(found)
    elif not kept.kept:
        empty(
            "Nothing measured yet",
            f"Judge some hits on the page [Search]({address('search')}): **Relevant** and **Not relevant** are kept, "
            "and tell which mode answers your queries best. Or bring judged queries in two files.",
            ":material/bar_chart:",
        )


def _show_kept(kept: Judgements) -> None:
    relevant = sum(1 for judgement in kept.kept if judgement.grade)
    numbers = st.columns(4)
    rows = (("Judgements", len(kept)), ("Relevant", relevant), ("Queries", len(kept.queries)), ("Stale", kept.stale))
    for column, (name, number) in zip(numbers, rows, strict=True):
        column.metric(name, f"{number:,}", help=_HELP.get(name))
    if kept.queries:
        with st.expander("Queries"):
            grades = kept.qrels
            st.dataframe(
                {"query": [text for _, text in kept.queries],
                 "judged": [len(grades[key]) for key, _ in kept.queries],
                 "relevant": [sum(map(bool, grades[key].values())) for key, _ in kept.queries]},
                hide_index=True,
            )  # fmt: skip
    without = len(kept.queries) - len(kept.answered)
    if without:
        st.caption(f"{counted(without, 'query', 'queries')} without a relevant document cannot tell modes apart.")


_HELP = {
    "Stale": "Of documents that were deleted, or whose text changed since: they do not count.",
    "Queries": "With at least one judgement.",
}


def _show_files(shelf: Workspace) -> tuple[Any, Any] | None:
    del shelf
    left, right = st.columns(2)
    queries = left.file_uploader("Queries", ["jsonl", "gz"], key="queries", help="JSON lines with _id and text.")
    qrels = right.file_uploader("Judgements", ["tsv", "txt", "qrels"], key="qrels", help="TREC qrels or BEIR's TSV.")
    return (queries, qrels) if queries and qrels else None


def _arguments(shelf: Workspace, files: tuple[Any, Any] | None) -> tuple[str, ...]:
    if files is None:
        return ()
    queries, qrels = shelf.jobs.uploads.keep(files)
    return "--queries", str(queries), "--qrels", str(qrels)


def _show_table(found: list[dict[str, Any]]) -> None:
    with sentences():
        queries = found[0]["queries"]
        st.plotly_chart(_chart(found), key="ndcg", config={"displayModeBar": False}, alt="nDCG@10 by mode")
        st.dataframe(
            {
                "mode": [each["mode"] for each in found],
                "nDCG@10": [f"{each['ndcg@10']:.3f}" for each in found],
                "95 % interval": ["{:.3f} to {:.3f}".format(*each["interval"]) for each in found],
                "difference": [_signed(each["difference"]) for each in found],
                "p": ["–" if each["p"] is None else f"{each['p']:.3f}" for each in found],
                "recall@100": [f"{each['recall@100']:.3f}" for each in found],
                "MRR@10": [f"{each['mrr@10']:.3f}" for each in found],
                "MAP@100": [f"{each['map@100']:.3f}" for each in found],
                "judged@10": [f"{each['judged@10']:.0%}" for each in found],
            },
            hide_index=True,
        )
        few = (
            f" With {counted(queries, 'query', 'queries')}, the intervals are wide: judge more."
            if queries < FEW
            else ""
        )
        st.caption(escape_markdown(_explained(queries, found[0]["mode"]) + few))


def _explained(queries: int, first: str) -> str:
    return (
        f"Over {counted(queries, 'query', 'queries')}. The interval is a 95 % bootstrap interval of nDCG@10, p a "
        f"paired randomisation test against {first}. A hit without a judgement counts as not relevant: where modes "
        "differ in judged@10, the share of their first ten hits that were judged, the less judged one looks worse "
        "than it is."
    )


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}"


def _chart(found: list[dict[str, Any]]) -> Any:
    import plotly.graph_objects as go

    values = [each["ndcg@10"] for each in found]
    error = {
        "type": "data",
        "array": [each["interval"][1] - each["ndcg@10"] for each in found],
        "arrayminus": [each["ndcg@10"] - each["interval"][0] for each in found],
    }
    figure = go.Figure(
        go.Scatter(x=values, y=[each["mode"] for each in found], error_x=error, mode="markers", marker={"size": 12})
    )
    figure.update_xaxes(range=[0, 1.02], title="nDCG@10")
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_layout(height=90 + 45 * len(found), margin={"l": 0, "r": 0, "t": 10, "b": 0}, dragmode=False)
    return figure
