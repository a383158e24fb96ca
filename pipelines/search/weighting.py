"""The ways to search and to fuse both halves, and how much meaning and words count in the fusion of one query."""

import math
from dataclasses import dataclass
from typing import Literal

Mode = Literal["dense", "lexical", "hybrid"]
MODES: tuple[Mode, ...] = ("hybrid", "dense", "lexical")
Fusion = Literal["convex", "rrf"]
FUSIONS: tuple[Fusion, ...] = ("convex", "rrf")

LEAST = 0.4
"""The share of the dense half never falls below this one."""
BASE, LENGTH, COVER = 0.65, 1.3, 2.4
"""The log odds of that share for a usual query, and how much they fall with the query's length and with the cover."""
RARE, RARE_COVER = 10.0, 0.65
"""How much the log odds fall with the cover times the rarity of the words, and above which product."""
USUAL_LENGTH, USUAL_COVER = 2.0, 0.6
"""A usual query: the logarithm of its number of words, and the share of them that the best lexical hit has."""


@dataclass(frozen=True, slots=True)
class FusionWeight:
    """How a query's two halves were weighted.

    Attributes:
        dense: Share of the dense half, 0 to 1.
        words: Number of words of the query that are not function words.
        cover: Share of them, weighted by rarity, that the best lexical hit has, 0 to 1.
        rarity: How rare they are in the collection, 0 to 1; 1 if each is in one passage at most.
        chosen: Whether the share was chosen for this query, and not set by the user or by `sonde tune`.
    """

    dense: float
    words: int
    cover: float
    rarity: float
    chosen: bool = True

    @classmethod
    def of(cls, words: int, cover: float, rarity: float) -> "FusionWeight":
        """Choose the share of the dense half.

        It is lower for a long query, because a few words match by chance. It is lower if one text has most of the
        words, and lower still if those words are rare, as names and part numbers are. Function words count little in
        all of these, so they never dominate. The constants were fitted on the sets of docs/decisions/0036.
        """
        length, cover = math.log(max(words, 1)) - USUAL_LENGTH, min(cover, 1.0)
        odds = BASE - LENGTH * length - COVER * (cover - USUAL_COVER) - RARE * max(0.0, cover * rarity - RARE_COVER)
        return cls(max(LEAST, 1 / (1 + math.exp(-odds))), words, cover, rarity)

    def __str__(self) -> str:
        share = f"meaning counts {self.dense:.2f} and words {1 - self.dense:.2f}"
        if not self.chosen:
            return f"{share}, as set"
        told = "1 content word" if self.words == 1 else f"{self.words} content words"
        return f"{share}: the query has {told} of rarity {self.rarity:.2f}, and one text has {self.cover:.0%} of them"
