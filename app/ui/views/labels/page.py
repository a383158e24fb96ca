"""The page Labels: type labels, try them on a sample, run them, look at a run."""

import streamlit as st

from .....indexer.errors import SondeError
from .....indexer.store.kinds import LABEL
from .....indexer.store.runs import Run
from .....indexer.wording import counted
from .....pipelines.label import ENGINES, LabelSettings
from .....pipelines.label.trial import Trial
from ....api import Collection
from ....api.texts import make_labels
from ...jobs.panel import ask_name, labels_file, may_start, show_work, start
from ...page import empty, sentences, show_text
from ...workspace import Workspace, may_write
from .outcome import show_counts, show_outcome, show_review, show_truth

TRIED = 50
SHORT = 160
COSTS = {
    "similarity": "Instant, by the stored vectors.",
    "nli": "A model reads each text with each label: give a budget.",
    "reranker": "A second stage reads labels as queries, texts as passages.",
    "ensemble": "nli and similarity together.",
}
ENGINES_HERE = sorted(ENGINES, key=list(COSTS).index)


def show_typed(shelf: Workspace, collection: Collection, run: Run | None, running: bool) -> None:
    """Show the form, a trial, and the start of a run."""
    left, right = st.columns([3, 2], gap="medium")
    with left:
        text = st.text_area(
            "Labels, one per line", _lines(run), height=200, key="labels", bind="query-params",
            placeholder="refund: the customer wants money back\ndelivery\npraise",
            help="A description after a colon says what the name does not.",
        )  # fmt: skip
    with right:
        engine = st.selectbox("Engine", ENGINES_HERE, key="engine", bind="query-params")
        st.caption(COSTS[engine])
        several = st.toggle("A text may get several labels, or none", key="several", bind="query-params")
        none = not several and st.toggle(
            "None of these", key="none", bind="query-params",
            help="Texts that probably fit no label get none of these. A label is never forced on them.",
        )  # fmt: skip
        least = st.slider("Least probability", 0.0, 1.0, 0.5 if several else 0.0, 0.05, key=f"least_{several}",
                          help="Below it a text gets none of these.")  # fmt: skip
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    if not lines:
        return
    make_labels(lines, several=several)
    settings = LabelSettings(engine=engine, multi_label=several, threshold=least or None, none=none)
    cells = st.columns([1, 1, 3])
    if cells[0].button("Try on a sample", icon=":material/science:", width="stretch"):
        st.session_state["_tried"] = (engine, tuple(lines), several, least, none)
    if may_write():
        run_it = cells[1].popover("Run", icon=":material/play_arrow:", width="stretch", disabled=not may_start(running))
        with run_it, sentences():
            _run(shelf, collection, run, lines, settings)
    if st.session_state.get("_tried") == (engine, tuple(lines), several, least, none):
        _show_trial(_trial(collection, tuple(lines), settings, collection.documents_state()))
    elif engine == "similarity":
        st.caption(
            "Try shows what a random sample gets. Similarity answers at once; the others take seconds to minutes."
        )


def _lines(run: Run | None) -> str:
    labels = run.parameters.get("labels", []) if run else []
    return "\n".join(
        f"{label['name']}: {label['description']}" if label["description"] else label["name"] for label in labels
    )


@st.cache_data(show_spinner="Labelling a sample …", max_entries=16)
def _trial(_collection: Collection, lines: tuple[str, ...], settings: LabelSettings, key: tuple[object, ...]) -> Trial:
    del key
    return _collection.try_labels(list(lines), settings, TRIED)


def _show_trial(trial: Trial) -> None:
    st.subheader(f"A sample of {len(trial.documents):,}", anchor=False)
    show_counts(trial.counts, len(trial.documents))
    st.caption(
        f"{trial.engine}, {trial.seconds:,.1f} s. "
        + ("Labels adapted to all documents, as a run does." if trial.adapted else "Each text was judged by itself.")
    )
    for document in trial.documents:
        with st.container(border=True, gap="small"):
            one, two = st.columns([1, 3])
            with one:
                show_text(", ".join(document.labels) or "none of these")
                show_text(f"{document.score:.2f} · else {document.other}", small=True)
            with two:
                shown = f"{document.title}\n{document.text}".strip()
                show_text(shown if len(shown) <= SHORT else shown[:SHORT] + " …", small=True)


def _run(shelf: Workspace, collection: Collection, run: Run | None, lines: list[str], settings: LabelSettings) -> None:
    name, replace = ask_name(collection, "Name", run.name if run else "labels", LABEL, "run_name")
    where = st.text_input("Only documents that pass", key="run_where", placeholder="stars <= 2")
    budget = ""
    if settings.engine != "similarity":
        budget = st.text_input("Budget", "5m", key="budget", help="5000 judgements, 90s, 5m or 1h. Empty: every text.")
    applied = _applies(collection, name)
    if st.button("Label all documents", type="primary", key="run_labels", disabled=not name):
        options = ["--engine", str(settings.engine), "--name", name, *replace]
        options += ["--multi-label"] if settings.multi_label else []
        options += ["--threshold", f"{settings.threshold:g}"] if settings.threshold else []
        options += ["--none"] if settings.none else []
        options += ["--where", where.strip()] if where.strip() else []
        options += ["--budget", budget.strip()] if budget.strip() else []
        options += [] if applied else ["--no-corrections"]
        st.session_state["_label_run"], st.session_state["_label_part"] = name, "documents by label"
        start(
            shelf,
            collection,
            f"Label run {name}",
            "label",
            "--labels-file",
            labels_file(shelf, lines),
            *options,
        )


def _applies(collection: Collection, name: str) -> bool:
    try:
        kept = len(collection.corrections(name)) if name else 0
    except SondeError:
        kept = 0
    return st.toggle(f"Learn from {counted(kept, 'correction')}", value=True, key="heed") if kept else True


PARTS = ["labels", "documents by label", "review", "against a column"]


def show(shelf: Workspace, collection: Collection) -> None:
    """Draw the page."""
    st.title("Labels", anchor=False)
    running = show_work(shelf, collection)
    runs = [run for run in collection.uncounted_runs(LABEL) if run.complete]
    run, part = _chosen(runs)
    with sentences():
        if part == "labels" or run is None:
            if run is None:
                empty(
                    "No labels yet",
                    "Type labels below, one per line. Every document gets the one that fits best. "
                    "Only the labels' names are used: no examples are needed.",
                    ":material/label:",
                )
            show_typed(shelf, collection, run, running)
        elif part == "review":
            show_review(shelf, collection, run, running)
        elif part == "against a column":
            show_truth(collection, run)
        else:
            found = collection.counted_run(run)
            show_outcome(collection, found.run, found.items, changeable=may_write())


def _chosen(runs: list[Run]) -> tuple[Run | None, str]:
    if not runs:
        return None, "labels"
    by_name = {run.name: run for run in reversed(runs)}
    left, right = st.columns([2, 5], vertical_alignment="bottom")
    if st.session_state.get("_label_run") in by_name:  # of a job, which may still run
        st.session_state["run"] = st.session_state.pop("_label_run")
    name = left.selectbox("Run", list(by_name), key="run", bind="query-params")
    wanted_part = st.session_state.pop("_label_part", None)
    if wanted_part:
        st.session_state["part"] = wanted_part
    if "part" not in st.session_state and "part" not in st.query_params:
        st.session_state["part"] = "documents by label"
    part = right.segmented_control("Show", PARTS, key="part", bind="query-params")
    return by_name[name], part or "documents by label"
