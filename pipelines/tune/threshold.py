"""The similarity below which there is no answer, from questions with and without one, and its plot."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...indexer.errors import SondeError, UsageError, check_seed
from ...indexer.files import text_of
from ...indexer.readers.columns import place_of_ids
from ...indexer.readers.read import read_rows
from ...indexer.store.collection import StoredCollection
from ...indexer.wording import counted
from ..plots.colors import escaped
from ..plots.file import new_figure, plotly
from ..search.relevance import fitted
from ..search.search import search_many
from ..search.settings import SearchSettings

FEWEST = 10
"""Questions of each kind below which no threshold is found."""
QUESTION = ("question", "query", "text")
ID = ("id", "answer_id", "document", "doc")
EVERY = 0.01
"""Distance of the thresholds of the curve."""


@dataclass(frozen=True, slots=True)
class Question:
    """An example question; `answers` are the ids of the documents that answer it, empty where any hit will do."""

    text: str
    answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ThresholdPoint:
    """What one threshold does; all are shares, 0 to 1.

    Attributes:
        threshold: The cosine below which a hit is no answer.
        precision: Of the answers given, how many are right.
        recall: Of the questions with an answer, how many get a right one.
        f1: The harmonic mean of both.
        false_answers: Of the questions without an answer, how many get one.
    """

    threshold: float
    precision: float
    recall: float
    f1: float
    false_answers: float


@dataclass(frozen=True, slots=True)
class ThresholdReport:
    """The threshold that was found.

    Attributes:
        threshold: Of the highest F1 on the first half of the questions.
        learned: What it does on that half.
        checked: What it does on the other half.
        curve: What every threshold does, on all questions.
        answered: Questions with an answer.
        unanswerable: Questions without.
        aware: Whether the right documents' ids were known; if not, every hit above the threshold counts as right.
        stored: Whether the collection now has it.
        slope: How fast the log odds of a right answer rise with the cosine.
        middle: The cosine at which the chance of a right answer is one half.
    """

    threshold: float
    learned: ThresholdPoint
    checked: ThresholdPoint
    curve: tuple[ThresholdPoint, ...]
    answered: int
    unanswerable: int
    aware: bool
    stored: bool
    slope: float
    middle: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


def read_questions(path: Path, own: str | None = None) -> list[Question]:
    """Read questions from a table with a column question (and id), or one a line from a text file.

    For `own`, see `place_of_ids`.

    Raises:
        UsageError: There is no such column.
        SondeError: The file cannot be read, or holds too few questions.
    """
    if path.suffix in (".txt", ""):
        lines = text_of(path, "the questions").splitlines()
        found = [Question(line.strip()) for line in lines if line.strip()]
    else:
        found = _table(path, own)
    if len(found) < FEWEST:
        raise SondeError(
            f"{path} holds {counted(len(found), 'question')}: at least {FEWEST} are needed to find a threshold"
        )
    return found


def _table(path: Path, own: str | None) -> list[Question]:
    rows = list(read_rows(path, lambda cells: True))
    names = [str(name).strip().lower() for name in rows.pop(0)[1]] if rows and not rows[0][0] else []
    text = next((names.index(name) for name in QUESTION if name in names), None)
    if text is None:
        raise UsageError(f"{path} must have a column question, not {', '.join(names) or 'a first row of data'}")
    key = place_of_ids(names, ID, own)
    found: dict[str, list[str]] = {}
    for _, cells in rows:
        question = str(cells[text] or "").strip()
        if question:
            answers = found.setdefault(question, [])
            if key is not None and cells[key] not in (None, ""):
                answers.append(str(cells[key]))
    return [Question(question, tuple(answers)) for question, answers in found.items()]


def find_threshold(
    collection: StoredCollection, answered: Sequence[Question], unanswerable: Sequence[Question], *,
    mode: str = "dense",
    seed: int = 0,
) -> ThresholdReport:  # fmt: skip
    """Find the threshold with the highest F1 on one half of the questions, and measure it on the other.

    Args:
        collection: Where the answers are.
        answered: Questions that it answers.
        unanswerable: Questions that it does not.
        mode: "dense" or "hybrid": which document is the best hit. The threshold is a cosine in both.
        seed: Of the halves.

    Raises:
        UsageError: The mode has no cosine, or the seed is negative.
        SondeError: There are too few questions, or no right document of theirs is in the collection.
    """
    if mode not in ("dense", "hybrid"):
        raise UsageError(f"a threshold is a cosine, and the mode {mode!r} has none: use dense or hybrid")
    check_seed(seed)
    for questions, what in ((answered, "answered"), (unanswerable, "unanswerable")):
        if len(questions) < FEWEST:
            raise SondeError(f"{counted(len(questions), what + ' question')} given: at least {FEWEST} are needed")
    questions = [*answered, *unanswerable]
    settings = SearchSettings(k=1, mode=mode, collapse=False)  # type: ignore[arg-type]
    hits = [
        results[0] if len(results) else None
        for results in search_many(collection, [q.text for q in questions], settings)
    ]
    scores = np.array([hit.scores.dense if hit and hit.scores.dense is not None else -1.0 for hit in hits])
    aware = any(question.answers for question in answered)
    right = np.array([bool(h) and (not aware or h.id in q.answers) for h, q in zip(hits, questions, strict=True)])
    has = np.arange(len(questions)) < len(answered)
    if not (right & has).any():
        raise SondeError("no answered question finds a right document: do the ids match those of the collection?")
    half = _half(has, seed)
    best = max(
        _candidates(scores[half]), key=lambda t: (round(_point(t, scores[half], right[half], has[half]).f1, 6), t)
    )
    best = round(best, 3)
    calibration = fitted(scores, right & has, best)
    grid = np.arange(np.floor(scores.min() / EVERY), np.floor(scores.max() / EVERY) + 1) * EVERY
    return ThresholdReport(
        threshold=best,
        learned=_point(best, scores[half], right[half], has[half]),
        checked=_point(best, scores[~half], right[~half], has[~half]),
        curve=tuple(_point(float(t), scores, right, has) for t in grid.round(4)),
        answered=len(answered),
        unanswerable=len(unanswerable),
        aware=aware,
        stored=False,
        slope=calibration.slope,
        middle=calibration.middle,
    )


def _half(has: np.ndarray, seed: int) -> np.ndarray:
    """Return bool [n]: half of each kind of questions."""
    chance, half = np.random.default_rng(seed), np.zeros(len(has), bool)
    for kind in (True, False):
        places = chance.permutation(np.flatnonzero(has == kind))
        half[places[: len(places) // 2]] = True
    return half


def _candidates(scores: np.ndarray) -> list[float]:
    """Return a threshold between each two neighbouring scores, and one below all."""
    distinct = np.unique(scores)
    return [float(distinct[0]) - EVERY, *((distinct[1:] + distinct[:-1]) / 2).tolist()]


def _point(threshold: float, scores: np.ndarray, right: np.ndarray, has: np.ndarray) -> ThresholdPoint:
    given = scores >= threshold
    good = int((given & has & right).sum())
    precision, recall = good / max(1, int(given.sum())), good / max(1, int(has.sum()))
    f1 = 2 * precision * recall / (precision + recall) if good else 0.0
    return ThresholdPoint(threshold, precision, recall, f1, float((given & ~has).sum() / max(1, (~has).sum())))


LINES = {"precision": "#1f77b4", "recall": "#2ca02c", "f1": "#9467bd", "false_answers": "#d62728"}
NAMES = {"f1": "F1", "false_answers": "answers to unanswerable questions"}


@dataclass(frozen=True, slots=True)
class ThresholdPlot:
    """A curve to be drawn: a title, the points by rising threshold, and the threshold that was taken."""

    title: str
    points: "Sequence[ThresholdPoint]"
    chosen: float

    def interactive(self) -> Any:
        """Return a Plotly figure."""
        go = plotly()
        figure = go.Figure()
        for name, color in LINES.items():
            figure.add_trace(
                go.Scatter(
                    x=[point.threshold for point in self.points],
                    y=[getattr(point, name) for point in self.points],
                    name=NAMES.get(name, name), mode="lines", line={"color": color},
                    hovertemplate="threshold %{x:.2f}: %{y:.3f}<extra>" + NAMES.get(name, name) + "</extra>",
                )
            )  # fmt: skip
        figure.add_vline(x=self.chosen, line={"dash": "dot", "color": "#888888"}, annotation_text=f"{self.chosen:.3f}")
        figure.update_layout(
            title=escaped(self.title), xaxis={"title": "threshold (cosine)"}, yaxis={"range": [0, 1.02]},
            margin={"l": 60, "r": 20, "t": 60, "b": 60},
        )  # fmt: skip
        return figure

    def still(self) -> Any:
        """Return a matplotlib figure."""
        figure, axes = new_figure(self.title, 10, 5.5)
        thresholds = [point.threshold for point in self.points]
        for name, color in LINES.items():
            values = [getattr(point, name) for point in self.points]
            axes.plot(thresholds, values, color=color, linewidth=1.6, label=NAMES.get(name, name))
        axes.axvline(self.chosen, color="#888888", linestyle=":", linewidth=1)
        axes.annotate(f"{self.chosen:.3f}", (self.chosen, 1), xycoords=("data", "axes fraction"), xytext=(4, -12),
                      textcoords="offset points", color="#555555")  # fmt: skip
        axes.set_xlabel("threshold (cosine)")
        axes.set_ylim(0, 1.02)
        axes.grid(axis="y", color="#e5e5e5")
        axes.legend(frameon=False)
        return figure
