"""Errors that a user can act on: one line that says what is wrong and what to do.

A message refers to an argument or a setting by `arg("reduce_to")`. Each interface shows it under its own name:
`reduce_to` in Python, `--reduce-to` on the command line.
"""

import math
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real

_BEGIN, _END = "\ufdd0", "\ufdd1"  # noncharacters: text does not hold them, and `repr` escapes them
_MARKED = re.compile(f"{_BEGIN}([A-Za-z_][A-Za-z0-9_]*){_END}")


def arg(name: str) -> str:
    """Return the mark of an argument or a setting, by its Python name, for a message or a notice."""
    return f"{_BEGIN}{name}{_END}"


class Message(str):
    """A sentence as Python shows it; `render` shows it as another interface does."""

    marked: str

    def __new__(cls, marked: str) -> "Message":
        """Take a sentence with marks."""
        made = super().__new__(cls, _MARKED.sub(r"\1", marked))
        made.marked = marked
        return made

    def render(self, name: Callable[[str], str]) -> str:
        """Return the sentence with every marked name as `name` gives it."""
        return _MARKED.sub(lambda found: name(found[1]), self.marked)


class SondeError(Exception):
    """Something failed; the message says what, and what to do about it.

    Attributes:
        code: A short stable name of the mistake, such as "out-of-range".
        field: The Python name of the argument or setting that is wrong.
        value: What was given for it.
        alternatives: What may be given instead, if that is a short list.
    """

    exit_code, code = 1, "failed"

    def __init__(
        self, message: str, *, code: str | None = None, field: str | None = None, value: object = None,
        alternatives: Iterable[object] = (),
    ) -> None:  # fmt: skip
        """Take a message, in which `arg` marks names."""
        self.message = Message(message)
        super().__init__(str(self.message))
        self.code = code or self.code
        self.field, self.value, self.alternatives = field, value, tuple(map(str, alternatives))

    def render(self, name: Callable[[str], str]) -> str:
        """Return the message with every argument under the name that `name` gives for its Python name."""
        return self.message.render(name)

    def prefix(self, subject: str) -> None:
        """Put a subject, such as a file's name, before the message."""
        self.message = Message(f"{subject}: {self.message.marked}")
        self.args = (str(self.message),)


class UsageError(SondeError):
    """The request itself is not valid, whatever the data: a bad option, an unknown column, a k of 0."""

    exit_code, code = 2, "usage"


class WriterBusyError(SondeError):
    """Another process is writing the collection."""

    code = "busy"


class NothingToIndexError(SondeError):
    """The source gave no document that can be used."""


class MissingExtraError(SondeError):
    """An optional library is needed and absent; the message prints the command that installs it."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {library}, which is not installed: pip install 'sonde[{extra}]'")


def out_of_range(field: str, value: object, advice: str) -> UsageError:
    """Return the error of a number that a setting cannot have; `advice` says which it can."""
    return UsageError(f"{arg(field)} is {value!r}: {advice}", code="out-of-range", field=field, value=value)


def unknown_option(field: str, value: object, known: Iterable[str]) -> UsageError:
    """Return the error of a value that is not among those that a setting can have."""
    names = tuple(known)
    said = f"{arg(field)} is {value!r}: use {', '.join(names)}"
    return UsageError(said, code="unknown-option", field=field, value=value, alternatives=names)


Ids = str | int | Iterable[str | int]
"""One id or several."""
Texts = str | Iterable[str]
"""One text or several."""


def is_finite(value: object) -> bool:
    """Whether a value is a number, and neither NaN nor infinite."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def as_text(value: object, field: str) -> str:
    """Return one text; an integer is taken as its digits.

    Args:
        value: What a user gave.
        field: What it is, for the message: "id", "query", "text" …

    Raises:
        UsageError: It is neither a string nor an integer, or it has half of a surrogate pair.
    """
    if isinstance(value, str):
        return value if field == "id" else _unicode(value)  # no document has such an id, and that is what is said
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    raise UsageError(f"{reprlib.repr(value)} is not a valid {field}: give a string", code="wrong-type", value=value)


def _unicode(text: str) -> str:
    """Return a text that UTF-8 can write; half of a surrogate pair it cannot."""
    try:
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError:
        said = f"{reprlib.repr(text)} is not valid Unicode: write it in UTF-8"
        raise UsageError(said, code="not-unicode", value=text) from None
    return text


def as_texts(values: object, field: str) -> list[str]:
    """Return texts as a list; one string, or one integer, is a list of one. See `as_text`.

    Raises:
        UsageError: It is neither one text nor several, or one of them is neither a string nor an integer.
    """
    if isinstance(values, (str, Integral)):
        return [as_text(values, field)]
    if isinstance(values, (Mapping, bytes, bytearray)) or not isinstance(values, Iterable):
        said = f"{reprlib.repr(values)} is not a valid {field}: give a string or a list of strings"
        raise UsageError(said, code="wrong-type", value=values)
    return [as_text(value, field) for value in values]
