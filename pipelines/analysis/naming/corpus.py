"""Naming groups of a collection's documents: which texts are read, with which model, and what the run keeps of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ....indexer.errors import SondeError
from ....indexer.progress import Notify, silent
from ....indexer.store.collection import StoredCollection
from ....indexer.store.run_writing import NAME_ACCURACY
from ....indexer.store.runs import Item
from ....indexer.store.view import View
from ..corpus import Corpus, texts_of
from ..describe import languages
from ..neighbours import one_thread
from .choice import NameAccuracy
from .names import Embed, Naming, Sample, rows_to_read

MEASURED = (NAME_ACCURACY, "name_readers", "name_texts")
"""What a report keeps of the measurement."""
AUTOMATIC = "named"
"""In the data of a group: the name that was made for it, whatever it is called now."""


def embedder(collection: StoredCollection, choice: str, notify: Notify = silent) -> Embed | None:
    """Return what embeds phrases: the collection's model, or None if it is not wanted, or not available.

    Raises:
        SondeError: It is wanted ("model") and is not available.
    """
    if choice == "terms" or (choice == "auto" and not collection.encoder_at_hand):
        return None
    try:
        encoder = collection.encoder
    except SondeError as error:
        if choice == "model":
            raise
        error.prefix("groups are named by their terms alone")
        notify(error.message)
        return None

    def embed(phrases: list[str]) -> np.ndarray:
        with one_thread():
            return encoder.encode_texts(phrases)

    return embed


def naming_of(
    view: View, corpus: Corpus, groups: np.ndarray, number: int, seed: int, embed: Embed | None = None
) -> Naming:
    """Return what names groups of a collection's texts.

    Args:
        view: Of the collection.
        corpus: Its documents.
        groups: int64 [distinct texts], -1 for outliers.
        number: Of groups.
        seed: Of the samples.
        embed: As `embedder` gives it.
    """
    rows = rows_to_read(groups, seed)
    texts = texts_of(view, corpus.snapshot.docs[corpus.first[rows]])
    vectors = corpus.vectors[rows] if embed else None
    spoken = languages(view) or ["en"]
    return Naming(Sample(texts, groups[rows], number, spoken, vectors, embed, view.generation.spec.name), seed)


def with_accuracy(items: Sequence[Item], accuracy: NameAccuracy) -> list[Item]:
    """Return items with their `name_accuracy`, in the order of the groups; outliers, number -1, stay as they are."""
    values = iter(accuracy.groups)
    return [
        item if item.number < 0 else replace(item, data={**item.data, NAME_ACCURACY: next(values)}) for item in items
    ]


def report_of(accuracy: NameAccuracy) -> dict[str, Any]:
    """Return what a run's report says of its names."""
    return dict(zip(MEASURED, (accuracy.whole, accuracy.readers, accuracy.texts), strict=True))
