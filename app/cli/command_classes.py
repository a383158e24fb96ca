"""Commands that read arguments as Click does not: an option may be given once, and -1 is a number, not an option."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand


class Once(TyperCommand):
    """A command whose options with one value may be given once."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Count the options before Click reads their values.

        Raises:
            UsageError: An option with one value is given twice.
        """
        from ...indexer.errors import UsageError

        if not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(args=list(args))
            given = Counter(id(each) for each in order if _takes_one(each))
            for each in order:
                if given[id(each)] > 1:
                    raise UsageError(f"{max(each.opts, key=len)} is given {_times(given[id(each)])}: give it once")
        return super().parse_args(ctx, args)


def _takes_one(parameter: Any) -> bool:
    return parameter.param_type_name == "option" and not (parameter.multiple or parameter.is_flag or parameter.count)


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"


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
