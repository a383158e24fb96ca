"""Arguments and options of the Python API: settings from options, and values checked against their annotations."""

import inspect
import os
import reprlib
import types
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from functools import cache, wraps
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ...indexer.errors import SondeError, UsageError, arg, out_of_range
from ...indexer.sharded import lasting_file, open_stored
from ...indexer.store.collection import StoredCollection

S = TypeVar("S")
F = TypeVar("F", bound=Callable[..., Any])
PROGRESS = ("settings", "progress")
"""Arguments that methods have besides their options."""
COUNTS = ("count", "k", "length", "most", "offset", "sample", "start")
"""Arguments that are counts, and so must not be negative."""
UNEXPECTED = (
    ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, RuntimeError, TypeError, ValueError,
)  # fmt: skip
"""Errors that mean a fault of Sonde's, or that a collection holds what no writer puts there."""
OUT_OF_MEMORY = "OutOfMemoryError"
"""PyTorch's name for an out-of-memory error of a GPU; PyTorch is not imported for it."""
CHECKED = 20_000
"""Passages up to which a collection is checked after an unexpected error: that takes about two seconds."""
_WANTED = {
    bool: "True or False", int: "a whole number", float: "a number", str: "a string", os.PathLike: "a path",
    Iterable: "a list", type(None): "None",
}  # fmt: skip
"""How error messages name each kind of value."""


def settings_from(
    kind: type[S], settings: S | None, options: Mapping[str, object], method: str, also: Iterable[str] = ()
) -> S:
    """Return the settings of a call; an option overrides the field of the same name in `settings`.

    Args:
        kind: A dataclass of settings.
        settings: Settings from the caller, or None for the defaults.
        options: Fields of `kind` that the caller passed by name.
        method: The method's name, for messages.
        also: The method's other arguments, so that a message can suggest them.

    Raises:
        UsageError: An option does not exist (the message suggests the closest name), or `settings` or the value of a
            field has the wrong type.
    """
    check_options(options, [field.name for field in fields(kind)], method, also)  # type: ignore[arg-type]
    if settings is not None and not isinstance(settings, kind):
        raise UsageError(f"settings is a {type(settings).__name__}: {method} takes sonde.{kind.__name__}")
    hints = _hints(kind)
    options = {name: conformed(name, value, hints[name]) for name, value in options.items()}
    given = kind(**options) if settings is None else replace(settings, **options)  # type: ignore[type-var]
    for name, hint in hints.items():
        conformed(name, getattr(given, name), hint)
    return given


def check_options(options: Iterable[str], known: Iterable[str], method: str, also: Iterable[str] = ()) -> None:
    """Check that a method has all the given options.

    Raises:
        UsageError: An option does not exist; the message suggests the closest name.
    """
    known = list(known)
    for name in options:
        if name not in known:
            close = get_close_matches(name, [*known, *also], 1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join([*known, *also])}"
            raise UsageError(f"{method} has no option {name!r}: {hint}")


def checked(method: F) -> F:
    """Return a function that checks its arguments against their annotations before it runs.

    Without this check, some mistakes go unnoticed: "no" counts as true, and a string passes as a list of letters.
    Only plain types are checked: `bool`, numbers, strings, paths, lists and dictionaries.

    Raises:
        UsageError: The returned function raises it if an argument has the wrong type or a count is negative.
        SondeError: The method failed because the collection holds values that no writer puts there.
    """
    known: list[inspect.Signature] = []  # of no use to most methods of a class, so read at the first call

    @wraps(method)
    def call(*given: Any, **options: Any) -> Any:
        signature = known[0] if known else inspect.signature(method)
        known[:] = [signature]
        try:
            bound = signature.bind(*given, **options)
        except TypeError as error:  # Python's own message would name a class
            raise _not_bound(method.__name__, str(error)) from None
        for name, value in bound.arguments.items():
            if name not in PROGRESS and signature.parameters[name].kind is not inspect.Parameter.VAR_KEYWORD:
                bound.arguments[name] = conformed(name, value, _evaluated(method, name))
        with _explained(bound.arguments):
            found = method(*bound.args, **bound.kwargs)
        return _iterated(found, bound.arguments) if inspect.isgenerator(found) else found

    return call  # type: ignore[return-value]


class CallError(UsageError, TypeError):
    """A method was called without an argument that it needs, or with one that it does not have."""

    code = "wrong-call"


def _not_bound(method: str, said: str) -> CallError:
    return CallError(f"{method}: {said}")


@contextmanager
def _explained(given: Mapping[str, Any]) -> Iterator[None]:
    """Raise what is wrong with the collection in place of an error that it caused.

    A large collection is not read for it, since that takes minutes: the error gets a note that says how to check.
    """
    try:
        yield
    except UNEXPECTED as error:
        if isinstance(error, MemoryError) or type(error).__name__ == OUT_OF_MEMORY:
            said = "not enough memory: free some memory, or process fewer texts at once"
            raise SondeError(said, code="memory") from error
        stored = _collection_of(given)
        if stored is None:
            raise
        if _rows(stored) > CHECKED:
            note = f"to check the collection for damage, run `sonde verify {stored.path}`"
            if note not in getattr(error, "__notes__", ()):  # methods call one another
                error.add_note(note)
            raise
        from ...indexer.sharded.upkeep import verify_stored

        if findings := verify_stored(stored):
            said = (
                f"{stored.path} is damaged: {findings[0].problem}; run `sonde verify {stored.path}` for the full list"
            )
            raise SondeError(said, code="damaged") from None
        raise


def _iterated(found: Iterator[Any], given: Mapping[str, Any]) -> Iterator[Any]:
    with _explained(given):
        yield from found


def _collection_of(given: Mapping[str, Any]) -> StoredCollection | None:
    """Return the collection that a call is about; None if it is about none, or about one that does not exist.

    Raises:
        SondeError: It is damaged.
    """
    first, to = next(iter(given.values()), None), given.get("to")
    stored = getattr(first, "stored", None)
    if isinstance(to, (str, Path)) and not isinstance(stored, StoredCollection) and lasting_file(Path(to)):
        stored = open_stored(Path(to))
    return stored if isinstance(stored, StoredCollection) else None


def _rows(stored: StoredCollection) -> int:
    """Return how many embeddings a collection has.

    Raises:
        SondeError: Its catalog is damaged.
    """
    return sum(segment.count for segment in stored.open_catalog().segments())


def conformed(name: str, value: Any, annotation: Any) -> Any:
    """Check a value against an annotation of plain types, and return it with NumPy values converted to Python.

    For any other annotation, the value is returned unchanged.

    Raises:
        UsageError: The value has the wrong type, or a count is negative.
    """
    kinds = _kinds(annotation)
    if kinds is None:
        return value
    value = _of_python(value, kinds)
    if _normalised(kinds):
        return value
    fitting = [kind for kind in kinds if _fits(value, kind)]
    if not fitting:
        wanted = [_WANTED.get(kind) or f"a {kind.__name__}" for kind in kinds if kind is not type(None)]
        said = f"{arg(name)} is {reprlib.repr(value)}: give {' or '.join(wanted)}"
        raise UsageError(said, code="wrong-type", field=name, value=value)
    if name in COUNTS and isinstance(value, int) and value < 0:
        raise out_of_range(name, value, "give a whole number, 0 or more")
    if fitting == [Iterable] and isinstance(value, (list, tuple)) and _kinds(kinds[Iterable]) is not None:
        each = [conformed(name, item, kinds[Iterable]) for item in value]
        return each if isinstance(value, list) else tuple(each)
    return value


def _of_python(value: Any, kinds: Mapping[Any, Any]) -> Any:
    """Convert a NumPy number, or a NumPy array where a list is allowed, to Python; return other values unchanged."""
    if not hasattr(value, "dtype") or not hasattr(value, "tolist"):
        return value
    return value.tolist() if getattr(value, "ndim", 1) == 0 or Iterable in kinds else value


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def _evaluated(method: Callable[..., Any], name: str) -> Any:
    """Return the annotation of a parameter, or Any if it names a type that is imported only for type checkers."""
    annotation = method.__annotations__.get(name, Any)
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, method.__globals__)
    except NameError:
        return Any


@cache
def _kinds(annotation: Any) -> dict[Any, Any] | None:
    """Return the plain types that an annotation allows, with the annotations of their items; None if any value fits."""
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [_kinds(part) for part in get_args(annotation)]
        return None if None in parts else {kind: items for part in parts if part for kind, items in part.items()}
    if get_origin(annotation) is Literal:
        return {type(value): Any for value in get_args(annotation)}
    plain = get_origin(annotation) or annotation
    if plain is None or plain in (bool, int, float, str, type(None)):
        return {type(None) if plain is None else plain: Any}
    if isinstance(plain, type) and issubclass(plain, Path):
        return {os.PathLike: Any}
    if isinstance(plain, type) and issubclass(plain, Mapping):
        return None  # what takes a dictionary shows an example of one
    several = isinstance(plain, type) and issubclass(plain, (Iterable, Container))
    if several and plain.__module__ in ("collections.abc", "builtins"):
        items = get_args(annotation)
        return {Iterable: items[0] if items else Any}
    return {plain: Any} if is_dataclass(plain) else None


def _normalised(kinds: Mapping[Any, Any]) -> bool:
    """Whether `as_text` or `as_texts` checks the value later: one or several ids, queries or texts."""
    return str in kinds and (int in kinds or str in (_kinds(kinds.get(Iterable, Any)) or ()))


def _fits(value: Any, kind: Any) -> bool:
    if isinstance(value, bool):
        return kind is bool
    if kind is int:
        return isinstance(value, Integral)
    if kind is float:
        return isinstance(value, Real)
    if kind is Iterable:
        return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))
    return isinstance(value, (str, os.PathLike) if kind is os.PathLike else kind)
