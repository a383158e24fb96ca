"""Arguments and options of the Python API: checked against their annotations, and turned into settings and queries."""

import builtins
import inspect
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from ...indexer.argument_types import conform, conformed
from ...indexer.errors import SondeError, UsageError, as_text, nearest
from ...indexer.sharded import lasting_file, open_stored
from ...indexer.store.collection import StoredCollection
from .options import SearchOptions

if TYPE_CHECKING:
    from ...pipelines.evaluate.trec import Query
    from ...pipelines.search.settings import SearchSettings

S = TypeVar("S")
F = TypeVar("F", bound=Callable[..., Any])
PROGRESS = ("settings", "progress")
"""Arguments that methods have besides their options."""
UNEXPECTED = (
    ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, RuntimeError, TypeError, ValueError,
)  # fmt: skip
"""Errors that mean a fault of Sonde's, or that a collection holds what no writer puts there."""
OUT_OF_MEMORY = "OutOfMemoryError"
"""PyTorch's name for an out-of-memory error of a GPU; PyTorch is not imported for it."""
CHECKED = 20_000
"""Passages up to which a collection is checked after an unexpected error: that takes about two seconds."""


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


def search_settings(
    method: str, k: int | None, settings: "SearchSettings | None", options: SearchOptions
) -> "SearchSettings":
    """Return the settings of a search: the given ones, changed by each option and by `k` where it is given."""
    from ...pipelines.search.settings import SearchSettings

    return settings_from(SearchSettings, settings, options if k is None else {"k": k, **options}, method)


def check_options(options: Iterable[str], known: Iterable[str], method: str, also: Iterable[str] = ()) -> None:
    """Check that a method has all the given options.

    Raises:
        UsageError: An option does not exist; the message suggests the closest name.
    """
    known = list(known)
    for name in options:
        if name not in known:
            near = nearest(name, names := [*known, *also])
            hint = f"did you mean {near!r}?" if near else f"it has {', '.join(names)}"
            said = f"{method} has no option {name!r}: {hint}"
            raise UsageError(said, code="unknown-option", field=name, alternatives=names)


def checked_pairs(queries: "Iterable[Query]") -> "list[Query]":
    """Return queries with their ids.

    Raises:
        UsageError: One is not a pair of an id and a text.
    """
    found = list(queries)
    for pair in found:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            said = f"{reprlib.repr(pair)} is not a valid query: give an id and a text, as ('q1', 'late parcel')"
            raise UsageError(said, code="wrong-type", field="queries", value=pair)
    return [(as_text(key, "id"), as_text(text, "query")) for key, text in found]


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
            raise not_bound(method.__name__, signature, error) from None
        try:
            conform(bound, method, but=PROGRESS)
            with _explained(bound.arguments):
                found = method(*bound.args, **bound.kwargs)
        except SondeError as error:
            if not hasattr(builtins, "__IPYTHON__"):
                raise
            # A notebook would show a hundred lines of ours before the one that says what to do.
            raise error.with_traceback(None) from error.__cause__
        return _iterated(found, bound.arguments) if inspect.isgenerator(found) else found

    return call  # type: ignore[return-value]


class CallError(UsageError, TypeError):
    """A method was called without an argument that it needs, or with one that it does not have."""

    code = "wrong-call"


_NAMED = re.compile(r"(keyword argument|missing a required argument:) '(\w+)'")


def not_bound(method: str, signature: inspect.Signature, error: TypeError, hidden: Iterable[str] = ()) -> CallError:
    """Return the error for a call that does not fit a signature.

    Args:
        method: The method's name.
        signature: Its signature.
        error: What `Signature.bind` raised.
        hidden: Arguments that the caller cannot give, which the message leaves out.
    """
    named = _NAMED.search(str(error))
    names = [name for name in signature.parameters if name not in ("self", *hidden)]
    unknown = named is not None and named[1] == "keyword argument"
    takes = f"; it takes {', '.join(names)}" if names else "; it takes no arguments"
    said = f"{method}: {error}{takes if unknown else ''}"
    return CallError(said, field=named[2] if named else None, alternatives=names if unknown else ())


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
            note = f"to check the collection for damage, run `sonde verify {stored.named}`"
            if note not in getattr(error, "__notes__", ()):  # methods call one another
                error.add_note(note)
            raise
        from ...indexer.sharded.upkeep import verify_stored

        if findings := verify_stored(stored):
            said = (
                f"{stored.named} is damaged: {findings[0].problem}; run `sonde verify {stored.named}` for the full list"
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


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)
