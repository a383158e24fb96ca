"""Taxonomies out of a collection and into one, in all forms; an import can label documents that it does not name."""

from collections.abc import Callable, Mapping
from dataclasses import replace as with_fields
from typing import Literal, get_args

import numpy as np

from ...indexer.errors import SondeError, UsageError, arg, give_column, unknown_option
from ...indexer.progress import Notify, silent
from ...indexer.store.catalog import ID_COLUMN
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import document_numbers
from ...indexer.store.kinds import TAXONOMY
from ...indexer.store.run_writing import Snapshot, check_run_name, write_run
from ...indexer.store.view import View, document_vectors
from ...indexer.wording import counted
from ..label.labels import MOST_LABELS, Label
from ..label.margins import LabelTexts, label_corpus
from ..label.none import refusal
from ..label.outcome import decide
from ..label.scores import label_vectors
from ..label.settings import LabelSettings
from .changes import State
from .csv_files import documents_csv, from_csv, groups_csv
from .groups import leaves, path, told_apart
from .portable import Portable, from_json, to_json
from .skos import from_skos, to_jsonld, to_turtle
from .stored import load, new_runs

Form = Literal["json", "csv", "documents", "ttl", "jsonld", "rdf"]
FORMS: tuple[Form, ...] = get_args(Form)
_WRITERS: Mapping[str, Callable[[Portable], str]] = {
    "json": to_json, "csv": groups_csv, "documents": documents_csv, "ttl": to_turtle, "jsonld": to_jsonld,
}  # fmt: skip
NOTES = 5
"""Notes that an import gives."""
LONGEST = 256 * 2**20
"""Characters of a file that is read."""

SETTINGS = LabelSettings(engine="similarity", none=True)


def export_taxonomy(collection: StoredCollection, form: str = "json", name: str | None = None) -> str:
    """Return a taxonomy as the text of a file.

    Args:
        collection: Where it is.
        form: "json" (all of it), "csv" (its groups), "documents" (its documents as CSV), or SKOS as "ttl" (Turtle) or
            "jsonld" (JSON-LD).
        name: Its name; the newest one if None.

    Raises:
        UsageError: The form does not exist.
        SondeError: There is no such taxonomy.
    """
    if form not in tuple(_WRITERS):  # a caller may give what has no hash
        raise unknown_option("form", form, _WRITERS)
    with collection.view() as view:
        stored = load(view.catalog, name)
        typical = form in ("json", "ttl", "jsonld")
        return _WRITERS[form](Portable.of(view, stored.state, stored.run.name, typical=typical))


def import_taxonomy(
    collection: StoredCollection, text: str, form: str = "json", name: str | None = None, *,
    documents: str | None = None, columns: Mapping[str, str] | None = None, label: bool = False, replace: bool = False,
    by: str | None = None, notify: Notify = silent,
) -> str:  # fmt: skip
    """Store a taxonomy from the text of a file, and return its name.

    Documents that the collection has are put where the file says.

    Args:
        collection: Where it is stored.
        text: The file.
        form: As for `export_taxonomy`, or "rdf" (SKOS in RDF/XML); "documents" is given as `documents` instead.
        name: Of the taxonomy; the one in the file, or "taxonomy", if None.
        documents: A table of documents, beside a table of groups.
        columns: Columns of these tables by the names that Sonde has for them, where theirs are different.
        label: Whether the other documents are labelled by the groups.
        replace: Whether a taxonomy of this name may be replaced, with its log.
        by: Who imports it; the user of this process if None.
        notify: Receives progress.

    Raises:
        UsageError: The form does not exist, or the name is taken.
        SondeError: The file is not valid, or another process is writing.
        MissingExtraError: rdflib, which reads SKOS, is not installed.
    """
    found = read_form(text, form, documents, columns, collection.get(ID_COLUMN) or None)
    name = name or found.title or str(TAXONOMY)
    with collection.view() as view:
        check_run_name(view.catalog, TAXONOMY, name, replace)
        snapshot, state = Snapshot.of(view), found.state(view)
        groups, renamed = told_apart(state.groups, {})
        state, notes = with_fields(state, groups=groups), _few([*found.notes, *renamed])
        here = len(state.docs)
        state = _labelled(view, _taught(found, state), notify) if label else state
    said = f"imported {counted(len(state.groups), 'group')}, {counted(here, 'document')}"
    said += f", {len(state.docs) - here:,} labelled" if label else ""
    said = "; ".join([said, *notes])
    for note in notes:
        notify(f"note: {note}")
    whole, log = new_runs(name, state, said, by, {"imported": form})
    write_run(collection, whole, snapshot, replace=replace, parts=[log])
    return name


def _few(notes: list[str]) -> list[str]:
    return [*notes[:NOTES], f"{len(notes) - NOTES:,} more of such notes"] if len(notes) > NOTES else notes


def _taught(found: Portable, state: State) -> State:
    """Return a state whose groups have the typical texts of a file as examples, if they have none of their own."""
    groups = {number: with_fields(group, examples=found.examples(number)) for number, group in state.groups.items()}
    return with_fields(state, groups=groups)


def read_form(
    text: str, form: str, documents: str | None = None, columns: Mapping[str, str] | None = None, own: str | None = None
) -> Portable:
    """Return the taxonomy of a file; `own` is the column that the ids of the collection come from.

    Raises:
        UsageError: The form does not exist.
        SondeError: The file is not valid.
    """
    if form not in FORMS or form == "documents":
        raise unknown_option("form", form, [one for one in FORMS if one != "documents"])
    if documents is not None and form != "csv":
        said = f"{arg('documents')} is for a table of groups (csv); a {form} file has documents of its own, or none"
        raise UsageError(said, code="conflict", field="documents")
    if columns and form != "csv":
        said = f"a {form} file has no columns: {give_column('name')} is for tables (csv)"
        raise UsageError(said, code="conflict", field="columns")
    if len(text) > LONGEST:
        raise SondeError(f"the file has {len(text):,} characters; the maximum is {LONGEST:,}", code="bad-file")
    if form == "json":
        return from_json(text)
    return from_csv(text, documents, columns, own) if form == "csv" else from_skos(text, form)


def _labelled(view: View, state: State, notify: Notify = silent) -> State:
    """Return a state in which the documents that it does not know are in its leaf groups, or in none.

    Each leaf is a label: its path and description. The examples of a group count as texts that were corrected to it.

    Args:
        view: Of the collection.
        state: The taxonomy.
        notify: Receives progress.

    Raises:
        UsageError: There are fewer than two leaf groups, or too many.
        SondeError: The model is not available.
    """
    numbers = [number for number in leaves(state.groups) if not state.groups[number].rule]
    if len(numbers) < 2:
        said = "labelling needs at least two groups: add groups to the taxonomy first"
        raise UsageError(said, code="too-few", field="label")
    if len(numbers) > MOST_LABELS:
        said = (
            f"the taxonomy has {len(numbers):,} groups to label by; the maximum is {MOST_LABELS:,}: import it without "
        )
        said += f"{arg('label')}"
        raise UsageError(said, code="too-many", field="label")
    labels = [Label(path(state.groups, number), state.groups[number].description) for number in numbers]
    encoder = view.collection.encoder
    notify("labelling the documents by the groups")
    of_labels = label_vectors(encoder, labels)
    corpus, docs = _corpus(view, state, numbers)
    found = label_corpus(corpus, labels, of_labels, "similarity", None, SETTINGS, notify=notify)
    # The examples all fit a label, so they do not tell how many texts fit none.
    plain = LabelTexts(corpus.vectors, corpus.keys, corpus.read)
    none, refused = refusal(plain, of_labels, SETTINGS)
    texts, chosen, scores = decide(found.probabilities(False, none), False, 0.0, none, refused)
    unknown = (texts < len(docs)) & ~np.isin(docs[np.minimum(texts, len(docs) - 1)], state.docs)
    placed = np.where(chosen < 0, -1, np.array(numbers)[chosen])[unknown]
    return state.placed(docs[texts[unknown]], placed, np.round(scores[unknown], 6))


def _corpus(view: View, state: State, numbers: list[int]) -> tuple[LabelTexts, np.ndarray]:
    """Return the texts to label, the examples after the documents, and the numbers of the documents, int64."""
    docs = document_numbers(view.catalog)
    examples = [(place, text) for place, n in enumerate(numbers) for text in state.groups[n].examples]
    vectors = document_vectors(view, docs)
    truth = np.zeros((len(examples), len(numbers)))
    truth[np.arange(len(examples)), [place for place, _ in examples]] = 1
    if examples:
        vectors = np.concatenate([vectors, view.collection.encoder.encode_texts([text for _, text in examples])])
    keys = [str(place) for place in range(len(vectors))]
    known = np.arange(len(docs), len(vectors))
    return LabelTexts(vectors, keys, lambda rows: ["" for _ in rows], known, truth), docs
