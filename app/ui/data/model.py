"""Change the model of a collection: compare another model with it, switch if that is as good, and undo it."""

from typing import Any

import streamlit as st

from ....indexer.encoder import DEFAULT_MODEL
from ....indexer.encoder.models import STATIC_MODEL
from ....indexer.wording import shown_p
from ...api.functions import last_change, size
from ..jobs import Job
from ..page import escape_markdown, submitted
from ..words import MEASURES, in_pages
from ..workspace import Workspace
from .adding import DEFAULT, OTHER, STATIC, job_device, other_model
from .jobs import model_change, said_of_model
from .overview import info_of, show_damaged

WHAT = (
    "All documents are embedded again with the other model. Then both are compared on your judgements or, if fewer "
    "than 10 queries are judged, on queries made from the texts. The collection does not switch if searches are, or "
    "may be, worse, or if the queries find too little to compare the models. Meanwhile, you can search and add texts. "
    "Documents, tags, judgements, corrections and runs are kept."
)
NO_MODEL = "Choose or type another model."


def show_model(shelf: Workspace, name: str) -> None:
    """Offer another model and, after a change, the way back; show the last comparison."""
    if show_damaged(shelf, name):
        return
    path = shelf.path(name)
    found = info_of(shelf.open(name), str(path), last_change(path))
    busy = shelf.jobs.running(name)
    st.markdown(f"Model in use: **{escape_markdown(found.model)}**")
    st.caption(WHAT)
    if busy:
        st.info(escape_markdown(f"The job “{busy.title}” is running. You can change the model when it is finished."))
        return
    names = {DEFAULT: DEFAULT_MODEL, STATIC: STATIC_MODEL}
    choice = st.selectbox(
        "New model", [*(shown for shown in names if names[shown] != found.model), OTHER], None, key="model-to",
        placeholder="Choose a model",
    )  # fmt: skip
    model = other_model(shelf, "model-other") if choice == OTHER else names.get(choice or "")
    only = st.checkbox("Only compare, do not switch", key="model-dry")
    missing = NO_MODEL if model in (None, found.model) else ""
    if submitted("Compare" if only else "Compare and switch", missing, type="primary", key="model-start"):
        _start(shelf, name, f"Change the model of {name}", "--to", str(model), *(["--dry-run"] if only else []))
    previous = next((other for other in found.other_models if other["previous"]), None)
    if previous and st.button(escape_markdown(f"Undo: back to {previous['model']}"), key="model-undo", help=UNDO):
        _start(shelf, name, f"Undo the change of model of {name}", "--undo")
    last = next((job for job in shelf.jobs.of(name) if job.command[:1] == ("model",) and model_change(job)), None)
    if last:
        _show_result(shelf, name, last, found.model)


UNDO = "Sonde has kept the embeddings of the previous model. Documents that have changed since are embedded first."


def _start(shelf: Workspace, name: str, title: str, *words: str) -> None:
    shelf.jobs.start(title, name, ["model", str(shelf.path(name)), *words, *job_device(shelf), "--json"])
    st.rerun()


def _show_result(shelf: Workspace, name: str, job: Job, now: str) -> None:
    """Show how both models compare and, if the collection kept its model, let it switch all the same."""
    did = model_change(job) or {}
    st.markdown("**Last change**")
    st.text(said_of_model(did))
    if found := did["comparison"]:
        st.caption(escape_markdown(f"Compared on {found['source']}"))
        said = [f"{name}: {MEASURES[name]}." for name in ("nDCG@10", "MRR@10")]
        column = st.column_config.Column(help=" ".join(said))
        st.dataframe(_rows(found), hide_index=True, column_config={"Measure": column})
    for note in did["notes"]:
        st.text(f"Note: {in_pages(note)}.")
    if did["switched"] or did["before"] != now:
        return
    label = "Switch anyway" if (found or {}).get("refusal") else "Switch"
    if st.button(label, key="model-anyway", help="The embeddings already exist. You can undo the switch."):
        words = ["--anyway"] if label != "Switch" else []
        _start(shelf, name, f"Change the model of {name}", "--to", str(did["after"]), *words)


def _rows(found: dict[str, Any]) -> list[dict[str, str]]:
    """Return the comparison as a table, a measure a row."""
    before, after = found["before"], found["after"]
    rows = [
        {
            "Measure": f"{gain['mode']} {gain['measure']}", before["model"]: f"{gain['before']:.3f}",
            after["model"]: f"{gain['after']:.3f}", "Difference": f"{gain['difference']:+.3f}",
            "95 % interval": f"{gain['low']:+.3f} to {gain['high']:+.3f}", "p": shown_p(gain["p"]),
        }
        for gain in found["gains"]
    ]  # fmt: skip
    sizes = {side["model"]: size(side["bytes"]) for side in (before, after)}
    return [*rows, {"Measure": "size of embeddings", **sizes, "Difference": "", "95 % interval": "", "p": ""}]
