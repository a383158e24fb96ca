"""Arguments and options of the Python API: settings from options, and values checked against their annotations."""

import inspect
import os
import reprlib
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from functools import cache, wraps
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ...indexer.errors import UsageError, arg

S = TypeVar("S")
F = TypeVar("F", bound=Callable[..., Any])
PROGRESS = ("settings", "progress")
"""Arguments that methods have beside their options."""
_WANTED = {
    bool: "True or False", int: "a whole number", float: "a number", str: "a string", os.PathLike: "a path",
    Mapping: "a dictionary", Iterable: "a list", type(None): "None",
}  # fmt: skip
"""What a message asks for, by the kind of value."""


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
        UsageError: There is no such option; the message names the nearest one. Or `settings` or the value of a field
            is of another type.
    """
    check_options(options, [field.name for field in fields(kind)], method, also)  # type: ignore[arg-type]
    if settings is not None and not isinstance(settings, kind):
        raise UsageError(f"settings is a {type(settings).__name__}: {method} takes sonde.{kind.__name__}")
    given = kind(**options) if settings is None else replace(settings, **options)  # type: ignore[type-var]
    for name, annotation in _hints(kind).items():
        check_value(name, getattr(given, name), annotation)
    return given


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


def checked(method: F) -> F:
    """Return a function that checks its arguments against their annotations before it runs.

    A string such as "no" is true, and a string is a sequence of letters: both do harm in silence where True or False
    or a list is meant. Only plain types are checked: `bool`, numbers, strings, paths, lists and dictionaries.

    Raises:
        UsageError: By the function that is returned: an argument is of another type.
    """
    signature = inspect.signature(method)

    @wraps(method)
    def call(*given: Any, **options: Any) -> Any:
        try:
            bound = signature.bind(*given, **options).arguments
        except TypeError:
            return method(*given, **options)  # Python's own message says what is missing
        for name, value in bound.items():
            if name not in PROGRESS and signature.parameters[name].kind is not inspect.Parameter.VAR_KEYWORD:
                check_value(name, value, _evaluated(method, name))
        return method(*given, **options)

    return call  # type: ignore[return-value]


def check_value(name: str, value: Any, annotation: Any) -> None:
    """Refuse a value that an annotation of plain types excludes; other annotations allow everything.

    Raises:
        UsageError: The value is of another type.
    """
    kinds = _kinds(annotation)
    if kinds is None or _normalised(kinds):
        return
    fitting = [kind for kind in kinds if _fits(value, kind)]
    if not fitting:
        wanted = [_WANTED.get(kind) or f"a {kind.__name__}" for kind in kinds if kind is not type(None)]
        said = f"{arg(name)} is {reprlib.repr(value)}: give {' or '.join(wanted)}"
        raise UsageError(said, code="wrong-type", field=name, value=value)
    if fitting == [Iterable] and isinstance(value, (list, tuple)):
        for each in value:
            check_value(name, each, kinds[Iterable])


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def _evaluated(method: Callable[..., Any], name: str) -> Any:
    """Return the annotation of a parameter; Any where it names a type that is imported for type checkers alone."""
    annotation = method.__annotations__.get(name, Any)
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, method.__globals__)
    except NameError:
        return Any


def _kinds(annotation: Any) -> dict[Any, Any] | None:
    """Return the plain kinds that an annotation allows, each with the annotation of its items; None for any value."""
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [_kinds(part) for part in get_args(annotation)]
        return None if None in parts else {kind: items for part in parts if part for kind, items in part.items()}
    if get_origin(annotation) is Literal:
        return {type(value): Any for value in get_args(annotation)}
    plain = get_origin(annotation) or annotation
    if plain is None or plain in (bool, int, float, str, type(None)):
        return {type(None) if plain is None else plain: Any}
    if isinstance(plain, type) and issubclass(plain, os.PathLike):
        return {os.PathLike: Any}
    if isinstance(plain, type) and issubclass(plain, Mapping):
        return {Mapping: Any}
    if isinstance(plain, type) and plain.__module__ in ("collections.abc", "builtins") and issubclass(plain, Iterable):
        items = get_args(annotation)
        return {Iterable: items[0] if items else Any}
    return {plain: Any} if is_dataclass(plain) else None


def _normalised(kinds: Mapping[Any, Any]) -> bool:
    """Whether `as_text` or `as_texts` checks the value where it is used: ids, queries and texts, one or several."""
    return str in kinds and (int in kinds or str in (_kinds(kinds.get(Iterable, Any)) or ()))


def _fits(value: Any, kind: Any) -> bool:
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return kind is bool
    if kind is int:
        return isinstance(value, Integral)
    if kind is float:
        return isinstance(value, Real)
    if kind is Iterable:
        return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))
    return isinstance(value, (str, os.PathLike) if kind is os.PathLike else kind)
