"""The Labels page: type labels, try them on a sample, run them, look at a run."""

import streamlit as st

from ...indexer.errors import SondeError
from ...indexer.store.kinds import CORRECTION, LABEL
from ...indexer.store.runs import Run
from ...indexer.wording import counted
from ...pipelines.label import ENGINES, LabelSettings
from ...pipelines.label.review import Trial
from ..api import Collection
from ..api.texts import make_labels
from .jobs.panel import ask_name, labels_file, may_start, show_work, start
from .label_run import CAUTION, CAUTION_SEVERAL, show_counts, show_outcome, show_review, show_truth, warn_of_static
from .page import empty, escape_markdown, popover, sentences, show_text, submitted
from .words import in_pages
from .workspace import Workspace, may_write

TRIED = 50
SHORT = 160
COSTS = {
    "similarity": "Uses the stored embeddings: takes seconds.",
    "nli": "A model reads each text with each label. Set a budget.",
    "reranker": "A reranker reads labels as queries and texts as passages.",
    "ensemble": "Combines nli and similarity.",
}
ENGINES_HERE = sorted(ENGINES, key=list(COSTS).index)


def show_typed(shelf: Workspace, collection: Collection, run: Run | None, running: bool) -> None:
    """Show the form, a trial, and the start of a run."""
    left, right = st.columns([3, 2], gap="medium")
    with left:
        text = st.text_area(
            "Labels, one per line", _lines(run), height=200, key="labels", bind="query-params",
            placeholder="refund: the customer wants money back\ndelivery\npraise",
            help="Add a description after a colon if the name does not say enough.",
        )  # fmt: skip
    with right:
        made = run.parameters if run else {}  # the form begins as the run was asked for: with its labels, and this
        before = ENGINES_HERE.index(made["engine"]) if made.get("engine") in ENGINES_HERE else 0
        engine = st.selectbox("Engine", ENGINES_HERE, before, key="engine", bind="query-params")
        st.caption(COSTS[engine])
        several = st.toggle(
            "A text can have several labels, or none", bool(made.get("multi_label")), key="several", bind="query-params"
        )
        none = not several and st.toggle(
            "None of these", bool(made.get("none")), key="none", bind="query-params",
            help='Texts that probably fit no label get the answer "none of these".',
        )  # fmt: skip
        usual = 0.5 if several else 0.0
        asked_for = made.get("threshold") if several == bool(made.get("multi_label")) else None
        least = st.slider("Minimum probability", 0.0, 1.0, asked_for or usual, 0.05, key=f"least_{several}",
                          help='Below this, a text gets "none of these".')  # fmt: skip
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    settings = LabelSettings(engine=engine, multi_label=several, threshold=least or None, none=none)
    asked = (engine, tuple(lines), several, least, none)
    problem = _problem(lines, several)
    # The buttons are there before the box is left: a click that leaves it would otherwise hit nothing.
    with st.container(horizontal=True):
        if st.button("Try on a sample", icon=":material/science:", help="Label 50 random documents."):
            st.session_state["_tried"] = asked
        if may_write():
            idle = may_start(running)
            with popover("Run", "run", icon=":material/play_arrow:", disabled=not idle, type="primary"), sentences():
                st.text(problem) if problem else _run(shelf, collection, run, lines, settings)
    if problem and (lines or st.session_state.get("_tried") == asked):
        st.error(escape_markdown(problem))
    elif engine == "similarity":
        warn_of_static(collection.model)
        st.caption(CAUTION_SEVERAL if several else CAUTION)
    if not problem and st.session_state.get("_tried") == asked:
        _show_trial(_trial(collection, tuple(lines), settings, collection.documents_state()))


def _problem(lines: list[str], several: bool) -> str:
    """Return why documents cannot be labelled with these lines, "" if they can."""
    if not lines:
        return "Type the labels first, one per line."
    try:
        make_labels(lines, several=several)
    except SondeError as error:
        return in_pages(error.message)
    return ""


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
    st.header(f"Sample of {counted(len(trial.documents), 'document')}", anchor=False)
    show_counts(trial.counts, len(trial.documents))
    st.caption(
        f"{trial.engine}, {trial.seconds:,.1f} s. "
        + (
            "The labels are adapted to all documents, as in a run."
            if trial.adapted
            else "Each text was judged separately."
        )
    )
    for document in trial.documents:
        with st.container(border=True, gap="small"):
            one, two = st.columns([1, 3])
            with one:
                show_text(", ".join(document.labels) or "none of these")
                rival = "" if document.other in document.labels else f" · else {document.other}"
                show_text(f"{document.score:.2f}{rival}", small=True)
            with two:
                shown = f"{document.title}\n{document.text}".strip()
                show_text(shown if len(shown) <= SHORT else shown[:SHORT] + " …", small=True)


def _run(shelf: Workspace, collection: Collection, run: Run | None, lines: list[str], settings: LabelSettings) -> None:
    name, replace, missing = ask_name(collection, "Name", run.name if run else "labels", LABEL, "run_name")
    where = st.text_input("Filter (optional)", key="run_where", placeholder="stars <= 2")
    budget = ""
    if settings.engine != "similarity":
        budget = st.text_input(
            "Budget",
            "5m",
            key="budget",
            help="A number of judgements or a time: 5000, 90s, 5m, 1h. If empty, every text is judged.",
        )
    applied = _applies(collection, name)
    source = _source(collection, name, lines) if applied else ""
    if submitted("Label all documents", missing, type="primary", key="run_labels"):
        options = ["--engine", str(settings.engine), "--name", name, *replace]
        options += ["--multi-label"] if settings.multi_label else []
        options += ["--threshold", f"{settings.threshold:g}"] if settings.threshold else []
        options += ["--none"] if settings.none else []
        options += ["--where", where.strip()] if where.strip() else []
        options += ["--budget", budget.strip()] if budget.strip() else []
        options += ["--corrections-of", source] if source else [] if applied else ["--no-corrections"]
        st.session_state["_label_run"], st.session_state["_label_part"] = name, "documents by label"
        start(shelf, collection, f"Label run '{name}'", "label", "--labels-file", labels_file(shelf, lines), *options)


def _applies(collection: Collection, name: str) -> bool:
    try:
        kept = len(collection.corrections(name)) if name else 0
    except SondeError:
        kept = 0
    return st.toggle(f"Learn from {counted(kept, 'correction')}", value=True, key="heed") if kept else True


NO_OTHER = "no other run"


def _source(collection: Collection, name: str, lines: list[str]) -> str:
    """Ask which other run's corrections the new run takes, where some have its labels; "" for none."""
    known = {label.name.casefold() for label in make_labels(lines)}
    usable: dict[str, int] = {}
    for run in collection.uncounted_runs(CORRECTION):
        kept = collection.corrections(run.name) if run.name != name else []
        many = sum(all(label.casefold() in known for label in each.labels) for each in kept)
        given = [label.casefold() for each in kept for label in each.labels]
        if kept and (not given or any(label in known for label in given)):  # none of these is known to every run
            usable[run.name] = many
    if not usable:
        return ""
    chosen = st.selectbox(
        "Use the corrections of", [NO_OTHER, *usable], key="run_corrections_of",
        format_func=lambda run: f"{run} ({usable[run]:,})" if run in usable else run,
        help="They are copied to the new run, which also learns from them. They stay in the other run too.",
    )  # fmt: skip
    return chosen if chosen in usable else ""


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
                    "Type labels below, one per line. Sonde decides for every document which of them fit.",
                    ":material/label:",
                )
            show_typed(shelf, collection, run, running)
        elif part == "review":
            show_review(shelf, collection, run, running)
        elif part == "against a column":
            show_truth(collection, run)
        else:
            found = collection.counted_run(run)
            show_outcome(shelf, collection, found.run, found.items, changeable=may_write(), running=running)


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
    part = right.segmented_control("Show", PARTS, key="part", bind="query-params", wrap=True)
    return by_name[name], part or "documents by label"
