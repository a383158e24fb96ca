"""What a map is asked to be."""

from dataclasses import asdict, dataclass
from typing import Any

from ...indexer.errors import UsageError
from ..cluster.settings import SAMPLE


@dataclass(frozen=True, slots=True)
class MapSettings:
    """Settings of one map.

    Attributes:
        seed: Of everything that chance decides.
        neighbours: Neighbours of a text in UMAP's graph: fewer show finer structure, more the large one.
        spread_out: Least distance between places, 0 to 1 (UMAP's `min_dist`).
        sample: Distinct texts that the map is fitted on, at most; the rest is placed among them.
    """

    seed: int = 0
    neighbours: int = 15
    spread_out: float = 0.1
    sample: int = SAMPLE

    def check(self) -> None:
        """Check what can be checked without the collection.

        Raises:
            UsageError: A setting cannot be right.
        """
        for name, low in {"seed": 0, "neighbours": 2, "sample": 100}.items():
            if getattr(self, name) < low:
                raise UsageError(f"{name} is {getattr(self, name)}: give a whole number from {low}")
        if self.seed >= 2**31:
            raise UsageError(f"seed is {self.seed}: give a whole number below {2**31}")
        if not 0 <= self.spread_out <= 1:
            raise UsageError(f"spread_out is {self.spread_out}: give a number from 0 to 1")

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)
