"""Files of pairs of texts, with or without a score: STS-B's layout, SICK's, translations, whatever has two columns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...indexer.errors import SondeError, UsageError, arg, did_you_mean
from ...indexer.readers import ReadOptions
from ...indexer.readers.read import read_rows

FIRST = ("sentence1", "sentence_1", "sentence_a", "text1", "text_1", "text_a", "s1", "sent1", "a", "first", "premise")


FIRST += ("question1", "source", "src", "query", "sentence")


SECOND = ("sentence2", "sentence_2", "sentence_b", "text2", "text_2", "text_b", "s2", "sent2", "b", "second")


SECOND += ("hypothesis", "question2", "target", "tgt", "passage", "translation", "paraphrase")


SCORE = ("score", "similarity", "similarity_score", "relatedness_score", "relatedness", "gold", "gold_score", "label")
NAMES = {*FIRST, *SECOND, *SCORE}
SAMPLE = 200
"""Rows by whose content columns without known names are told apart."""
MOSTLY = 0.8
"""Share of numbers that makes a column one of scores; the others are then reported, not passed over."""
_LONGEST_NAME = 24


@dataclass(frozen=True, slots=True)
class PairFile:
    """The pairs of a file.

    Attributes:
        name: The file's name.
        firsts: The first text of each pair.
        seconds: The second.
        scores: How similar each pair is, by people; empty where the file has none or they were not asked for.
        columns: The names of the columns that were taken, or their numbers, from 1.
    """

    name: str
    firsts: tuple[str, ...]
    seconds: tuple[str, ...]
    scores: tuple[float, ...]
    columns: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.firsts)


def read_pair_file(
    path: Path, *, scored: bool = False, columns: str | None = None, scale: tuple[float, float] | None = None,
    options: ReadOptions = ReadOptions(),
) -> PairFile:  # fmt: skip
    """Read pairs of texts from CSV, TSV, JSON, JSONL, Parquet or XLSX, also compressed, with a heading or without.

    Columns are taken by their names; where these say nothing, the first two columns of text are the texts, and the
    only column of numbers is the score.

    Args:
        path: The file.
        scored: Whether each pair must have a score.
        columns: The columns by name or by number (from 1): "first,second" or "first,second,score".
        scale: The least and the greatest score that can be right.
        options: Delimiter, encoding, format and sheet, where they are known.

    Raises:
        UsageError: A column that was named is not there, or it is not clear which ones are meant.
        SondeError: The file cannot be read, a text is empty, or a score is not a number on the scale.
    """
    rows = list(read_rows(path, names_columns, options))
    names = rows.pop(0)[1] if rows and not rows[0][0] else []
    names = [str(name).strip() for name in names] or [str(place) for place in range(1, len(rows[0][1]) + 1)]
    places = _places(str(path), names, [cells for _, cells in rows[:SAMPLE]], scored, columns)
    texts = [(_text(path, at, names, cells, places[0]), _text(path, at, names, cells, places[1])) for at, cells in rows]
    scores = [_score(path, at, names, cells, places[2], scale) for at, cells in rows] if scored else []
    firsts, seconds = zip(*texts, strict=True) if texts else ((), ())
    taken = tuple(names[place] for place in places[: 3 if scored else 2])
    return PairFile(path.name, firsts, seconds, tuple(scores), taken)


def names_columns(cells: Sequence[str]) -> bool:
    """Whether the first row of a file is its heading: it has a name of the usual ones, or short single words only."""
    plain = [cell.strip() for cell in cells]
    if any(_plain(cell) in NAMES for cell in plain):
        return True
    words = all(cell and " " not in cell and len(cell) <= _LONGEST_NAME and cell[-1].isalnum() for cell in plain)
    return words and all(cell.isascii() for cell in plain) and len(set(plain)) == len(plain)


def _places(file: str, names: list[str], sample: list[list[Any]], scored: bool, columns: str | None) -> tuple[int, ...]:
    """Return the places of the first text, the second and, if scores are wanted, the score."""
    wanted = 3 if scored else 2
    if columns is not None:
        return _given(file, names, columns, wanted)
    numeric = [place for place in range(len(names)) if _numbers([row[place] for row in sample])]
    texts = [place for place in range(len(names)) if place not in numeric and _has_texts(sample, place)]
    first = _known(names, FIRST, set(numeric))
    second = _known(names, SECOND, set(numeric) | ({first} if first is not None else set()))
    if first is None or second is None:
        if len(texts) < 2 or (len(texts) > 2 and len(names) > wanted):
            said = f"{file}: which two columns are the texts? It has {_listed(names)}: give {arg('columns')}"
            raise UsageError(said, code="ambiguous", field="columns", alternatives=names)
        first, second = texts[:2]
    if not scored:
        return first, second
    score = _known(names, SCORE, {first, second})
    if score is None and len(numeric) == 1:
        score = numeric[0]
    if score is None:
        what = "no column of scores" if not numeric else f"{len(numeric)} columns of numbers"
        said = f"{file} has {what} among {_listed(names)}: give {arg('columns')} FIRST,SECOND,SCORE"
        raise UsageError(said, code="ambiguous", field="columns", alternatives=names)
    return first, second, score


def _given(file: str, names: list[str], columns: str, wanted: int) -> tuple[int, ...]:
    given = [name.strip() for name in columns.split(",")]
    if len(given) != wanted or len(set(given)) != wanted:
        said = f"{arg('columns')} {columns!r} must name {wanted} different columns: {_listed(names)}"
        raise UsageError(said, code="wrong-type", field="columns", value=columns, alternatives=names)
    found = []
    for name in given:
        if name in names:
            found.append(names.index(name))
        elif name.isdecimal() and 1 <= int(name) <= len(names):
            found.append(int(name) - 1)
        else:
            said = f"{file} has no column {name!r}{did_you_mean(name, names)}; it has {_listed(names)}"
            raise UsageError(said, code="not-found", field="columns", value=name, alternatives=names)
    return tuple(found)


def _known(names: list[str], known: Sequence[str], taken: set[int]) -> int | None:
    ranked = [(known.index(_plain(name)), place) for place, name in enumerate(names) if _plain(name) in known]
    return min(((rank, place) for rank, place in ranked if place not in taken), default=(0, None))[1]


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def _numbers(values: list[Any]) -> bool:
    return sum(_number(value) is not None for value in values) > MOSTLY * len(values)


def _has_texts(sample: list[list[Any]], place: int) -> bool:
    return all(isinstance(row[place], str) for row in sample)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _text(path: Path, origin: str, names: list[str], cells: list[Any], place: int) -> str:
    value = cells[place]
    if not isinstance(value, str) or not value.strip():
        shown = "is empty" if value in (None, "") or not str(value).strip() else f"is no text but {value!r:.40}"
        raise SondeError(f"{path}, {origin}: {_column(names, place)} {shown}")
    return value.strip()


def _score(
    path: Path, origin: str, names: list[str], cells: list[Any], place: int, scale: tuple[float, float] | None
) -> float:
    value = _number(cells[place])
    if value is None or not math.isfinite(value):
        raise SondeError(
            f"{path}, {origin}: the score in {_column(names, place)} is not a number: {cells[place]!r:.40}"
        )
    if scale and not scale[0] <= value <= scale[1]:
        raise SondeError(
            f"{path}, {origin}: the score {value:g} is not between {scale[0]:g} and {scale[1]:g}: if it is right, give "
            f"{arg('scale')} LEAST,GREATEST"
        )
    return value


def _column(names: list[str], place: int) -> str:
    return f"column {names[place]}" if names[place].isdigit() else f"the column {names[place]!r}"


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:12]) + (" …" if len(names) > 12 else "")
    return f"the columns {shown}" if len(names) != 1 else f"the one column {names[0]}"
