"""The same documents as one collection and in shards, for tests that both give the same answers."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fake_encoder import FakeEncoder

from sonde.app.api import Collection
from sonde.app.api import index as index_both
from sonde.indexer.ingest import BuildSettings
from sonde.indexer.sharded.build import index_sharded
from sonde.pipelines.search.results import Results

WORDS = tuple(
    "red blue green apple car tree house late parcel great bad good battery phone the a of is über 東京 slow".split(" ")  # noqa: SIM905
)
QUERIES = ("red apple", "the battery of a phone", "late parcel", "über", "good", "東京", "something else", "the of")

Row = dict[str, Any]


def rows(count: int, seed: int = 0, start: int = 0) -> list[Row]:
    """Documents of few words, so that many have equal scores and some have equal texts."""
    chance = random.Random(seed)
    return [
        {
            "id": f"d{number}",
            "text": " ".join(chance.choices(WORDS, k=chance.randint(1, 9))),
            "stars": chance.randint(1, 5),
        }
        for number in range(start, start + count)
    ]


class TwoWays:
    """One collection and a sharded one that get the same runs."""

    def __init__(self, folder: Path, shards: int = 4) -> None:
        self.folder, self.shards = folder, shards
        self.encoder = FakeEncoder()

    @property
    def one(self) -> Collection:
        return Collection.open(self.folder / "one.sonde", encoder=self.encoder)  # type: ignore[arg-type]

    @property
    def sharded(self) -> Collection:
        return Collection.open(self.folder / "sharded.sonde", encoder=self.encoder)  # type: ignore[arg-type]

    def index(self, documents: Sequence[Row], sync: bool = False) -> None:
        """Index documents into both."""
        encoder: Any = self.encoder
        index_both(list(documents), self.folder / "one.sonde", encoder=encoder, sync=sync)
        settings = BuildSettings(sync=sync)
        index_sharded(list(documents), self.folder / "sharded.sonde", self.shards, settings=settings, encoder=encoder)

    def delete(self, ids: Sequence[str]) -> None:
        """Delete documents from both."""
        assert self.one.delete(ids) == self.sharded.delete(ids) == len(ids)


def told(results: Results) -> list[tuple[Any, ...]]:
    """Everything that a hit tells."""
    return [
        (hit.id, hit.score, hit.scores, hit.relevance, hit.text, hit.metadata, hit.passage, hit.excerpt, hit.copies)
        for hit in results
    ]


WAYS: tuple[dict[str, Any], ...] = (
    {}, {"mode": "dense"}, {"mode": "lexical"}, {"where": "stars <= 2"}, {"rerank": True}, {"collapse": False, "k": 40},
    {"fusion": "rrf"}, {"offset": 3, "k": 4}, {"explain": True, "k": 3},
)  # fmt: skip
"""Settings of searches."""


def differences(both: TwoWays, queries: Sequence[str] = QUERIES) -> list[tuple[str, dict[str, Any]]]:
    """The searches whose hits differ in anything."""
    one, sharded = both.one, both.sharded
    return [
        (query, way)
        for query in queries
        for way in WAYS
        if told(one.search(query, **way)) != told(sharded.search(query, **way))
    ]
