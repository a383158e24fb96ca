"""What counts as a duplicate."""

from dataclasses import dataclass
from typing import Literal, get_args

from ...indexer.errors import UsageError
from ..texts import as_texts

DuplicateKind = Literal["exact", "near", "meaning"]
KINDS: tuple[DuplicateKind, ...] = get_args(DuplicateKind)
Keep = Literal["first", "longest", "newest"]
KEEPS: tuple[Keep, ...] = get_args(Keep)


@dataclass(frozen=True, slots=True)
class DuplicateSettings:
    """Settings of a search for duplicates.

    Attributes:
        kinds: "exact" (the same words, whatever their case, spaces and punctuation), "near" (most of their sequences of
            words in common) and "meaning" (near vectors).
        near: Least Jaccard similarity of two texts' shingles, above 0, at most 1.
        meaning: Least cosine of two documents, above 0, at most 1.
        keep: The representative of a group: the "first" document that was stored, the "longest", or the "newest" by
            `date`, or by the order of storing where there is none.
        date: A date column, for "newest".
        pairs: Closest pairs by meaning to return besides, exact duplicates left out.
    """

    kinds: tuple[DuplicateKind, ...] = KINDS
    near: float = 0.8
    meaning: float = 0.95
    keep: Keep = "first"
    date: str | None = None
    pairs: int = 0

    def __post_init__(self) -> None:
        """Take one kind as one kind."""
        object.__setattr__(self, "kinds", tuple(as_texts(self.kinds, "kind of duplicate")))

    def check(self) -> None:
        """Check what can be checked without the collection.

        Raises:
            UsageError: A setting cannot be right; the message names the alternatives.
        """
        unknown = [kind for kind in self.kinds if kind not in KINDS]
        if unknown or not self.kinds:
            raise UsageError(
                f"{', '.join(map(repr, unknown)) or 'nothing'} is no kind of duplicate: use {', '.join(KINDS)}"
            )
        if self.keep not in KEEPS:
            raise UsageError(f"keep is {self.keep!r}: use {', '.join(KEEPS)}")
        if self.date is not None and self.keep != "newest":
            raise UsageError("a date column only serves to keep the newest: use --keep newest")
        for name in ("near", "meaning"):
            if not 0 < getattr(self, name) <= 1:
                raise UsageError(f"{name} is {getattr(self, name)}: give a similarity above 0 and at most 1")
        if self.pairs < 0:
            raise UsageError(f"pairs is {self.pairs}: give a whole number from 0")
