"""What a label run found: counts, documents, the truth beside them, and corrections by a person."""

import html
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import streamlit as st

from ...indexer.encoder.models import STATIC_MODEL
from ...indexer.store.kinds import LABEL
from ...indexer.store.runs import Item, Run
from ...indexer.wording import counted
from ...pipelines.evaluate.labels import LabelQuality
from ...pipelines.label import ENGINES, NONE_NAME, Correction, Unsure
from ...pipelines.label.engines import LATE, STATIC_NOTE
from ...pipelines.plots.colors import escaped, one_line
from ..api import Collection
from .downloads import show_groups_download
from .jobs.panel import NO_NAME, ask_replace, labels_file, may_start, start
from .page import (
    HEAT,
    empty,
    escape_markdown,
    help_of,
    popover,
    sentence_of,
    sentences,
    show_members,
    show_text,
    shut_popovers,
    submitted,
    theme,
)  # fmt: skip
from .words import explained
from .workspace import Workspace, may_write

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
        st.caption(f"and {counted(len(ranked) - MOST, 'more label')}")


CAUTION = (
    "The engine similarity chooses the best label even if none fits well, unless *None of these* is on. Its "
    "probabilities include the chance that no label fits. If most texts fit none of the labels, the probabilities are "
    "still too high: add the missing labels, and label again."
)
CAUTION_SEVERAL = (
    "Each label is decided by itself: a text gets every label that reaches the minimum probability, or none. Without "
    "corrections, these probabilities are not calibrated, and texts often get too many labels: correct about 60 random "
    "texts, and label again."
)


def _newer(shelf: Workspace, collection: Collection, run: Run, running: bool) -> None:
    """Say how many documents were added since a run, and let them be labelled; labels adapt, so all are labelled."""
    newer = len(collection) - run.documents
    if newer <= 0 or run.parameters.get("where"):
        return
    left, right = st.columns([4, 2], vertical_alignment="center")
    new = f"{counted(newer, 'document')} of {len(collection):,} {'is' if newer == 1 else 'are'}"
    left.info(f"{new} not labelled, because the run is older.")
    if run.parameters.get("engine") in ENGINES:
        with (
            right,
            popover("Label them", "newer", icon=":material/update:", disabled=not may_start(running)),
            sentences(),
        ):
            _label_again(shelf, collection, run)


def show_outcome(
    shelf: Workspace, collection: Collection, run: Run, items: list[Item], *, changeable: bool, running: bool
) -> None:
    """Show the distribution, the documents of a label, and what can be done with the run."""
    report = run.report
    cells = st.columns(4)
    cells[0].metric("Documents", f"{run.documents:,}")
    cells[1].metric("Labels", f"{sum(item.number >= 0 for item in items):,}")
    corrected = len(collection.corrections(run.name))
    cells[2].metric("Corrected", f"{corrected:,}", help=_corrected(corrected, report.get("corrected", 0)))
    if report.get("agreement") is not None:
        told = f"On {counted(report['held_back'], 'document')}, judged and held out."
        cells[3].metric("Agreement", f"{report['agreement']:.0%}", help=told)
    st.caption(_made(run))
    if run.parameters.get("engine") == "similarity":
        warn_of_static(str(run.parameters.get("model")))
        st.caption(CAUTION_SEVERAL if run.parameters.get("multi_label") else CAUTION)
    if changeable:
        _newer(shelf, collection, run, running)
    show_counts({item.name: item.data.get("size", 0) for item in items}, run.documents)
    show_groups_download(collection, run, "labels")
    show_members(collection, run, items, "Documents labelled", "label")
    if changeable:
        _change(collection, run)


def warn_of_static(model: str) -> None:
    """Warn that labels by similarity are often wrong, if the model is the static one."""
    if model.partition(":")[0] == STATIC_MODEL:
        st.warning(STATIC_NOTE[:1].upper() + STATIC_NOTE[1:] + ".")


def _corrected(kept: int, applied: int) -> str:
    """Say what the number of corrections counts."""
    waiting = kept - applied
    return "Labels that you confirmed or changed." + (f" {waiting:,} since this run." if waiting > 0 else "")


def _made(run: Run) -> str:
    said = f"{escape_markdown(str(run.parameters.get('engine')))}, {escape_markdown(str(run.parameters.get('model')))}"
    judged = run.report.get("judged")
    said += f" · {counted(judged, 'document')} judged" if judged else ""
    where = run.parameters.get("where")
    said += f" · only {escape_markdown(where)}" if where else ""
    return f"{said} · {run.created[:16].replace('T', ' ')} UTC · {run.seconds:,.1f} s"


def _change(collection: Collection, run: Run) -> None:
    with st.container(horizontal=True):
        with popover("Rename", "rename", icon=":material/edit:"), sentences():
            name = st.text_input("New name of the run", key="label_rename")
            if submitted("Rename", "" if name.strip() else NO_NAME, type="primary", key="label_rename_do"):
                collection.rename_run(run.name, name.strip(), kind=LABEL)
                st.session_state["_label_run"] = name.strip()
                shut_popovers()
                st.rerun()
        with popover("Delete", "delete", icon=":material/delete:"), sentences():
            st.text(f"Delete the labels {run.name}? The documents and the corrections are kept.")
            if st.button("Delete", type="primary", key="label_delete"):
                collection.delete_run(run.name, kind=LABEL)
                shut_popovers()
                st.rerun()


TRUTH_MOST = 25
"""Classes in the table of confusion."""


def show_truth(collection: Collection, run: Run) -> None:
    """Show how good the labels are where a column knows the truth."""
    columns = [name for name, type in collection.fields().items() if type in ("text", "list", "boolean", "integer")]
    if not columns:
        empty("No column to compare with", "Index a column with the true labels of some documents.")
        return
    truth = st.selectbox(
        "Column with the true labels",
        columns,
        index=None,
        key="truth",
        bind="query-params",
        placeholder="Choose a column",
    )
    if truth is None:
        st.caption("Shows how many labels agree with the column, and which labels are confused.")
        return
    found = _quality(collection, run.name, truth, (*collection.documents_state(), run.number, run.created))
    cells = st.columns(3)
    cells[0].metric("Documents with both", f"{found.documents:,}")
    told = f"{explained(found.measure)} {found.margin}."
    cells[1].metric(found.measure.capitalize(), f"{found.accuracy:.3f}", help=told)
    cells[2].metric("Macro F1", f"{found.macro_f1:.3f}", help=explained("macro F1"))
    for note in found.notes:
        st.warning(sentence_of(note))
    if found.confusion:
        _confusion(found)
    table = [
        {"label": each.label, "precision": round(each.precision, 3), "recall": round(each.recall, 3),
         "F1": round(each.f1, 3), "documents": each.support}
        for each in found.classes
    ]  # fmt: skip
    st.dataframe(table, hide_index=True, column_config=help_of("precision", "recall", "F1"))


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
    shown = [escaped(one_line(name, 24)) for name in names]
    figure = go.Figure(
        go.Heatmap(z=np.log1p(cells), x=shown, y=shown, colorscale=HEAT[theme()], showscale=False, xgap=1, ygap=1,
                   text=[[f"{count:,}" if count else "" for count in row] for row in cells.tolist()],
                   texttemplate="%{text}", hovertemplate="true label %{y}, assigned %{x}: %{text}<extra></extra>")
    )  # fmt: skip
    figure.update_layout(
        height=140 + 30 * len(names), margin={"l": 10, "r": 10, "t": 10, "b": 10},
        xaxis={"type": "category", "title": "assigned label", "side": "top"},
        yaxis={"type": "category", "title": "true label", "autorange": "reversed", "automargin": True},
    )  # fmt: skip
    st.plotly_chart(figure, alt="Documents by true and assigned label")


PAGE = 5
SHORT = 600
RANDOM = "At random"
ORDERS = ["The least certain labels first", RANDOM]


def show_review(shelf: Workspace, collection: Collection, run: Run, running: bool) -> None:
    """Show what is least sure, and the corrections that are kept."""
    names = [item.name for item in collection.items(run) if item.number >= 0]
    kept = collection.corrections(run.name)
    left, right = st.columns([4, 2], vertical_alignment="center")
    waiting = len(kept) - run.report.get("corrected", 0)
    left.markdown(
        f"{counted(len(kept), 'correction')} stored"
        + (f", {waiting:,} since this run. The next run learns from them." if waiting > 0 else ".")
    )
    repeatable = run.parameters.get("engine") in ENGINES
    if may_write() and kept and not repeatable:
        right.caption("These labels were made from examples. To apply the corrections, run the command again.")
    elif may_write() and kept:
        idle = may_start(running)
        with right, popover("Label again", "again", icon=":material/play_arrow:", disabled=not idle), sentences():
            _label_again(shelf, collection, run)
    if not may_write():
        st.text("Your key is read-only. You cannot correct labels with it.")
    order = st.segmented_control(
        "Order", ORDERS, default=ORDERS[0], required=True, key="review_order", bind="query-params",
        label_visibility="collapsed",
    )  # fmt: skip
    _unsure(collection, run, names, order == RANDOM)
    if kept:
        _kept(collection, run, kept)


def _label_again(shelf: Workspace, collection: Collection, run: Run) -> None:
    st.text(
        f"All documents of the run {run.name} are labelled again, new ones too, with your corrections. "
        "The corrections are kept. Labels that you renamed get their original names."
    )
    replace = ask_replace(run.name, "again")
    if st.button("Label again", type="primary", key="again_do", disabled=not replace):
        start(shelf, collection, f"Label run '{run.name}'", *_again(shelf, run), *replace)


@st.fragment
def _unsure(collection: Collection, run: Run, names: list[str], random: bool) -> None:
    with sentences():
        found = collection.unsure(run.name, PAGE, random=random)
        if not found:
            empty("Nothing to review", "You have reviewed every document of this run.")
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
        other = document.other if document.other_score is None else f"{document.other} {document.other_score:.2f}"
        rival = "" if document.other in document.labels else f" · else {other}"
        show_text(f"{given} {document.score:.2f}{rival}", small=True)
        options = [*dict.fromkeys([*document.labels, document.other, *names]), NONE_NAME]
        several = bool(run.parameters.get("multi_label"))
        if several:
            chosen = st.multiselect("Correct labels", options[:-1], list(document.labels), key=f"right {document.id}")
        else:
            start_with = options.index(document.label)
            chosen = st.selectbox("Correct label", options, index=start_with, key=f"right {document.id}")
        changed = "Save" if (list(document.labels) if several else document.label) != chosen else "Confirm"
        if may_write() and st.button(changed, key=f"keep {document.id}", icon=":material/check:"):
            collection.correct({document.id: chosen or NONE_NAME}, run.name)
            st.rerun()


def _kept(collection: Collection, run: Run, kept: list[Correction]) -> None:
    with st.expander(f"{counted(len(kept), 'correction')} stored"):
        st.dataframe(
            [{"id": each.id, "label": ", ".join(each.labels) or NONE_NAME} for each in kept],
            hide_index=True,
            height=240,
        )
        left, right = st.columns([2, 3], vertical_alignment="bottom")
        lines = io.StringIO()
        lines.writelines(f"{_json(each)}\n" for each in kept)
        left.download_button("Download", lines.getvalue(), "corrections.jsonl", on_click="ignore")
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
    words += ["--none"] if asked.get("none") else []
    for option in ("threshold", "where", "budget", "template", "seed", "shortlist", "device", "dtype", "promise"):
        if asked.get(option) is not None:
            words += [f"--{option}", str(asked[option])]
    if asked["engine"] != "similarity" and asked.get("model"):
        words += ["--model", LATE if asked["model"].startswith(f"{LATE}, ") else asked["model"]]
    return words
