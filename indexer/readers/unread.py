"""Files of a folder that are not read: their kinds, and how messages count them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..wording import counted
from .bytestream import COMPRESSED_SUFFIXES
from .source import SUFFIXES, TEXT_SUFFIXES

NO_SUFFIX = "without a suffix"
HIDDEN = "hidden"
SPECIAL = "pipe or device"
LINK_OUT = "link that leads out of the folder"
_MAIL = (".msg", ".pst")
_EXPORTED = ".eml or .mbox files"
_DOCUMENTS = (".doc", ".rtf", ".pages", ".epub", ".pptx", ".ppt", ".odp")
ARCHIVES = (".zip", ".tar", ".tgz", ".7z", ".rar")
CONVERT = "to text, HTML or PDF, or to a table with a column of texts"
_SUFFIX = re.compile(r"\.(?=.*[^\W\d_])\w{1,12}[~#+]*")
"""Suffixes as people know them; the end of "report.2024" or of "Minutes v1.2 final" is none."""
_NAMED = 8
"""Suffixes that a sentence names; the others are counted together."""
_OTHERS = {
    HIDDEN: ("hidden file", "hidden files"),
    LINK_OUT: (LINK_OUT, "links that lead out of the folder"),
    SPECIAL: (SPECIAL, "pipes or devices"),
}
"""What is left out whatever its suffix, for one file and for several."""


def kind_of(file: Path) -> str:
    """Return the kind of a file that is not read: its suffix, with that below a compression, or `NO_SUFFIX`."""
    suffix, below = file.suffix.lower(), file.with_suffix("").suffix.lower()
    if suffix in COMPRESSED_SUFFIXES and below in SUFFIXES | TEXT_SUFFIXES:
        return below + suffix
    return suffix if _SUFFIX.fullmatch(suffix) else NO_SUFFIX


def count_kinds(kinds: Iterable[str]) -> dict[str, int]:
    """Count files by kind, the most frequent kind first."""
    counts: dict[str, int] = {}
    for kind in kinds:
        counts[kind] = counts.get(kind, 0) + 1
    return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))


def counted_kinds(unread: Mapping[str, int]) -> str:
    """Return how many files of each kind there are, on one line; the numbers add up to all of them."""
    return _joined([*_by_suffix(unread), *_others(unread)], unread)


def what_to_do(unread: Mapping[str, int]) -> str:
    """Return what to do about the files of a folder in which none is read."""
    tables = [kind for kind in unread if Path(f"x{kind}").with_suffix("").suffix in SUFFIXES or kind in SUFFIXES]
    documents = [kind for kind in unread if kind in _DOCUMENTS]
    mail = [kind for kind in unread if kind in _MAIL]
    archives = [kind for kind in unread if kind in ARCHIVES]
    advice = [
        f"give {_and(tables)} files one by one" if tables else "",
        f"export {_and(mail)} files as {_EXPORTED}" if mail else "",
        f"convert {_and(documents)} files {CONVERT}" if documents else "",
        f"unpack {_and(archives)} files" if archives else "",
        "copy the files that the links lead to into the folder" if LINK_OUT in unread else "",
    ]
    return "; ".join(filter(None, advice)) or "check the path"


def instead_of(suffix: str) -> str | None:
    """Return what to do with a file that has this suffix, which Sonde does not read; None if nothing is known."""
    if suffix in ARCHIVES:
        return "unpack it, and give the files or their folder"
    if suffix in _MAIL:
        return f"export it as {_EXPORTED}"
    return f"convert it {CONVERT}" if suffix in _DOCUMENTS else None


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def unread_lines(unread: Mapping[str, int]) -> list[str]:
    """Return sentences that say how many files of a folder were left out, none if all were read."""
    of_kinds = {kind: count for kind, count in unread.items() if kind not in _OTHERS}
    lines = []
    if many := sum(of_kinds.values()):
        which = "a kind" if many == 1 else "kinds"
        were = f"{counted(many, 'file')} of {which} that Sonde does not read {_were(many)} left out"
        lines.append(f"{were}: {_joined(_by_suffix(of_kinds), of_kinds)}")
    others = zip(_others(unread), (kind for kind in _OTHERS if unread.get(kind)), strict=True)
    return [*lines, *(f"{said} {_were(unread[kind])} left out" for said, kind in others)]


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _suffixes(unread: Mapping[str, int]) -> list[str]:
    return [kind for kind in unread if kind not in _OTHERS and kind != NO_SUFFIX]


def _named(unread: Mapping[str, int]) -> list[str]:
    suffixes = _suffixes(unread)
    return suffixes if len(suffixes) == _NAMED + 1 else suffixes[:_NAMED]


def _by_suffix(unread: Mapping[str, int]) -> list[str]:
    without = [NO_SUFFIX] if unread.get(NO_SUFFIX) else []
    return [f"{unread[kind]:,} {kind}" for kind in [*_named(unread), *without]]


def _others(unread: Mapping[str, int]) -> list[str]:
    return [counted(unread[kind], *nouns) for kind, nouns in _OTHERS.items() if unread.get(kind)]


def _joined(said: list[str], unread: Mapping[str, int]) -> str:
    """Join the parts of a sentence, with the number of files of the suffixes that it does not name."""
    rest = _suffixes(unread)[len(_named(unread)) :]
    more = sum(unread[kind] for kind in rest)
    return ", ".join(said) + (f" and {counted(more, 'more file')} of {counted(len(rest), 'kind')}" if rest else "")
