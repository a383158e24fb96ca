"""How much a labelling may cost: so many judgements of a text against a label, or so many minutes."""

import re
import time
from dataclasses import dataclass, field

from ...indexer.errors import UsageError

_MINUTES = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h)")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Budget:
    """The most calls of the judge, or seconds of judging; None is no limit."""

    calls: int | None = None
    seconds: float | None = None
    began: float = field(default_factory=time.monotonic, compare=False)

    @classmethod
    def parse(cls, text: str | int | None) -> "Budget":
        """Read "5000" (judgements), "90s", "5m" or "1h".

        Raises:
            UsageError: It is none of these, or nothing.
        """
        if text is None:
            return cls()
        word = str(text).strip().replace(",", "").replace("_", "")
        if word.isdigit() and int(word) > 0:
            return cls(calls=int(word))
        if (found := _MINUTES.fullmatch(word)) and float(found[1]) > 0:
            return cls(seconds=float(found[1]) * _SECONDS[found[2]])
        raise UsageError(f"the budget {text!r} is neither a number of judgements nor a time: give 5000, 90s, 5m or 1h")

    def over(self) -> bool:
        """Whether the time is up."""
        return self.seconds is not None and time.monotonic() - self.began >= self.seconds
