"""What a watch is asked."""

import math
import re
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from ...indexer.errors import UsageError, arg, out_of_range
from ...indexer.store.fields import stored_text

MIDNIGHT = "T00:00:00"
FEWEST_PERMUTATIONS, PRECISION = 199, 10
"""Permutations at least; beyond, the smallest p value is this many times finer than the rate of false alarms."""


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """Settings of a watch.

    Attributes:
        since: What "new" means: a date such as "2026-11-01" (documents of that day or later are new), or the name of a
            cluster, topic, map or label run or a taxonomy (documents that it does not know are new).
        date: Column with the dates; None takes the only one. For a date in `since`.
        run: Cluster or topic run whose groups are compared; None takes the newest, or makes clusters if there is none.
        alarms: Chance that a watch reports anything although the new documents are like the old, 0.001 to 0.5.
        seed: Of everything that chance decides.
    """

    since: str = ""
    date: str | None = None
    run: str | None = None
    alarms: float = 0.01
    seed: int = 0

    def check(self) -> None:
        """Check what can be checked without the collection.

        Raises:
            UsageError: A setting is not valid; the message says what is.
        """
        if not self.since.strip():
            said = f"say what is new: {arg('since')} takes a date such as 2026-11-01, or the name of a run"
            raise UsageError(said, code="empty", field="since")
        if self.date is not None and self.moment is None:
            said = (
                f"{arg('since')} {self.since!r} is not a date, which {arg('date')} needs: give one such as 2026-11-01"
            )
            raise UsageError(said, code="bad-date", field="since", value=self.since)
        if not 0.001 <= self.alarms <= 0.5:
            raise out_of_range("alarms", self.alarms, "give a chance from 0.001 to 0.5")
        if not 0 <= self.seed < 2**31:
            raise out_of_range("seed", self.seed, f"give a whole number from 0, below {2**31}")

    @property
    def moment(self) -> str | None:
        """The date in `since` as the catalog stores dates, midnight as its day; None if `since` names a run.

        Dates are compared as texts, so a month or a year is a beginning of the dates in it.
        """
        given = self.since.strip()
        month = re.fullmatch(r"\d{4}-\d{2}", given)
        try:
            found = stored_text(datetime.fromisoformat(f"{given}-01" if month else given))
        except ValueError:
            return None
        return given if month else found.removesuffix(MIDNIGHT)

    @property
    def like_date(self) -> bool:
        """Whether `since` was probably meant as a date."""
        return re.fullmatch(r"\d{1,4}[-./]\d{1,2}([-./]\d{1,4})?([T ].*)?", self.since.strip()) is not None

    @property
    def permutations(self) -> int:
        """How many permutations tell what chance does."""
        return max(FEWEST_PERMUTATIONS, math.ceil(PRECISION / self.alarms) - 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return asdict(self)
