"""Numbers of clusters, topics and labels as arguments: -1 stands for the outliers."""

import re
from collections.abc import Sequence
from typing import Any

from .once import Once


class NegativeNumbers(Once):
    """A command whose argument may be a negative number, which Click would take for options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Leave `-1` to the arguments; other unknown options are still refused, as arguments too many."""
        ctx.ignore_unknown_options = any(re.fullmatch(r"-\d+", each) for each in args)
        return super().parse_args(ctx, args)


def group_numbers(words: Sequence[str], name: str) -> list[int]:
    """Return the numbers in words such as "3", "7" or "3,7"; `name` is what the message calls them.

    Raises:
        UsageError: A part is not a whole number.
    """
    from ...indexer.errors import UsageError

    text = ",".join(words)
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{name} is {text!r}: write numbers with commas between them, such as 3,7") from None
