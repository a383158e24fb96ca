"""Try labels on a random sample of a collection, without creating a run."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...indexer.errors import SondeError
from ...indexer.progress import Notify, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.run_writing import Snapshot
from ...indexer.store.view import document_vectors
from .engines import check_engine
from .labels import NONE, NONE_NAME, Labels, make_labels
from .margins import LabelTexts, Margins, label_corpus
from .none import chances, refused
from .outcome import classified, closeness
from .review import Unsure, number_of
from .run import judge_of, label_texts
from .scores import ENOUGH, adapted_margins, label_vectors
from .settings import LabelSettings


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of labelling a sample.

    Attributes:
        documents: The sample with its labels, least certain first.
        counts: Number of documents in the sample by label.
        engine: The engine.
        adapted: Whether the labels were adapted to the whole collection, as in a run.
        seconds: Duration in seconds.
    """

    documents: tuple[Unsure, ...]
    counts: Mapping[str, int]
    engine: str
    adapted: bool
    seconds: float


def try_labels(
    collection: StoredCollection, labels: Labels, settings: LabelSettings = LabelSettings(), count: int = 50,
    notify: Notify = silent,
) -> Trial:  # fmt: skip
    """Label a random sample. Similarity reads all embeddings, as a run does, so the sample gets the same labels.

    Args:
        collection: The collection.
        labels: Names, with or without descriptions.
        settings: Engine, model, `multi_label`, `threshold` and seed; the other fields apply only to runs.
        count: Number of documents in the sample.
        notify: Receives progress.

    Raises:
        UsageError: The labels or a setting is not valid.
        SondeError: The collection is empty, or a model is not available.
    """
    began = time.monotonic()
    settings = replace(settings, budget=None)
    settings.check()
    engine, made = check_engine(settings.engine), make_labels(labels, several=settings.multi_label)
    with collection.view() as view:
        snapshot = Snapshot.of(view)
        if not len(snapshot.docs):
            raise SondeError(f"{collection.named} holds no documents to label")
        drawn = np.random.default_rng(settings.seed).permutation(len(snapshot.docs))[:count]
        rows = np.sort(drawn)
        adapts = engine == "similarity" and not settings.multi_label and len(snapshot.docs) >= ENOUGH
        docs = snapshot.docs if adapts else snapshot.docs[rows]
        vectors, encoder = document_vectors(view, docs), collection.encoder
        documents = view.documents(snapshot.docs[rows].tolist())
    of_labels = label_vectors(encoder, made)
    none = None if settings.multi_label else chances(vectors, of_labels, settings.seed)
    no_label = refused(none, settings.promise, rows[:0], rows[:0]) if none is not None and settings.refuses else None
    if adapts:
        labelled = Margins(adapted_margins(vectors, of_labels, settings.seed)[rows], adapted=True)
        none, no_label = (None if each is None else each[rows] for each in (none, no_label))
    else:
        sample = LabelTexts(
            vectors, [str(row) for row in rows.tolist()], lambda some: label_texts(collection, docs[some])
        )
        judge = judge_of(collection, engine, settings, notify)
        labelled = label_corpus(sample, made, of_labels, engine, judge, settings, notify=notify)
    shares = labelled.probabilities(settings.multi_label, none)
    given = classified(shares, made, settings.multi_label, settings.least, engine, "", none, no_label)
    close = closeness(shares, settings.multi_label, settings.least)
    found = [
        Unsure(document.id, document.title, document.text, each.labels, next(iter(each.scores.values())),
               NONE_NAME if other == NONE else made[int(other)].name, float(margin), other_score=number_of(score))
        for document, each, other, margin, score in zip(
            (documents[doc] for doc in snapshot.docs[rows].tolist()), given, close["others"], close["margins"],
            close["other_scores"], strict=True,
        )
    ]  # fmt: skip
    found.sort(key=lambda document: document.margin)
    names: Sequence[str] = [*(label.name for label in made), NONE_NAME]
    counts = {name: sum(name in (document.labels or (NONE_NAME,)) for document in found) for name in names}
    if not counts[NONE_NAME]:
        del counts[NONE_NAME]
    return Trial(tuple(found), counts, engine, adapts, time.monotonic() - began)
