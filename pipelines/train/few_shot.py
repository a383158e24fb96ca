"""Labels from a few examples each: a linear model on embeddings, with or without tuning the bi-encoder."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...indexer.encoder import load_encoder
from ...indexer.encoder.loading import quiet
from ...indexer.encoder.model_folder import weights_digest
from ...indexer.encoder.settings import resolve_devices
from ...indexer.errors import SondeError, UsageError, arg
from ...indexer.progress import Notify, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.kinds import LABEL as LABEL_RUN
from ...indexer.store.run_writing import NewRun, Snapshot
from ...indexer.store.view import document_vectors
from ..label.carry import SCALE, fit_linear
from ..label.examples import LabelledExample, check_labels
from ..label.labels import Label
from ..label.margins import Margins
from ..label.notes import notes_of
from ..label.outcome import LabelReport, apply_corrections, closeness, decide
from ..label.run import (
    LIBRARIES,
    _documents,
    _items,
    _measured,
    _parameters,
    _report,
    _truths,
    begin_run,
    label_texts,
    write_labels,
)
from ..label.settings import LabelSettings
from ..label.solvers import softmax
from .biencoder.examples import Examples, groups_of
from .biencoder.fit import Fit, check_libraries, fit_biencoder, load_base
from .loop import finish, work_folder
from .nli import base_folder
from .pairs import digest_of
from .settings import BiencoderSettings

BATCH = 16
"""Few examples make few steps: small batches make more of them."""


def tune_on_labels(
    texts: Sequence[str], labels: Sequence[str], to: Path, *, base: str, seed: int, notify: Notify = silent
) -> Fit:  # fmt: skip
    """Bring texts of one label together and those of different ones apart; a killed run goes on when called again.

    Nothing is held out: what it is worth is measured on texts that are not given, by `sonde evaluate labels`.

    Raises:
        UsageError: The folder is taken.
        SondeError: The model is not available.
        MissingExtraError: A library of the extra `train` is not installed.
    """
    settings = BiencoderSettings(seed=seed, batch=BATCH)
    settings.check()
    work = work_folder(to)
    examples = Examples("labels", tuple(texts), labels=tuple(labels), groups=groups_of(texts))
    folder, place = base_folder(base, notify), resolve_devices("auto")[0]
    check_libraries(settings)
    run = digest_of(replace(settings, save_every=0.0), examples.first, examples.labels, weights_digest(folder))
    model = load_base(str(folder), place)
    report = fit_biencoder(model, examples, settings, work, run, notify=notify)
    facts = {"base": base, "labels": len(set(labels)), "examples": len(texts), "settings": asdict(settings), "run": run}

    def save(path: Path) -> None:
        with quiet():
            model.save(str(path), create_model_card=False)
        card = f"# A bi-encoder tuned from {base} on {len(texts)} texts of {len(set(labels))} labels\n\n"
        (path / "README.md").write_text(card + "Made by `sonde label --examples … --fine-tune`.\n", "utf-8")

    finish(to, save, facts)
    return report


ENGINE = "examples"
PENALTY = 1.0


def label_by_examples(
    collection: StoredCollection, examples: Sequence[LabelledExample], settings: LabelSettings = LabelSettings(), *,
    fine_tune: Path | None = None, notify: Notify = silent,
) -> LabelReport:  # fmt: skip
    """Label a collection's documents from examples, and store that as a label run.

    A multinomial logistic regression on the vectors, so the labels of texts like the examples cost no model. With
    `fine_tune`, the bi-encoder first learns to bring texts of one label together (as SetFit does, Tunstall et al.,
    2022), and reads all documents again.

    Args:
        collection: The collection.
        examples: Some of each label; one of a stored document keeps its label. Corrections override the run's labels.
        settings: The run's name, filter, threshold and seed.
        fine_tune: The tuned model's folder; one that is there is used as it is.
        notify: Receives progress and sentences.

    Raises:
        UsageError: A setting is not valid, an id has two labels, or the run's name is taken.
        SondeError: An example's document does not exist, or the collection is empty or cannot be written.
    """
    began = time.monotonic()
    settings.check()
    if settings.multi_label:
        said = f"{arg('examples')} give every text one label: leave out {arg('multi_label')}"
        raise UsageError(said, code="conflict", field="multi_label")
    if settings.refuses:
        name = "none" if settings.promise is None else "promise"
        said = f"{arg(name)} is for labels from their names: give {arg('examples')} texts that fit no other label"
        raise UsageError(said, code="conflict", field=name)
    check_labels(examples)
    names = list(dict.fromkeys(example.label for example in examples))
    labels = [Label(name) for name in names]
    begin_run(collection, labels, settings, notify)
    with collection.view() as view:
        snapshot = Snapshot.of(view)
        docs, _ = _documents(view, snapshot, settings.where)
        own = _stored(view, examples)
        vectors, encoder = document_vectors(view, docs), collection.encoder
        truths = _truths(view, labels, settings, docs, notify)
    texts = _texts(collection, examples, own)
    if fine_tune is not None:
        encoder = _tuned(collection, texts, [example.label for example in examples], fine_tune, settings, notify)
        vectors = encoder.encode_texts(label_texts(collection, docs))
    taught = encoder.encode_texts(texts)
    model = fit_linear(SCALE * taught, _one_hot(examples, names), False, PENALTY)
    margins = model.margins(SCALE * vectors)
    for doc, example in zip(own, examples, strict=True):
        if doc is not None:
            margins[docs == doc] = np.where(np.arange(len(names)) == names.index(example.label), 10.0, -10.0)
    known, shares = np.searchsorted(docs, truths.docs), softmax(margins)
    chosen, numbers, scores = apply_corrections(*decide(shares, False, settings.least), known, truths.shares)
    name = str(fine_tune) if fine_tune else encoder.spec.name
    seconds = time.monotonic() - began
    report = _report(labels, settings, ENGINE, name, Margins(margins), numbers, len(docs), len(known), seconds)
    counts = Counter(example.label for example in examples)
    parameters: dict[str, Any] = _parameters(labels, settings, ENGINE, name) | {"examples": dict(counts)}
    new = NewRun(
        kind=LABEL_RUN, name=settings.name, parameters=parameters, libraries=LIBRARIES, report=_measured(report),
        seconds=seconds, items=_items(labels, numbers), assignments=(docs[chosen], numbers, scores),
        arrays={"documents": docs, **closeness(shares, False, settings.least)},
    )  # fmt: skip
    report, others = write_labels(collection, new, snapshot, settings, report)
    return replace(report, notes=notes_of(report, settings, None, False, [*others, *truths.notes]))


def _one_hot(examples: Sequence[LabelledExample], names: list[str]) -> np.ndarray:
    return np.array([[float(example.label == name) for name in names] for example in examples])


def _stored(view: Any, examples: Sequence[LabelledExample]) -> list[int | None]:
    """Return the number of each example's document; None for a text."""
    found: list[int | None] = []
    for example in examples:
        doc = view.document_number(example.id) if example.id is not None else None
        if example.id is not None and doc is None:
            raise SondeError(f"the example {example.id!r} ({example.label}) is no document of {view.collection.named}")
        found.append(doc)
    return found


def _texts(collection: StoredCollection, examples: Sequence[LabelledExample], docs: list[int | None]) -> list[str]:
    known = [doc for doc in docs if doc is not None]
    texts = dict(zip(known, label_texts(collection, np.array(known, np.int64)), strict=True)) if known else {}
    return [texts[doc] if doc is not None else example.text or "" for doc, example in zip(docs, examples, strict=True)]


def _tuned(
    collection: StoredCollection,
    texts: list[str],
    labels: list[str],
    folder: Path,
    settings: LabelSettings,
    notify: Notify,
) -> Any:
    if not folder.exists():
        tune_on_labels(texts, labels, folder, base=collection.spec.name, seed=settings.seed, notify=notify)
    return load_encoder(str(folder), device=settings.device, dtype=settings.dtype, notify=notify)
