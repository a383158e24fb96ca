"""How much to embed between two commits: little at first, then what takes some seconds at the measured rate."""

import time
from collections.abc import Iterator

from .plan import Batch, PlannedDocument

FIRST_TOKENS = 2_048
"""Of the first commit: a slow model on a busy machine takes some seconds for them."""
SECONDS = 8.0
"""What a commit should take, and so what a kill may cost. Shorter commits would slow down a fast model."""
GROWTH = 4
"""How many times as much as the last commit the next one may have."""


class Pace:
    """Divides planned batches into commits."""

    def __init__(self) -> None:
        self._tokens = FIRST_TOKENS

    def parts(self, batch: Batch) -> Iterator[Batch]:
        """Yield a batch in parts, in order; what is done with a part until the next is asked for is measured.

        A document is not divided. What was skipped or is unchanged belongs to the first part.
        """
        others = batch.read - len(batch.documents)
        part, tokens = Batch([], batch.skipped, batch.unchanged, batch.duplicate_ids, others, batch.turn), 0
        for planned in batch.documents:
            if tokens >= self._tokens:
                began = time.monotonic()
                yield part
                self._measure(tokens, time.monotonic() - began)
                part, tokens = Batch(turn=batch.turn), 0
            part.documents.append(planned)
            part.read += 1
            tokens += _tokens(planned)
        yield part

    def _measure(self, tokens: int, seconds: float) -> None:
        fitting = round(tokens * SECONDS / max(seconds, 1e-3))
        self._tokens = max(1, min(fitting, self._tokens * GROWTH))


def _tokens(planned: PlannedDocument) -> int:
    return sum(len(passage.tokens.ids) for passage in planned.passages or [])
