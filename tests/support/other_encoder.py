"""A second bi-encoder without weights: it has a smaller window and other vectors, so that passages differ too."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from fake_encoder import DIMENSION, FakeEncoder, WordTokenizer, words

from sonde.indexer.encoder import ModelSpec, Tokens
from sonde.indexer.store.collection import StoredCollection
from sonde.indexer.upkeep.model import bring_up_to_date, changing, embed_beside, previous_beside, switch

WIDER = DIMENSION + 8
SMALLER = 24


class ShortTokenizer(WordTokenizer):
    """As the other one, with a window of 24 words."""

    window = SMALLER

    def tokenize(self, texts: list[str], query: bool) -> list[Tokens]:
        found = super().tokenize(texts, query)
        totals = [len(words(text)) for text in texts]
        return [replace(each, ids=each.ids[:SMALLER], total=total) for each, total in zip(found, totals, strict=True)]


class OtherEncoder(FakeEncoder):
    """Counts texts as `FakeEncoder` does; `same` gives embeddings of the same length as the other model's."""

    def __init__(self, log: Path | None = None, seconds: float = 0.0, *, same: bool = False) -> None:
        super().__init__(log, seconds)
        self.tokenizer = ShortTokenizer()
        self.same = same
        dimension = DIMENSION if same else WIDER
        given = {"name": "other", "digest": "1" * 64, "dimension": dimension, "max_tokens": SMALLER}
        self.spec = replace(FakeEncoder.spec, **given)  # type: ignore[misc]

    def encode(self, tokens: Sequence[Tokens]) -> np.ndarray:
        found = super().encode(tokens)[:, ::-1]
        if self.same:
            return found.copy()
        return np.hstack([found, np.zeros((len(found), WIDER - DIMENSION), np.float32)])


class ContraryEncoder(OtherEncoder):
    """Takes every query for its opposite, so that it is clearly worse."""

    def encode(self, tokens: Sequence[Tokens]) -> np.ndarray:
        signs = np.array([-1.0 if text.query else 1.0 for text in tokens], np.float32)
        return super().encode(tokens) * signs[:, None]


def loaded(spec: ModelSpec, device: str = "auto") -> FakeEncoder:
    """Return the encoder of a collection's model; given to a collection in place of Sonde's own loader."""
    del device
    return OtherEncoder(same=spec.dimension == DIMENSION) if spec.name == "other" else FakeEncoder()


def opened(folder: Path) -> StoredCollection:
    """Open a collection that may have either model."""
    return StoredCollection.open(folder, loader=loaded)  # type: ignore[arg-type]


def changed_to(encoder: FakeEncoder | None, folder: Path) -> None:
    """Give a collection another model without comparing both; None goes back to the model before."""
    collection = opened(folder)
    with changing(folder):
        if encoder is not None:
            other = embed_beside(collection, encoder).folder  # type: ignore[arg-type]
            switch(collection, other, lambda: encoder)  # type: ignore[arg-type, return-value]
        else:
            other, spec = previous_beside(collection)
            bring_up_to_date(collection, other, lambda: loaded(spec))  # type: ignore[arg-type, return-value]
            switch(collection, other, lambda: loaded(spec))  # type: ignore[arg-type, return-value]
    collection.close()
