"""A command that refuses an option given twice, where Click would take the last value."""

from collections import Counter
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
