"""Reviewing the least sure labels and correcting them; corrections are kept and feed the next run."""

import io

import streamlit as st

from .....indexer.store.runs import Run
from .....indexer.wording import counted
from .....pipelines.label import ENGINES, NONE_NAME, Correction, Unsure
from .....pipelines.label.engines import LATE
from ....api import Collection
from ...jobs.panel import ask_replace, labels_file, may_start, start
from ...page import empty, escape_markdown, sentences, show_text
from ...workspace import Workspace, may_write

PAGE = 5
SHORT = 600


def show_review(shelf: Workspace, collection: Collection, run: Run, running: bool) -> None:
    """Show what is least sure, and the corrections that are kept."""
    names = [item.name for item in collection.items(run) if item.number >= 0]
    kept = collection.corrections(run.name)
    left, right = st.columns([4, 2], vertical_alignment="center")
    waiting = len(kept) - run.report.get("corrected", 0)
    left.markdown(
        f"The documents whose label is least sure come first. {counted(len(kept), 'correction')} kept"
        + (f", {waiting:,} since this run. The next run learns from them." if waiting > 0 else ".")
    )
    repeatable = run.parameters.get("engine") in ENGINES
    if may_write() and kept and not repeatable:
        right.caption("Made from examples: run its command again to heed the corrections.")
    elif may_write() and kept:
        idle = may_start(running)
        with (
            right.popover("Label again with corrections", icon=":material/play_arrow:", disabled=not idle),
            sentences(),
        ):
            _label_again(shelf, collection, run)
    if not may_write():
        st.text("This key may read only: labels cannot be corrected with it.")
    _unsure(collection, run, names)
    if kept:
        _kept(collection, run, kept)


def _label_again(shelf: Workspace, collection: Collection, run: Run) -> None:
    st.text(
        f"The corrections belong to the run {run.name}, so its labels are made again under this name. "
        "The corrections stay. Labels that you renamed get their old names back."
    )
    replace = ask_replace(run.name, "again")
    if st.button("Label again", type="primary", key="again_do", disabled=not replace):
        start(shelf, collection, f"Label run {run.name}", *_again(shelf, run), *replace)


@st.fragment
def _unsure(collection: Collection, run: Run, names: list[str]) -> None:
    with sentences():
        found = collection.unsure(run.name, PAGE)
        if not found:
            empty("Nothing to review", "Every document of this run was corrected.")
        for document in found:
            with st.container(border=True, gap="small"):
                _one(collection, run, names, document)


def _one(collection: Collection, run: Run, names: list[str], document: Unsure) -> None:
    text, choice = st.columns([3, 2], gap="medium")
    with text:
        if document.title.strip():
            show_text(document.title)
        show_text(document.text if len(document.text) <= SHORT else document.text[:SHORT] + " …", small=True)
    with choice:
        given = ", ".join(document.labels) or NONE_NAME
        show_text(f"{given} ({document.score:.2f}), else {document.other}, by {document.margin:.2f}", small=True)
        options = [*dict.fromkeys([*document.labels, document.other, *names]), NONE_NAME]
        several = bool(run.parameters.get("multi_label"))
        if several:
            chosen = st.multiselect("Right labels", options[:-1], list(document.labels), key=f"right {document.id}")
        else:
            start_with = options.index(document.label)
            chosen = st.selectbox("Right label", options, index=start_with, key=f"right {document.id}")
        changed = "Keep" if (list(document.labels) if several else document.label) != chosen else "It is right"
        if may_write() and st.button(changed, key=f"keep {document.id}", icon=":material/check:"):
            collection.correct({document.id: chosen}, run.name)
            st.rerun()


def _kept(collection: Collection, run: Run, kept: list[Correction]) -> None:
    with st.expander(f"{counted(len(kept), 'correction')} kept"):
        st.dataframe(
            [{"id": each.id, "label": ", ".join(each.labels) or NONE_NAME} for each in kept],
            hide_index=True,
            height=240,
        )
        left, right = st.columns([2, 3], vertical_alignment="bottom")
        lines = io.StringIO()
        lines.writelines(f"{_json(each)}\n" for each in kept)
        left.download_button("Download them", lines.getvalue(), "corrections.jsonl", on_click="ignore")
        if may_write():
            chosen = right.multiselect("Forget", [each.id for each in kept], key="forget")
            if chosen and right.button(f"Forget {counted(len(chosen), 'correction')}", key="forget_do"):
                with sentences():
                    collection.forget_corrections(chosen, run.name)
                    st.toast(escape_markdown(f"{len(chosen):,} forgotten"))
                    st.rerun()


def _json(each: Correction) -> str:
    import json

    return json.dumps(each.to_dict(), ensure_ascii=False)


def _again(shelf: Workspace, run: Run) -> list[str]:
    """Return the command that makes a run again as it was asked for."""
    asked = run.parameters
    lines = [
        f"{label['name']}: {label['description']}" if label["description"] else label["name"]
        for label in asked["labels"]
    ]
    words = ["label", "--labels-file", labels_file(shelf, lines), "--name", run.name]
    words += ["--engine", asked["engine"]]
    words += ["--multi-label"] if asked.get("multi_label") else []
    for option in ("threshold", "where", "budget", "template", "seed", "shortlist", "device", "dtype"):
        if asked.get(option) is not None:
            words += [f"--{option}", str(asked[option])]
    if asked["engine"] != "similarity" and asked.get("model"):
        words += ["--model", LATE if asked["model"].startswith(f"{LATE}, ") else asked["model"]]
    return words
