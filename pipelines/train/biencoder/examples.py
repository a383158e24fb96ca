"""Examples for a bi-encoder: pairs, triplets, scored pairs or texts with labels, from a file in any layout."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ....indexer.errors import SondeError, UsageError, arg, did_you_mean
from ....indexer.readers.read import read_rows
from ....indexer.wording import counted
from ...label.examples import LABEL, TEXT

Kind = Literal["pairs", "scores", "labels"]
KINDS = ("pairs", "scores", "labels")
FIRST = ("anchor", "query", "question", "title", "sentence1", "sentence_1", "sentence_a", "text1", "premise", "source")
SECOND = (
    "positive",
    "passage",
    "answer",
    "document",
    "body",
    "sentence2",
    "sentence_2",
    "sentence_b",
    "text2",
    "target",
)
WRONG = ("negative", "negatives", "hard_negative", "wrong")
SCORE = ("score", "similarity", "similarity_score", "relatedness")
FEWEST = 8
"""Examples below which nothing can be learned and measured."""


@dataclass(frozen=True, slots=True)
class Examples:
    """What a bi-encoder learns from; all sequences have the same length.

    Attributes:
        kind: "pairs" (a text and what answers it, perhaps with wrong answers), "scores" or "labels".
        first: The queries, the first texts, or the texts with labels.
        second: The passages or second texts; empty for labels.
        wrong: Known wrong passages of each query, for pairs.
        scores: How similar both texts are, any scale, for scores.
        labels: Of each text, for labels.
        groups: int64 [n]: examples that share a text or come from one document have the same number, and are never
            divided between training and measuring.
    """

    kind: Kind
    first: tuple[str, ...]
    second: tuple[str, ...] = ()
    wrong: tuple[tuple[str, ...], ...] = ()
    scores: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()
    groups: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.first)

    def take(self, places: np.ndarray) -> "Examples":
        """Return the examples at some places."""
        parts: dict[str, Any] = {}
        for name in ("first", "second", "wrong", "scores", "labels"):
            values = getattr(self, name)
            parts[name] = tuple(values[place] for place in places.tolist()) if values else ()
        return replace(self, groups=self.groups[places], **parts)


def pairs(first: Sequence[str], second: Sequence[str], wrong: Sequence[Sequence[str]] = ()) -> Examples:
    """Return pairs; those that share a text are of one group."""
    known = tuple(tuple(texts) for texts in wrong) if any(wrong) else ()
    return Examples("pairs", tuple(first), tuple(second), known, groups=groups_of(first, second))


def groups_of(*columns: Sequence[str]) -> np.ndarray:
    """Return int64 [n]: rows that share a text in the same column, also by way of others, have the same number."""
    parents = list(range(len(columns[0])))

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    for column in columns:
        seen: dict[str, int] = {}
        for place, text in enumerate(column):
            parents[root(place)] = root(seen.setdefault(_plain(text), place))
    return np.array([root(place) for place in range(len(parents))], np.int64)


def read_examples(path: Path, kind: str | None = None, columns: str | None = None) -> Examples:
    """Read examples from CSV, TSV, JSON, JSONL, Parquet or XLSX, also compressed.

    Args:
        path: The file. Which column is what is found by its name: query and passage (and negative, or several, or a
            list "negatives"), two sentences and a score, or a text and a label.
        kind: "pairs", "scores" or "labels" where the names leave it open.
        columns: The columns by name: "query,passage", "query,passage,negative", "first,second,score" or "text,label".

    Raises:
        UsageError: The kind is unknown, or it is not clear which columns are meant.
        SondeError: The file cannot be read, a row cannot be used, or there are too few.
    """
    if kind is not None and kind not in KINDS:
        said = f"there is no kind of examples {kind!r}: use {', '.join(KINDS)}"
        raise UsageError(said, code="unknown-option", field="kind", value=kind, alternatives=KINDS)
    rows = list(read_rows(path, lambda cells: True))
    if not rows or rows[0][0]:
        raise SondeError(f"{path} has no column names: add a header row, such as query,passage")
    names = [str(name).strip() for name in rows.pop(0)[1]]
    layout = _given(path, names, kind, columns) if columns else _found(path, names, kind)
    made = _made(path, names, layout, rows)
    if len(made) < FEWEST:
        raise SondeError(
            f"{path} holds {counted(len(made), 'example')}: at least {FEWEST} are needed to learn from and measure on"
        )
    return made


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which columns, by place."""

    kind: Kind
    first: int
    second: int = -1
    wrong: tuple[int, ...] = ()
    value: int = -1


def _given(path: Path, names: list[str], kind: str | None, columns: str) -> _Layout:
    places = []
    for name in (part.strip() for part in columns.split(",")):
        if name not in names:
            said = f"{path} has no column {name!r}{did_you_mean(name, names)}; it has {', '.join(names)}"
            raise UsageError(said, code="not-found", field="columns", value=name, alternatives=names)
        places.append(names.index(name))
    if kind == "labels" and len(places) == 2:
        return _Layout("labels", places[0], value=places[1])
    if kind == "scores" and len(places) == 3:
        return _Layout("scores", *places[:2], value=places[2])
    if kind in (None, "pairs") and len(places) >= 2:
        return _Layout("pairs", *places[:2], wrong=tuple(places[2:]))
    said = f"{arg('columns')} {columns!r} does not fit {kind}: give query,passage · first,second,score · text,label"
    raise UsageError(said, code="conflict", field="columns", value=columns)


def _found(path: Path, names: list[str], kind: str | None) -> _Layout:
    plain = [name.lower().replace(" ", "_").replace("-", "_") for name in names]
    first, second = _known(plain, FIRST), _known(plain, SECOND)
    score, label, text = _known(plain, SCORE), _known(plain, LABEL), _known(plain, TEXT)
    if kind in (None, "scores") and first >= 0 and second >= 0 and (score >= 0 or kind):
        if score < 0:
            said = f"{path} has no score column among {', '.join(names)}: give {arg('columns')}"
            raise UsageError(said, code="not-found", field="columns", alternatives=names)
        return _Layout("scores", first, second, value=score)
    if kind in (None, "labels") and text >= 0 and label >= 0 and (second < 0 or kind):
        return _Layout("labels", text, value=label)
    if kind in (None, "pairs") and first >= 0 and second >= 0:
        wrong = [place for place, name in enumerate(plain) if name.rstrip("_0123456789") in WRONG]
        return _Layout("pairs", first, second, tuple(wrong))
    wanted = {"pairs": "query,passage", "scores": "first,second,score", "labels": "text,label"}.get(kind or "")
    raise UsageError(
        f"{path}: the roles of the columns {', '.join(names)} are not clear: give {arg('kind')} and "
        f"{arg('columns')} {wanted or 'QUERY,PASSAGE or FIRST,SECOND,SCORE or TEXT,LABEL'}",
        code="ambiguous", field="columns", alternatives=names,
    )  # fmt: skip


def _known(names: list[str], known: Sequence[str]) -> int:
    return next((names.index(name) for name in known if name in names), -1)


def _made(path: Path, names: list[str], layout: _Layout, rows: list[tuple[str, list[Any]]]) -> Examples:
    def text(at: str, cells: list[Any], place: int) -> str:
        value = cells[place]
        if not isinstance(value, str) or not value.strip():
            raise SondeError(f"{path}, {at}: {names[place]!r} must be a text, not {value!r:.40}")
        return value.strip()

    first = tuple(text(at, cells, layout.first) for at, cells in rows)
    if layout.kind == "labels":
        labels = tuple(_label(path, at, names[layout.value], cells[layout.value]) for at, cells in rows)
        return _several(path, Examples("labels", first, labels=labels, groups=groups_of(first)))
    second = tuple(text(at, cells, layout.second) for at, cells in rows)
    if layout.kind == "pairs":
        return pairs(first, second, [_wrong(cells, layout) for _, cells in rows])
    scores = tuple(_score(path, at, names[layout.value], cells[layout.value]) for at, cells in rows)
    if len(set(scores)) < 2:
        raise SondeError(f"{path}: every pair has the score {scores[0]:g}: nothing can be learned from that")
    return Examples("scores", first, second, scores=scores, groups=groups_of(first, second))


def _wrong(cells: list[Any], layout: _Layout) -> tuple[str, ...]:
    found: list[str] = []
    for place in layout.wrong:
        value = cells[place]
        found += [
            one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str) and one.strip()
        ]
    right = cells[layout.second]
    return tuple(one.strip() for one in found if one.strip() != str(right).strip())


def _label(path: Path, at: str, name: str, value: Any) -> str:
    if value is None or isinstance(value, (list, float)) or not str(value).strip():
        raise SondeError(f"{path}, {at}: {name!r} must be a label, not {value!r:.40}")
    return str(value).strip()


def _score(path: Path, at: str, name: str, value: Any) -> float:
    try:
        score = float(value)
    except (TypeError, ValueError):
        score = float("nan")
    if not np.isfinite(score):
        raise SondeError(f"{path}, {at}: {name!r} must be a number, not {value!r:.40}")
    return score


def _several(path: Path, made: Examples) -> Examples:
    if len(set(made.labels)) < 2:
        raise SondeError(f"{path}: every text has the label {made.labels[0]!r}: give at least two labels")
    return made


def divided(examples: Examples, share: float, seed: int) -> tuple[Examples, Examples]:
    """Return what to train on and what to hold out; examples of one group stay together.

    A group of more than a hundredth of all examples is trained on, since a boilerplate text binds that many together.
    Judged queries share passages, so nearly all of them are one group. Then the first texts are held out, with all
    their examples; a second text may be in both parts, as in an evaluation of searches.

    Raises:
        SondeError: There are too few groups.
    """
    groups = examples.groups
    order = np.random.default_rng(seed).permutation(_small_groups(groups))
    if len(order) < 4 and examples.kind == "pairs":
        groups = groups_of(examples.first)
        order = np.random.default_rng(seed).permutation(_small_groups(groups, len(groups) // 4))
    if len(order) < 4:
        raise SondeError(f"the examples share so many texts that none can be held out: give {arg('held_out')} FILE")
    sizes = dict(zip(*np.unique(groups, return_counts=True), strict=True))
    wanted, chosen, count = max(2, round(len(examples) * share)), [], 0
    for name in order[: len(order) - 2]:
        if count >= wanted:
            break
        chosen.append(name)
        count += int(sizes[name])
    held = np.isin(groups, chosen)
    return examples.take(np.flatnonzero(~held)), examples.take(np.flatnonzero(held))


def _small_groups(groups: np.ndarray, most: int = 8) -> np.ndarray:
    """Return the groups of at most `most` examples, or of a hundredth of all."""
    names, counts = np.unique(groups, return_counts=True)
    return names[counts <= max(most, len(groups) // 100)]


def without(examples: Examples, others: Examples) -> Examples:
    """Return the examples that share no text with others."""
    texts = {_plain(text) for text in (*others.first, *others.second)}
    shared = [
        any(_plain(text) in texts for text in row)
        for row in zip(*(column for column in (examples.first, examples.second) if column), strict=True)
    ]
    return examples.take(np.flatnonzero(~np.array(shared, bool)))


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What a bi-encoder was measured on, and how much of it was trained on too.

    Attributes:
        kind: Of the examples.
        examples: How many.
        queries: Distinct first texts.
        texts: Distinct passages of pairs; distinct texts of other kinds.
        trained_on: How many of these texts are among those trained on.
    """

    kind: Kind
    examples: int
    queries: int
    texts: int
    trained_on: int

    @classmethod
    def of(cls, held: Examples, taught: Examples) -> "HeldOut":
        """Compare what is held out with what is trained on."""
        known = {
            _plain(text) for text in (*taught.first, *taught.second, *(one for row in taught.wrong for one in row))
        }
        own = {_plain(text) for text in (held.second if held.kind == "pairs" else (*held.first, *held.second))}
        return cls(held.kind, len(held), len(set(held.first)), len(own), len(own & known))

    def __str__(self) -> str:
        """The size in words: "13 queries (136 pairs)"."""
        if self.kind == "pairs":
            return f"{counted(self.queries, 'query', 'queries')} ({counted(self.examples, 'pair')})"
        return counted(self.examples, "example")

    def to_dict(self) -> dict[str, int]:
        """Return JSON values."""
        found = {"held_out": self.examples, "held_out_queries": self.queries, "held_out_texts": self.texts}
        return found | {"held_out_texts_trained_on": self.trained_on}

    @property
    def overlap(self) -> str:
        """What was trained on too, in words."""
        noun = "passages" if self.kind == "pairs" else "texts"
        if not self.trained_on:
            return f"none of the held-out {noun} was trained on"
        were = "was" if self.trained_on == 1 else "were"
        return f"{self.trained_on:,} of the {self.texts:,} held-out {noun} {were} trained on too"


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
