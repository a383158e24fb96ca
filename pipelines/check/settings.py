"""What a check is asked to look for."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from ...indexer.errors import UsageError, arg, as_texts, out_of_range

CheckKind = Literal[
    "label", "leak", "duplicate", "outlier", "language", "boilerplate", "short", "cut", "personal data", "non-answer"
]  # fmt: skip
KINDS: tuple[CheckKind, ...] = get_args(CheckKind)
TITLES: dict[CheckKind, str] = {
    "label": "doubtful label",
    "leak": "in several parts",
    "duplicate": "duplicate",
    "outlier": "outlier",
    "language": "other language",
    "boilerplate": "boilerplate",
    "short": "very short",
    "cut": "cut off",
    "personal data": "personal data",
    "non-answer": "no answer",
}
"""The name of the group of documents that each kind of check finds."""


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """Settings of a check.

    Attributes:
        label: Column with the label of each document; None checks no labels.
        split: Column with the part that a document belongs to, such as train and test; None looks for no leaks.
        kinds: What to look for; all of `KINDS` if empty, the first two only if their column is given.
        near: Minimum Jaccard similarity of near duplicates, above 0, at most 1.
        meaning: Minimum cosine of duplicates by meaning, above 0, at most 1.
        region: Country code such as "US", by whose rules phone numbers without a country code are read; None finds only
            numbers that begin with + and a country code.
        seed: Of everything that chance decides.
    """

    label: str | None = None
    split: str | None = None
    kinds: Sequence[CheckKind] = ()
    near: float = 0.8
    meaning: float = 0.98
    region: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Take one kind as one kind, and the name of a finding as the kind that finds it."""
        found = {title: kind for kind, title in TITLES.items()}
        given = as_texts(self.kinds, "kind of check")
        object.__setattr__(self, "kinds", tuple(found.get(kind, kind) for kind in given))

    def check(self) -> None:
        """Check what can be checked without the collection.

        Raises:
            UsageError: A setting is not valid; the message names the alternatives.
        """
        if unknown := [kind for kind in self.kinds if kind not in KINDS]:
            said = f"{', '.join(map(repr, unknown))} is not a kind of check: use {', '.join(KINDS)}"
            raise UsageError(said, code="unknown-option", field="kinds", value=self.kinds, alternatives=KINDS)
        for kind, name in (("label", "label"), ("leak", "split")):
            if kind in self.kinds and getattr(self, name) is None:
                said = f"a check of kind {kind!r} needs a column: give it with {arg(name)}"
                raise UsageError(said, code="missing-option", field=name)
        for name in ("near", "meaning"):
            if not 0 < getattr(self, name) <= 1:
                raise out_of_range(name, getattr(self, name), "give a similarity above 0 and at most 1")
        if self.region is not None:
            from phonenumbers import SUPPORTED_REGIONS

            if self.region.upper() not in SUPPORTED_REGIONS:
                said = f"{self.region!r} is not a region: give a country code of two letters, such as US"
                raise UsageError(said, code="unknown-option", field="region", value=self.region)
        if not 0 <= self.seed < 2**31:
            raise out_of_range("seed", self.seed, f"give a whole number from 0, below {2**31}")

    @property
    def chosen(self) -> tuple[CheckKind, ...]:
        """The kinds to look for, in the order of `KINDS`."""
        given = {"label": self.label, "leak": self.split}
        return tuple(
            kind for kind in KINDS if (kind in self.kinds or not self.kinds) and given.get(kind, "") is not None
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return asdict(self) | {"kinds": list(self.kinds)}
