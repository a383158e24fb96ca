"""Numbers and names in sentences: "1 document", "3.2 MB"; "there is only a", "there are a, b"; and durations."""

import re
from collections.abc import Iterable, Sequence

LISTED = 20
"""Names that a sentence lists, at most."""
NAME = 80
"""Characters of a name that a sentence shows, at most. Names come from files, and may be of any length."""
ID = 60
"""Characters of an id that a sentence shows, at most."""
PATH = 200
"""Characters of a path that a sentence shows, at most. Folders may be thousands of levels deep."""
_ORDERS = [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
"""Controls of ASCII and Latin-1, separators of lines, and what reverses the order of characters."""
_SHOWN = {order: f"\\u{order:04x}" for order in _ORDERS if chr(order) not in "\n\t"} | {ord("\f"): ""}
"""As JSON writes them: a JSON line that holds one stays the same value."""

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h)\s*")


def seconds_of(text: str) -> float | None:
    """Return the seconds of a duration such as "300ms", "1.5s", "2min", "5m" or "1h"; None if it is none, or 0."""
    found = _DURATION.fullmatch(text)
    return float(found[1]) * _SECONDS[found[2]] or None if found else None


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: "1 document", "2,000 documents"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def existing(names: Iterable[object], nothing: str = "there are none") -> str:
    """Return what there is instead, for an error: "there are a, b", "there is only a", or `nothing`."""
    known = [str(name) for name in names]
    return f"there {'is only' if len(known) == 1 else 'are'} {listed(known)}" if known else nothing


def listed(names: Sequence[str]) -> str:
    """Return names on one line: "a, b", with a mark where there are more than `LISTED`."""
    return ", ".join(map(on_one_line, names[:LISTED])) + (" …" if len(names) > LISTED else "")


def shown_p(p: float) -> str:
    """Return a p-value with three decimals; one from resampling is never 0, so a smaller one is "<0.001"."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def on_one_line(name: str, most: int = NAME) -> str:
    """Return a name without line breaks, cut after `most` characters."""
    return cut(" ".join(name[: 10 * most].split()), most)


def cut(text: str, most: int) -> str:
    """Return a text, cut after `most` characters."""
    return text if len(text) <= most else f"{text[:most]}…"


def shown_path(path: object) -> str:
    """Return a path on one line, cut after `PATH` characters."""
    return on_one_line(str(path), PATH)


def shown_id(id: str) -> str:
    """Return an id in quotes, cut after `ID` characters: with the wrong column, an id is a whole text."""
    return repr(id if len(id) <= ID else on_one_line(id, ID))


def either(names: Sequence[str]) -> str:
    """Return names to choose from: "a", "a or b", "a, b or c"."""
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def per_second(rate: float) -> str:
    """Return a rate as a number that is never a bare 0: "1,204", "0.3"."""
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def part_name(part: str) -> str:
    """Return a part of a collection on disk in words: "previous model"."""
    return part.replace("_", " ")


def size(count: float) -> str:
    """Return bytes in words: "3.2 MB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1_000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1_000
    return f"{count:.1f} TB"


def visible(text: str) -> str:
    r"""Return text with each control character, except line feeds and tabs, as `\u001b`; page breaks are left out."""
    return text.translate(_SHOWN)
