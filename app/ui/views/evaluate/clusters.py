"""How good a clustering is, against a column and without one."""

from typing import Any

import streamlit as st

from .....indexer.runs import list_runs
from ....api import Collection
from ...going import address
from ...plain import escape_markdown
from ...shelf import Shelf
from ...ways_on import empty, sentences
from .columns import truths
from .results import chosen_result, measure

NONE = "none"
WITH = {
    "nmi": ("NMI", "Normalised mutual information with the truth, 0 to 1."),
    "ari": ("ARI", "Adjusted Rand index: 1 at most, 0 for chance."),
    "v_measure": ("V-measure", "Harmonic mean of homogeneity and completeness, 0 to 1."),
    "purity": ("Purity", "Share of documents whose cluster's commonest class is theirs."),
}
WITHOUT = {
    "silhouette": ("Silhouette", "How much nearer documents are to their own cluster than to the next, -1 to 1."),
    "stability": ("Stability", "How alike the clusters of repeated runs are, 0 to 1."),
    "coherence": ("Coherence", "NPMI of the best ten words of a cluster, -1 to 1."),
    "diversity": ("Diversity", "Share of different words among the best ten of all clusters, 0 to 1."),
}


def show_clusters(shelf: Shelf, collection: Collection, may_start: bool) -> None:
    """Draw the part about clusters and topics."""
    with collection.view() as view:
        runs = [run.name for run in reversed(list_runs(view.catalog)) if run.kind in ("cluster", "topic")]
    runs = list(dict.fromkeys(runs))
    if not runs:
        there = f"[Clusters and topics]({address('clusters')})"
        empty("No clusters yet", f"Make some on the page {there}, then measure them here.", ":material/bubble_chart:")
        return
    with st.container(border=True, horizontal=True, vertical_alignment="bottom"):
        run = st.selectbox("Clusters or topics", runs, key="run", bind="query-params")
        truth = st.selectbox("Truth", [NONE, *truths(collection)], key="truth", bind="query-params")
        if st.button("Measure", key="measure_clusters", type="primary", disabled=not may_start):
            with sentences():
                given = () if truth == NONE else ("--truth", truth)
                measure(shelf, collection, f"Measure the run {run}", "clusters", "--run", run, *given)
    found = chosen_result(shelf, collection, "clusters")
    if found:
        with sentences():
            _show(found[0])


def _show(found: dict[str, Any]) -> None:
    about = f"{found['run']}: {found['clusters']:,} clusters, {found['documents']:,} documents"
    st.markdown(escape_markdown(f"{about}, {found['outlier_share']:.1%} of them outliers."))
    if found["truth"] is not None:
        st.caption(escape_markdown(f"Against the column {found['truth']}, which has {found['classes']:,} classes"))
        _metrics(found, WITH)
    st.caption("Without a truth")
    _metrics(found, WITHOUT)


def _metrics(found: dict[str, Any], names: dict[str, tuple[str, str]]) -> None:
    for column, (name, (title, help)) in zip(st.columns(len(names), border=True), names.items(), strict=True):
        column.metric(title, "–" if found[name] is None else f"{found[name]:.3f}", help=help)
