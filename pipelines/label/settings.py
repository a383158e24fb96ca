"""Settings and budget of a labelling."""

import time
from dataclasses import dataclass, field

from ...indexer.errors import UsageError, arg
from ...indexer.wording import seconds_of
from .engines import check_engine
from .labels import check_template


@dataclass(frozen=True, slots=True)
class Budget:
    """The maximum number of judgements or seconds of judging; None means no limit."""

    calls: int | None = None
    seconds: float | None = None
    began: float = field(default_factory=time.monotonic, compare=False)

    @classmethod
    def parse(cls, text: str | int | None) -> "Budget":
        """Read "5000" (judgements), "300ms", "90s", "5m", "5min" or "1h".

        Raises:
            UsageError: The text is none of these, or the budget is zero.
        """
        if text is None:
            return cls()
        word = str(text).strip().replace(",", "").replace("_", "")
        if word.isdecimal() and int(word) > 0:
            return cls(calls=int(word))
        if seconds := seconds_of(word):
            return cls(seconds=seconds)
        said = f"the budget {text!r} is neither a number of judgements nor a time: give 5000, 90s, 5m or 1h"
        raise UsageError(said, code="wrong-type", field="budget", value=text)

    def over(self) -> bool:
        """Whether the time has run out."""
        return self.seconds is not None and time.monotonic() - self.began >= self.seconds


SHORTLIST = 10
"""Number of labels to judge per text: the most similar ones."""
YES = 0.5
"""Minimum probability of a label, if a text may get several labels."""


@dataclass(frozen=True, slots=True)
class LabelSettings:
    """Settings of a labelling.

    Attributes:
        engine: "nli", "similarity", "reranker" or "ensemble"; the default engine if None.
        model: The judge's model: "bundled", a folder or a hub name.
        multi_label: Whether a text may get several labels, judged independently, or none.
        threshold: Probability below which a label is not assigned; 0.5 with `multi_label`, else no threshold.
        template: NLI's hypothesis template; if None, it depends on the model.
        shortlist: Number of labels to judge per text, the most similar ones; 0 for all.
        budget: Maximum judgements ("5000") or time ("5m"); None judges every text.
        where: A filter on metadata; only matching documents are labelled.
        name: The run's name.
        replace: Whether to replace an existing run of this name.
        device: The device on which the judge runs.
        dtype: Precision of the judge.
        seed: Random seed that selects the texts to judge under a budget.
        corrections: Whether to apply, and learn from, the corrections stored under the run's name.
        none: Whether texts that probably fit no label get "none of these"; only for one label per text.
        promise: The share of fitting texts that may be refused wrongly, between 0 and 1; it implies `none`.
        corrections_of: Another label run; its corrections are first copied to this run.
    """

    engine: str | None = None
    model: str | None = None
    multi_label: bool = False
    threshold: float | None = None
    template: str | None = None
    shortlist: int = SHORTLIST
    budget: str | int | None = None
    where: str | None = None
    name: str = "labels"
    replace: bool = False
    device: str = "auto"
    dtype: str = "auto"
    seed: int = 0
    corrections: bool = True
    none: bool = False
    promise: float | None = None
    corrections_of: str | None = None

    def check(self) -> None:
        """Raise UsageError with the value if a setting is not valid."""
        engine = check_engine(self.engine)
        if self.template is not None:
            check_template(self.template)
        Budget.parse(self.budget)
        if self.budget is not None and engine == "similarity":
            said = f"{arg('budget')} limits the judge of {arg('engine')} nli, reranker or ensemble; similarity has none"
            raise UsageError(said, code="conflict", field="budget", value=self.budget)
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            said = f"the threshold {self.threshold} is no probability: give 0 to 1"
            raise UsageError(said, code="out-of-range", field="threshold", value=self.threshold)
        if self.promise is not None and not 0 < self.promise < 1:
            said = f"the promised rate {self.promise} is not between 0 and 1: give 0.1 for a tenth"
            raise UsageError(said, code="out-of-range", field="promise", value=self.promise)
        if self.refuses and self.multi_label:
            name = "none" if self.promise is None else "promise"
            said = f"{arg(name)} is for one label per text: with {arg('multi_label')}, a text can get no label anyway"
            raise UsageError(said, code="conflict", field=name, value=getattr(self, name))
        if self.corrections_of is not None and not self.corrections:
            said = f"{arg('corrections_of')} needs {arg('corrections')}, which is turned off"
            raise UsageError(said, code="conflict", field="corrections_of", value=self.corrections_of)
        if self.shortlist < 0 or self.shortlist == 1:
            said = f"a shortlist of {self.shortlist} leaves nothing to judge: give 2 or more, or 0 for all"
            raise UsageError(said, code="out-of-range", field="shortlist", value=self.shortlist)

    @property
    def refuses(self) -> bool:
        """Whether texts that probably fit no label get "none of these"."""
        return self.none or self.promise is not None

    @property
    def least(self) -> float:
        """The minimum probability of a label."""
        return self.threshold if self.threshold is not None else YES if self.multi_label else 0.0
