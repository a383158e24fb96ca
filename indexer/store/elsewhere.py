"""Searches of shards by other processes: what they are asked, what they answer, and who passes it on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..wording import counted


@dataclass(frozen=True, slots=True)
class Question:
    """What to find in one shard.

    Attributes:
        shard: Its number.
        version: The name of its published version.
        queries: float32 [m, d].
        k: Passages for each query, at least 1.
        allowed: Which rows of the shard may be found: uint8, 8 rows in each, the lowest bit first. None: all live rows.
        breadth: efSearch or nprobe; None uses the tuned value.
    """

    shard: int
    version: str
    queries: np.ndarray
    k: int
    allowed: np.ndarray | None = None
    breadth: int | None = None


@dataclass(frozen=True, slots=True)
class Way:
    """How embeddings are searched; as text, a part of a sentence.

    Attributes:
        scanned: Number of passages that are each compared with the query; None if a FAISS index is asked instead.
        index: How the FAISS index is asked, such as "hnsw with a selector"; empty for a scan.
        where: " on cuda:0" and so on; empty on the CPU.
    """

    scanned: int | None
    index: str = ""
    where: str = ""

    def __str__(self) -> str:
        """Return what `Results.strategy` says."""
        scan = None if self.scanned is None else f"exact scan of {counted(self.scanned, 'passage')}"
        return f"{scan or self.index}{self.where}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found in one shard.

    Attributes:
        scores: For each query float32 [n], highest first.
        rows: For each query int64 [n], rows of the shard.
        way: How its embeddings were searched.
    """

    scores: Sequence[np.ndarray]
    rows: Sequence[np.ndarray]
    way: Way


class Elsewhere(Protocol):
    """Other processes that hold the FAISS indexes of a collection's shards, so that this one need not load them."""

    def ask(self, questions: Sequence[Question]) -> Sequence[Answer | None]:
        """Return an answer to each question, None if no process gave one in time."""
        ...

    def alive(self) -> Mapping[int, int]:
        """Return by shard how many processes answer for it now."""
        ...
