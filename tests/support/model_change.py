"""Collections whose model changes: their texts, their making, and all that searches find in them."""

import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from fake_encoder import FakeEncoder
from kill_corpus import WORDS
from other_encoder import loaded

from sonde.app.api.collection import Collection
from sonde.indexer.document import Document
from sonde.indexer.ingest import BuildSettings, index_documents
from sonde.pipelines.search.settings import MODES
from sonde.pipelines.tune import models

QUERIES = ("apple river cloud", "engine paper silver", "number 17 winter letter")

COUNT = 120


@pytest.fixture(autouse=True)
def few_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare models on 30 queries: what is tested is the change. tests/pipelines/tune compares on all."""
    monkeypatch.setattr(models, "made", partial(models.made, count=30))


def corpus(count: int = COUNT, salt: int = 0) -> list[Document]:
    chance = random.Random(salt)
    return [
        Document(
            "".join(f"{WORDS[number % 15]} {' '.join(chance.choices(WORDS, k=7))}. " for _ in range(1 + number % 6)),
            title=f"number {number}", key=str(number), metadata={"year": 2000 + number % 20},
        )
        for number in range(count)
    ]  # fmt: skip


def built(folder: Path, documents: Sequence[Document], encoder: FakeEncoder) -> Collection:
    index_documents(documents, folder, settings=BuildSettings(batch=50), encoder=encoder)  # type: ignore[arg-type]
    return Collection.open(folder, loader=loaded)  # type: ignore[arg-type]


def fresh(tmp_path: Path) -> Collection:
    """Return a collection with the model fake."""
    return built(tmp_path / "c.sonde", corpus(), FakeEncoder())


def hits(collection: Collection) -> list[list[tuple[str, float, str]]]:
    """Return ids, scores and passages of every mode; equal scores in the order of ids."""
    return [
        sorted((hit.id, round(hit.score, 4), hit.passage.text) for hit in collection.search(query, k=30, mode=mode))
        for query in QUERIES
        for mode in MODES
    ]
