"""Errors that a user can act on: one line that states the problem and the fix.

A message refers to an argument or a setting with `arg("reduce_to")`. Each interface shows the name in its own form:
`reduce_to` in Python, `--reduce-to` on the command line.
"""

import importlib.util
import math
import re
import reprlib
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Real

_BEGIN, _END, _BETWEEN = (
    "\ufdd0",
    "\ufdd1",
    "\ufdd2",
)  # noncharacters: text never contains them, and `repr` escapes them
_MARKED = re.compile(f"{_BEGIN}([A-Za-z_][A-Za-z0-9_]*)(?:=([a-z]*))?(?:{_BETWEEN}(.*?){_BETWEEN}(.*?))?{_END}")


def arg(name: str, value: str | None = None) -> str:
    """Mark the Python name of an argument or a setting, for use in a message or a notice.

    With a value of small letters, which may be empty, it is `keep="last"` in Python, `--keep last` on the command line.
    """
    return f"{_BEGIN}{name}{_END}" if value is None else f"{_BEGIN}{name}={value}{_END}"


def give_type(column: str, kind: str) -> str:
    """Return the advice to give a column of a table a type, such as "integer" or "date:%d/%m/%Y"."""
    python, elsewhere = f"read=sonde.ReadOptions(type={ {column: kind} })", shlex.quote(f"{column}={kind}")
    both = _BETWEEN.join(("type", python, elsewhere))
    return f"index the file again with a type, such as {_BEGIN}{both}{_END}"


def give_column(name: str) -> str:
    """Return how to say which column of a table is `name`, such as `columns={'name': 'COLUMN'}`."""
    both = _BETWEEN.join(("column", f"columns={ {name: 'COLUMN'} }", shlex.quote(f"{name}=COLUMN")))
    return f"{_BEGIN}{both}{_END}"


def give_each(option: str, name: str, values: Sequence[str]) -> str:
    """Return how to give several values: `ids=['a', 'b']` in Python, `--id a --id b` on the command line."""
    repeated = f" --{option} ".join(map(shlex.quote, values))
    return f"{_BEGIN}{_BETWEEN.join((option, f'{name}={[*values]}', repeated))}{_END}"


class Message(str):
    """A message with names in Python form; `render` converts them for another interface."""

    marked: str

    def __new__(cls, marked: str) -> "Message":
        """Take a sentence with marked names."""
        made = super().__new__(cls, _MARKED.sub(_in_python, marked))
        made.marked = marked
        return made

    def render(self, name: Callable[[str], str]) -> str:
        """Return the sentence with `name` applied to every marked name."""
        return _MARKED.sub(lambda found: name(found[1]) + _spaced(found[4] or found[2]), self.marked)


def _in_python(found: re.Match[str]) -> str:
    if found[3] is not None:
        return found[3]
    return found[1] if found[2] is None else f'{found[1]}="{found[2]}"'


def _spaced(value: str | None) -> str:
    return "" if value is None else " " + (value or "''")


class SondeError(Exception):
    """An operation failed; the message says what failed and what to do.

    Attributes:
        code: A short, stable name of the error, such as "out-of-range".
        field: The Python name of the invalid argument or setting.
        value: The value that was given.
        alternatives: The valid values, if they are a short list.
    """

    exit_code, code = 1, "failed"

    def __init__(
        self, message: str, *, code: str | None = None, field: str | None = None, value: object = None,
        alternatives: Iterable[object] = (),
    ) -> None:  # fmt: skip
        """Take a message in which names are marked with `arg`; it becomes one line, also where it quotes several."""
        self.message = Message(" ".join(map(str.strip, message.splitlines())))
        super().__init__(str(self.message))
        self.code = code or self.code
        self.field, self.value, self.alternatives = field, value, tuple(map(str, alternatives))

    def render(self, name: Callable[[str], str]) -> str:
        """Return the message with `name` applied to the Python name of every argument."""
        return self.message.render(name)

    def prefix(self, subject: str) -> None:
        """Put a subject, such as a file's name, before the message."""
        self._replace(f"{subject}: {self.message.marked}")

    def suffix(self, advice: str) -> None:
        """Put more advice after the message."""
        self._replace(f"{self.message.marked}; {advice}")

    def _replace(self, marked: str) -> None:
        self.message = Message(marked)
        self.args = (str(self.message),)


class UsageError(SondeError):
    """The request itself is not valid, regardless of the data: a bad option, an unknown column, a k of 0."""

    exit_code, code = 2, "usage"


class OtherModelError(UsageError):
    """A collection has another model than the bi-encoder that was given, for example because it was just changed."""

    code = "other-model"


class WriterBusyError(SondeError):
    """Another process is writing to the collection."""

    code = "busy"


class NothingToIndexError(SondeError):
    """The source contains no usable documents."""


class TooManyFieldsError(SondeError):
    """The documents have more metadata fields, with those of the collection, than a collection can hold."""


class MissingExtraError(SondeError):
    """A required optional library is not installed; the message shows the command that installs it."""

    def __init__(self, library: str, extra: str, purpose: str, command: str | None = None) -> None:
        """Name the library, the extra that brings it, its purpose and, if it is not the extra's, the command."""
        installs = command or f"pip install 'sonde[{extra}]'"
        super().__init__(f"{purpose} needs {library}, which is not installed: {installs}")


def need(module: str, library: str, extra: str, purpose: str) -> None:
    """Check that an optional library is installed, before work that needs it at its end. The library is not loaded.

    Raises:
        MissingExtraError: It is not installed.
    """
    if importlib.util.find_spec(module) is None:
        raise MissingExtraError(library, extra, purpose)


def out_of_range(field: str, value: object, advice: str) -> UsageError:
    """Return the error for a number outside a setting's range; `advice` states the valid range."""
    return UsageError(f"{arg(field)} is {value!r}: {advice}", code="out-of-range", field=field, value=value)


def not_finite(model: str, dtype: str) -> SondeError:
    """Return the error for a model that gives infinite numbers or none at all."""
    cure = "its weights are damaged: get the model again" if dtype == "float32" else f"try {arg('dtype')} float32"
    return SondeError(f"{model} produces non-finite numbers in {dtype}: {cure}")


def check_seed(seed: int) -> None:
    """Check a random seed.

    Raises:
        UsageError: It is negative.
    """
    if seed < 0:
        raise out_of_range("seed", seed, "give 0 or more")


LONGEST_SHOWN = 200
"""Characters of a value that a message shows whole."""


LEAST_SIMILAR = 0.65
"""Of a name that is suggested; difflib's own 0.6 takes "paint" for "split"."""


def nearest(value: object, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to a value, in any case of letters; None if none is similar."""
    lowered = {name.lower(): name for name in reversed(list(known))}
    near = get_close_matches(str(value).lower(), lowered, 1, LEAST_SIMILAR)
    return lowered[near[0]] if near else None


def did_you_mean(value: object, known: Iterable[str]) -> str:
    """Return `" (did you mean 'x'?)"` if a known name is similar to a value, else nothing."""
    near = nearest(value, known)
    return f" (did you mean {near!r}?)" if near else ""


def unknown_option(field: str, value: object, known: Iterable[str]) -> UsageError:
    """Return the error for a value that is not among a setting's valid values."""
    names = tuple(known)
    shown = repr(value) if len(str(value)) <= LONGEST_SHOWN else reprlib.repr(value)
    said = f"{arg(field)} is {shown}{did_you_mean(value, names)}: use {', '.join(names)}"
    return UsageError(said, code="unknown-option", field=field, value=value, alternatives=names)


Ids = str | int | Iterable[str | int]
"""One id or several."""
Texts = str | Iterable[str]
"""One text or several."""


def is_finite(value: object) -> bool:
    """Whether a value is a number other than NaN or infinity."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


NOT_UNICODE = "is not valid Unicode: write it in UTF-8"


def is_unicode(text: str) -> bool:
    """Whether UTF-8 and SQLite can hold a text: not one with half a surrogate pair, which Python makes of bad bytes."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def as_text(value: object, field: str) -> str:
    """Return the value as text; a whole number becomes its digits, also if it is a float, as in a column with gaps.

    Args:
        value: A value from the user.
        field: The kind of value, for the message: "id", "query", "text" …

    Raises:
        UsageError: The value is neither a string nor a whole number, or it contains half of a surrogate pair.
    """
    if isinstance(value, str):
        if field != "id" and not is_unicode(value):  # no document has such an id, which is the error then
            raise UsageError(f"{reprlib.repr(value)} {NOT_UNICODE}", code="not-unicode", value=value)
        return value
    if _is_whole(value):
        return str(int(value))  # type: ignore[call-overload]
    raise UsageError(f"{reprlib.repr(value)} is not a valid {field}: give a string", code="wrong-type", value=value)


def _is_whole(value: object) -> bool:
    return is_finite(value) and int(value) == value  # type: ignore[call-overload]


def as_texts(values: object, field: str) -> list[str]:
    """Return texts as a list; a single string or number becomes a list of one. See `as_text`.

    Raises:
        UsageError: The value is neither one text nor several, or an item is neither a string nor a whole number.
    """
    if isinstance(values, str) or _is_whole(values):
        return [as_text(values, field)]
    if isinstance(values, (Mapping, bytes, bytearray)) or not isinstance(values, Iterable):
        said = f"{reprlib.repr(values)} is not a valid {field}: give a string or a list of strings"
        raise UsageError(said, code="wrong-type", value=values)
    return [as_text(value, field) for value in values]
