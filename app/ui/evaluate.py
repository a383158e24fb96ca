"""The Evaluate page: how good search, clusters and labels are on one collection, against known answers."""

from datetime import datetime
from typing import Any

import streamlit as st

from ...indexer.store.kinds import LABEL
from ...indexer.wording import counted, shown_p
from ...pipelines.evaluate.judgements import Judgements
from ...pipelines.plots.colors import escaped
from ..api import Collection
from .jobs import Job
from .jobs.panel import WATCHED, command_line, may_start, name_of, show_work
from .page import address, empty, escape_markdown, help_of, sentence_of, sentences
from .query import facets_of
from .words import explained
from .workspace import Workspace


def truths(collection: Collection) -> list[str]:
    """Return the metadata fields with few different values: classes that labels or clusters are compared with."""
    known = [facet for facet in facets_of(collection) if not facet.run]
    return [facet.name for facet in known if facet.choices] + [f.name for f in known if f.type == "integer"]


def measure(shelf: Workspace, collection: Collection, title: str, subject: str, *arguments: str) -> None:
    """Start `sonde evaluate SUBJECT C.sonde …` as a job, and draw the page again.

    Raises:
        UsageError: Another job works on this collection.
    """
    words = ("evaluate", subject, str(collection.path), *arguments, "--json")
    st.session_state[WATCHED] = shelf.jobs.start(title, name_of(collection), words).id
    st.session_state.pop("result", None)
    st.rerun()


def chosen_result(shelf: Workspace, collection: Collection, subject: str) -> list[dict[str, Any]]:
    """Let the visitor choose among finished measurements, the newest first; return what the chosen one printed."""
    jobs = [job for job in shelf.jobs.of(name_of(collection)) if _is(job, subject)]
    if not jobs:
        return []
    ids = {job.id: job for job in jobs}
    shown = jobs[0]
    if len(jobs) > 1:
        id = st.selectbox("Measured", list(ids), format_func=lambda id: _named(ids[id]), key=f"result_{subject}")
        shown = ids.get(id, shown)
    else:
        st.caption(f"Measured {_when(shown)}")
    with st.popover("Command", type="tertiary", help="The same from the command line"):
        st.code(command_line(shown), language=None, wrap_lines=True)
    return [each for each in shown.output if isinstance(each, dict)]


def _is(job: Job, subject: str) -> bool:
    return job.command[:2] == ("evaluate", subject) and job.state == "done" and bool(job.output)


def _named(job: Job) -> str:
    return f"{_when(job)} · {job.title}"


def _when(job: Job) -> str:
    return datetime.fromtimestamp(job.started).strftime("%Y-%m-%d %H:%M")


NONE = "none"
WITH = {"nmi": "NMI", "ari": "ARI", "v_measure": "V-measure", "purity": "purity"}
WITHOUT = {name: name for name in ("silhouette", "stability", "coherence", "diversity")}
"""Measures of clusters with and without true classes, by their keys in the result of the command."""


def show_clusters(shelf: Workspace, collection: Collection, may_start: bool) -> None:
    """Draw the part about clusters and topics."""
    runs = [run.name for run in reversed(collection.uncounted_runs()) if run.kind.groups]
    runs = list(dict.fromkeys(runs))
    if not runs:
        there = f"[Clusters and topics]({address('clusters')})"
        empty(
            "No clusters yet",
            f"Create clusters on the {there} page, then measure them here.",
            ":material/bubble_chart:",
        )
        return
    with st.container(border=True, horizontal=True, vertical_alignment="bottom"):
        run = st.selectbox("Clusters or topics", runs, key="run", bind="query-params")
        truth = st.selectbox(
            "Column with the true classes", [NONE, *truths(collection)], key="truth", bind="query-params"
        )
        if st.button("Measure", key="measure_clusters", type="primary", disabled=not may_start):
            with sentences():
                given = () if truth == NONE else ("--truth", truth)
                measure(shelf, collection, f"Measure the run '{run}'", "clusters", "--run", run, *given)
    found = chosen_result(shelf, collection, "clusters")
    if found:
        with sentences():
            _show(found[0])


def _show(found: dict[str, Any]) -> None:
    about = f"{found['run']}: {counted(found['clusters'], 'cluster')}, {counted(found['documents'], 'document')}"
    st.markdown(escape_markdown(f"{about}, {found['outlier_share']:.1%} of them outliers."))
    if found["truth"] is not None:
        st.caption(
            escape_markdown(
                f"Compared with the column {found['truth']}, which has {counted(found['classes'], 'class', 'classes')}"
            )
        )
        _metrics(found, WITH)
    st.caption("Without true classes")
    _metrics(found, WITHOUT)


def _metrics(found: dict[str, Any], names: dict[str, str]) -> None:
    for column, (key, name) in zip(st.columns(len(names), border=True), names.items(), strict=True):
        shown = "–" if found[key] is None else f"{found[key]:.3f}"
        column.metric(name[0].upper() + name[1:], shown, help=explained(name))


MOST = 40
"""Classes of the picture of confusions."""


def show_labels(shelf: Workspace, collection: Collection, may_start: bool) -> None:
    """Draw the part about labels."""
    runs = [run.name for run in reversed(collection.uncounted_runs(LABEL)) if run.complete]
    columns = truths(collection)
    if not runs:
        there = f"[Labels]({address('labels')})"
        empty(
            "No labels yet",
            f"Label texts on the {there} page, then compare the labels with a column.",
            ":material/label:",
        )
        return
    if not columns:
        empty("No column to compare with", "No metadata column has few enough different values to be used as classes.",
              ":material/label:")  # fmt: skip
        return
    with st.container(border=True, horizontal=True, vertical_alignment="bottom"):
        run = st.selectbox("Labels", runs, key="run", bind="query-params")
        truth = st.selectbox("Column with the true labels", columns, key="truth", bind="query-params")
        if st.button("Measure", key="measure_labels", type="primary", disabled=not may_start):
            with sentences():
                measure(shelf, collection, f"Measure the run '{run}'", "labels", "--run", run, "--truth", truth)
    found = chosen_result(shelf, collection, "labels")
    if found:
        with sentences():
            _labels_show(found[0])


def _labels_show(found: dict[str, Any]) -> None:
    numbers = st.columns(3)
    low, high = found.get("interval", (None, None))  # a result from an older version has none
    said = "" if low is None else f"95 % interval (Wilson): {low:.3f} to {high:.3f}."
    name = "exact match" if found.get("several") else "accuracy"
    numbers[0].metric(name.capitalize(), f"{found['accuracy']:.3f}", help=f"{explained(name)} {said}".strip())
    numbers[1].metric("Macro F1", f"{found['macro_f1']:.3f}", help=explained("macro F1"))
    numbers[2].metric("Documents", f"{found['documents']:,}")
    st.caption(escape_markdown(f"Labels {found['run']} against the column {found['truth']}."))
    for note in found["notes"]:
        st.info(sentence_of(note))
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
        column_config=help_of("precision", "recall", "F1"),
    )
    if found["confusion"]:
        st.header("Confused labels", anchor=False)
        st.plotly_chart(_confusion_chart(found["confusion"]), key="confusion", config={"displayModeBar": False},
                        alt="Documents by true and assigned label")  # fmt: skip


def _confusion_chart(confusion: list[list[Any]]) -> Any:
    import plotly.graph_objects as go

    counts = {(true, given): count for true, given, count in confusion}
    sizes: dict[str, int] = {}
    for (true, _), count in counts.items():
        sizes[true] = sizes.get(true, 0) + count
    for _, given in counts:
        sizes.setdefault(given, 0)
    names = sorted(sorted(sizes, key=lambda name: -sizes[name])[:MOST])
    shares = [[counts.get((true, given), 0) / max(1, sizes[true]) for given in names] for true in names]
    said = [[f"{escaped(true)} mistaken for {escaped(given)}: "
             f"{counted(counts.get((true, given), 0), 'document')}" for given in names] for true in names]  # fmt: skip
    few = len(names) <= 12
    numbers = [[f"{counts.get((true, given), 0):,}" for given in names] for true in names]
    shown = [escaped(name if len(name) <= 24 else name[:23] + "…") for name in names]
    figure = go.Figure(
        go.Heatmap(
            z=shares, zmin=0, zmax=1, colorscale="Teal", customdata=said, hovertemplate="%{customdata}<extra></extra>",
            text=numbers, texttemplate="%{text}" if few else None, showscale=False,
        )
    )  # fmt: skip
    places = list(range(len(names)))
    figure.update_xaxes(tickvals=places, ticktext=shown, title="assigned label", tickangle=-45)
    figure.update_yaxes(tickvals=places, ticktext=shown, title="truth", autorange="reversed")
    figure.update_layout(
        height=max(320, 140 + 26 * len(names)), margin={"l": 0, "r": 0, "t": 10, "b": 0}, dragmode=False
    )
    return figure


MODES = ("dense", "lexical", "hybrid", "rerank")
KEPT, FILES = "Stored judgements", "Two files"
FEW = 20
"""Queries below which an interval says little."""


def show_search(shelf: Workspace, collection: Collection, may_start: bool) -> None:
    """Draw the part about search."""
    kept = collection.judgements()
    with st.container(border=True):
        source = st.segmented_control(
            "Source of the judgements",
            (KEPT, FILES),
            default=KEPT,
            required=True,
            key="from",
            label_visibility="collapsed",
        )
        files = _show_files(shelf) if source == FILES else _show_kept(kept)
        modes = st.multiselect("Modes", MODES, default=MODES[:3], key="modes", bind="query-params",
                               help="Differences are relative to the first mode.")  # fmt: skip
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
            f"Judge hits on the [Search]({address('search')}) page with **Relevant** and **Not relevant**. "
            "The judgements are stored and show which mode is best for your queries. "
            "Or upload judged queries in two files.",
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
        st.caption(f"{counted(without, 'query', 'queries')} without a relevant document cannot be used.")


_HELP = {
    "Stale": "Judgements of documents that were deleted or changed. They do not count.",
    "Queries": "Queries with at least one judgement.",
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
        st.plotly_chart(_ndcg_chart(found), key="ndcg", config={"displayModeBar": False}, alt="nDCG@10 by mode")
        st.dataframe(
            {
                "mode": [each["mode"] for each in found],
                "nDCG@10": [f"{each['ndcg@10']:.3f}" for each in found],
                "95 % interval": [
                    "{:.3f} to {:.3f}".format(*each["interval"]) if each["interval"] else "–" for each in found
                ],
                "difference": [_signed(each["difference"]) for each in found],
                "p": ["–" if each["p"] is None else shown_p(each["p"]) for each in found],
                "recall@100": [f"{each['recall@100']:.3f}" for each in found],
                "MRR@10": [f"{each['mrr@10']:.3f}" for each in found],
                "MAP@100": [f"{each['map@100']:.3f}" for each in found],
                "judged@10": [f"{each['judged@10']:.0%}" for each in found],
            },
            hide_index=True,
            column_config=help_of("nDCG@10", "recall@100", "MRR@10", "MAP@100", "judged@10"),
        )
        few = (
            f" This is based on only {counted(queries, 'query', 'queries')}. Judge more. An interval needs at least 5."
            if queries < FEW
            else ""
        )
        st.caption(escape_markdown(_explained(queries, found[0]["mode"]) + few))


def _explained(queries: int, first: str) -> str:
    return (
        f"Measured on {counted(queries, 'query', 'queries')}. The interval is a 95 % bootstrap interval of nDCG@10. "
        f"p compares each mode with {first} (paired randomisation test). judged@10 is the share of the first ten hits "
        "that were judged. Hits without a judgement count as not relevant, so a mode with a lower share looks worse "
        "than it is."
    )


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}"


def _ndcg_chart(found: list[dict[str, Any]]) -> Any:
    import plotly.graph_objects as go

    values = [each["ndcg@10"] for each in found]
    error = {
        "type": "data",
        "array": [each["interval"][1] - each["ndcg@10"] if each["interval"] else 0 for each in found],
        "arrayminus": [each["ndcg@10"] - each["interval"][0] if each["interval"] else 0 for each in found],
    }
    figure = go.Figure(
        go.Scatter(x=values, y=[each["mode"] for each in found], error_x=error, mode="markers", marker={"size": 12})
    )
    figure.update_xaxes(range=[0, 1.02], title="nDCG@10")
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_layout(height=90 + 45 * len(found), margin={"l": 0, "r": 0, "t": 10, "b": 0}, dragmode=False)
    return figure


PARTS = {"Search": show_search, "Labels": show_labels, "Clusters": show_clusters}


def show(shelf: Workspace, collection: Collection) -> None:
    """Draw the page."""
    st.title("Evaluate", anchor=False)
    running = show_work(shelf, collection)
    part = st.segmented_control(
        "What to measure", list(PARTS), default="Search", required=True, key="what", bind="query-params",
        label_visibility="collapsed",
    )  # fmt: skip
    PARTS[part or "Search"](shelf, collection, may_start(running))
