"""Options of a method's settings, given one by one, as a settings object, or both."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import Any, TypeVar

from ...indexer.errors import UsageError

S = TypeVar("S")
PROGRESS = ("settings", "progress")
"""Arguments that methods have beside their options."""


def settings_from(
    kind: type[S], settings: S | None, options: Mapping[str, Any], method: str, also: Iterable[str] = ()
) -> S:
    """Return the settings of a call; an option overrides the field of the same name in `settings`.

    Args:
        kind: A dataclass of settings.
        settings: Settings that the caller made, or None for the defaults.
        options: Fields of `kind` that the caller named.
        method: The method's name, for messages.
        also: The method's other arguments, so that a message can propose them.

    Raises:
        UsageError: There is no such option; the message names the nearest one. Or `settings` is of another type.
    """
    check_options(options, [field.name for field in fields(kind)], method, also)  # type: ignore[arg-type]
    if settings is None:
        return kind(**options)
    if not isinstance(settings, kind):
        raise UsageError(f"settings is a {type(settings).__name__}: {method} takes sonde.{kind.__name__}")
    return replace(settings, **options)  # type: ignore[type-var]


def check_options(options: Iterable[str], known: Iterable[str], method: str, also: Iterable[str] = ()) -> None:
    """Refuse options that a method does not have.

    Raises:
        UsageError: There is no such option; the message names the nearest one.
    """
    known = list(known)
    for name in options:
        if name not in known:
            close = get_close_matches(name, [*known, *also], 1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(known)}"
            raise UsageError(f"{method} has no option {name!r}: {hint}")
