"""How good clusters and labels are, against a column that holds the truth."""

import html
from typing import Any

import streamlit as st

from .....indexer.store.kinds import LABEL
from .....indexer.wording import counted
from ....api import Collection
from ...page import address, empty, escape_markdown, sentences
from ...workspace import Workspace
from .results import chosen_result, measure, truths

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


def show_clusters(shelf: Workspace, collection: Collection, may_start: bool) -> None:
    """Draw the part about clusters and topics."""
    runs = [run.name for run in reversed(collection.uncounted_runs()) if run.kind.groups]
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


MOST = 40
"""Classes of the picture of confusions."""


def show_labels(shelf: Workspace, collection: Collection, may_start: bool) -> None:
    """Draw the part about labels."""
    runs = [run.name for run in reversed(collection.uncounted_runs(LABEL)) if run.complete]
    columns = truths(collection)
    if not runs:
        there = f"[Labels]({address('labels')})"
        empty("No labels yet", f"Label texts on the page {there}, then compare them with a column.", ":material/label:")
        return
    if not columns:
        empty("No column to compare with", "No column of the metadata has few different values, as classes do.",
              ":material/label:")  # fmt: skip
        return
    with st.container(border=True, horizontal=True, vertical_alignment="bottom"):
        run = st.selectbox("Labels", runs, key="run", bind="query-params")
        truth = st.selectbox("Truth", columns, key="truth", bind="query-params")
        if st.button("Measure", key="measure_labels", type="primary", disabled=not may_start):
            with sentences():
                measure(shelf, collection, f"Measure the run {run}", "labels", "--run", run, "--truth", truth)
    found = chosen_result(shelf, collection, "labels")
    if found:
        with sentences():
            _labels_show(found[0])


def _labels_show(found: dict[str, Any]) -> None:
    numbers = st.columns(3)
    numbers[0].metric("Accuracy", f"{found['accuracy']:.3f}")
    numbers[1].metric("Macro F1", f"{found['macro_f1']:.3f}")
    numbers[2].metric("Documents", f"{found['documents']:,}")
    st.caption(escape_markdown(f"Labels {found['run']} against the column {found['truth']}."))
    for note in found["notes"]:
        st.info(escape_markdown(note[:1].upper() + note[1:] + "."))
    classes = found["classes"]
    st.dataframe(
        {
            "class": [each["label"] for each in classes],
            "precision": [f"{each['precision']:.3f}" for each in classes],
            "recall": [f"{each['recall']:.3f}" for each in classes],
            "F1": [f"{each['f1']:.3f}" for each in classes],
            "documents": [each["support"] for each in classes],
        },
        hide_index=True,
    )
    if found["confusion"]:
        st.subheader("What is taken for what", anchor=False)
        st.plotly_chart(_chart(found["confusion"]), key="confusion", config={"displayModeBar": False},
                        alt="Confusions of true and given labels")  # fmt: skip


def _chart(confusion: list[list[Any]]) -> Any:
    import plotly.graph_objects as go

    counts = {(true, given): count for true, given, count in confusion}
    sizes: dict[str, int] = {}
    for (true, _), count in counts.items():
        sizes[true] = sizes.get(true, 0) + count
    for _, given in counts:
        sizes.setdefault(given, 0)
    names = sorted(sorted(sizes, key=lambda name: -sizes[name])[:MOST])
    shares = [[counts.get((true, given), 0) / max(1, sizes[true]) for given in names] for true in names]
    said = [[f"{html.escape(true)} taken for {html.escape(given)}: {counted(counts.get((true, given), 0), 'document')}"
             for given in names] for true in names]  # fmt: skip
    few = len(names) <= 12
    numbers = [[f"{counts.get((true, given), 0):,}" for given in names] for true in names]
    shown = [html.escape(name if len(name) <= 24 else name[:23] + "…") for name in names]
    figure = go.Figure(
        go.Heatmap(
            z=shares, zmin=0, zmax=1, colorscale="Teal", customdata=said, hovertemplate="%{customdata}<extra></extra>",
            text=numbers, texttemplate="%{text}" if few else None, showscale=False,
        )
    )  # fmt: skip
    places = list(range(len(names)))
    figure.update_xaxes(tickvals=places, ticktext=shown, title="label given", tickangle=-45)
    figure.update_yaxes(tickvals=places, ticktext=shown, title="truth", autorange="reversed")
    figure.update_layout(
        height=max(320, 140 + 26 * len(names)), margin={"l": 0, "r": 0, "t": 10, "b": 0}, dragmode=False
    )
    return figure
