"""Margins of every text, from similarity, from a judge of all texts or of a sample, or from both; with a journal."""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import IO

import numpy as np
from filelock import FileLock, Timeout

from ...indexer.errors import SondeError, arg
from ...indexer.files import disk_error
from ...indexer.progress import Notify, Progress, silent
from .carry import adjusted, carry
from .engines import EngineName, Judge
from .labels import Label
from .scores import ENOUGH, adapted_margins, similarity_margins
from .settings import Budget, LabelSettings
from .solvers import log_odds, probabilities, softmax

FOLDER = "labelling"


class Journal:
    """Margins by the digest of a text's content; each batch is one line, flushed to disk.

    A line left incomplete by a killed process is removed. Results from another model, other labels or other settings
    are not used.
    """

    def __init__(self, stream: IO[bytes] | None, known: dict[str, np.ndarray]) -> None:
        self._stream = stream
        self.known = known

    @classmethod
    def nowhere(cls) -> "Journal":
        """Return a journal that exists only in memory."""
        return cls(None, {})

    def add(self, keys: Sequence[str], margins: np.ndarray) -> None:
        """Store float32 [n, labels] margins."""
        self.known |= dict(zip(keys, margins, strict=True))
        if self._stream is None:
            return
        values = [[None if np.isnan(value) else value for value in row] for row in margins.astype(float).tolist()]
        self._stream.write(json.dumps([list(keys), values]).encode() + b"\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())


@contextmanager
def open_journal(collection: Path, name: str, settings: str) -> Iterator[Journal]:
    """Open the journal of a run. It resumes if the settings are the same, and is removed when the block succeeds.

    Raises:
        SondeError: Another process is creating the same run, or the folder cannot be written.
    """
    folder = collection / FOLDER
    path = folder / f"{sha256(name.encode()).hexdigest()[:16]}.jsonl"
    try:
        folder.mkdir(exist_ok=True)
        lock = FileLock(path.with_suffix(".lock"), timeout=0)
        with lock, path.open("a+b") as stream:
            yield Journal(stream, _read(stream, sha256(settings.encode()).hexdigest()))
            path.unlink()
            path.with_suffix(".lock").unlink(missing_ok=True)
    except Timeout:
        said = f"another process is creating the label run {name!r}: wait for it, or give another {arg('name')}"
        raise SondeError(said, code="busy", field="name", value=name) from None
    except OSError as error:
        raise disk_error(error, collection) from None
    if not any(folder.iterdir()):
        folder.rmdir()


def _read(stream: IO[bytes], settings: str) -> dict[str, np.ndarray]:
    stream.seek(0)
    known: dict[str, np.ndarray] = {}
    whole = 0
    for number, line in enumerate(stream):
        if not line.endswith(b"\n") or (number == 0 and line.decode(errors="replace").strip() != settings):
            break
        if number:
            try:
                keys, values = json.loads(line)
            except ValueError:
                break  # a power cut left a part of the line
            margins = np.array([[np.nan if value is None else value for value in row] for row in values], np.float32)
            known |= dict(zip(keys, margins, strict=True))
        whole += len(line)
    stream.seek(whole)
    stream.truncate()
    if not whole:
        stream.write(settings.encode() + b"\n")
        stream.flush()
    return known


AT_ONCE = 32
"""Texts judged between two entries of the journal, and so lost if the process is killed."""
EASE = 2.0
"""Margins of adapted labels are divided by this value; best of five on the sets that `none.py` is fitted to."""
EASES, FIRMNESS = np.geomspace(0.7, 12.0, 60), 10.0
"""The values that corrections can replace it by, and the weight of the prior that keeps it."""
FEW_CORRECTIONS, MANY_CORRECTIONS = 10, 50
"""Corrections that show how well the labels fit the whole corpus: with "none of these" among them, and without."""
PROBE = 16
"""Texts judged before a time budget is converted to a number of texts."""


@dataclass(frozen=True, slots=True)
class LabelTexts:
    """The texts to label.

    Attributes:
        vectors: float32 [n, d].
        keys: Digests of the texts' content.
        read: Returns the texts at the given positions.
        known: int64 [m], positions of the texts with corrected labels.
        truth: float64 [m, labels], 1 for each label of such a text.
    """

    vectors: np.ndarray
    keys: list[str]
    read: Callable[[np.ndarray], list[str]]
    known: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    truth: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, slots=True)
class Margins:
    """The margins of a corpus, and how they were computed.

    Attributes:
        margins: float [n, labels] log-odds.
        calls: Number of judgements of a text against a label.
        judged: Number of texts that were judged.
        agreement: Share of held-back texts that get the judge's label, if a sample was judged.
        held_back: Number of held-back texts.
        before: float [n, labels], the margins before they were adjusted to the corrections; the same if None.
        adapted: Whether they are those of labels that adapted to the corpus, without a judge.
        ease: What the margins of adapted labels are divided by.
    """

    margins: np.ndarray
    calls: int = 0
    judged: int = 0
    agreement: float | None = None
    held_back: int = 0
    before: np.ndarray | None = None
    adapted: bool = False
    ease: float = EASE

    def probabilities(self, multi_label: bool, none: np.ndarray | None = None) -> np.ndarray:
        """Return the probability of each label, float64 [n, labels].

        Labels that have adapted to a corpus are too sure: of banking77's texts with a probability above 0.95, 80 % were
        right, and 10 % with eight of its 77 labels. So their margins are divided by `ease`, and a label's probability
        is the chance that any label fits times the label's share of it.

        Args:
            multi_label: Whether a text may get several labels.
            none: float [n], the chance that no label fits; used only if the labels adapted.
        """
        if not self.adapted:
            return probabilities(self.margins, multi_label)
        shares = softmax(self.margins / self.ease)
        return shares if none is None else shares * (1 - none)[:, None]


def label_corpus(
    corpus: LabelTexts, labels: Sequence[Label], of_labels: np.ndarray, engine: EngineName, judge: Judge | None,
    settings: LabelSettings, journal: Journal | None = None, notify: Notify = silent,
) -> Margins:  # fmt: skip
    """Return the margins of all texts.

    Args:
        corpus: The texts.
        labels: The labels.
        of_labels: float32 [labels, d], the labels' embeddings.
        engine: The engine.
        judge: The engine's judge; None for similarity.
        settings: Settings of the labelling.
        journal: Holds the judge's earlier results, and receives the new ones.
        notify: Receives progress.
    """
    plain = similarity_margins(corpus.vectors, of_labels, settings.multi_label)
    adapt = len(corpus) >= ENOUGH and not settings.multi_label
    similar = adapted_margins(corpus.vectors, of_labels, settings.seed) if adapt else plain
    if judge is None:
        ease = eased(similar[corpus.known], corpus.truth) if adapt and tell_of_all(corpus.truth) else EASE
        return Margins(learned(similar, corpus, settings.multi_label), before=similar, adapted=adapt, ease=ease)
    asking = _Asking(corpus, labels, judge, settings, shortlist(similar, settings), journal, notify)
    found = asking.run(similar)
    if engine != "ensemble":
        return found
    before = None if found.before is None else together(similar, found.before, settings.multi_label)
    return replace(found, margins=together(similar, found.margins, settings.multi_label), before=before)


def tell_of_all(truth: np.ndarray) -> bool:
    """Return whether corrections show how well the labels fit the whole corpus.

    A person who only marks the texts that fit no label, or only those that fit one, says little about the others.

    Args:
        truth: float [m, labels], 1 for each label of a corrected text; all 0 for "none of these".
    """
    labelled = (truth > 0).any(axis=1)
    return bool(labelled.any()) and len(truth) >= (MANY_CORRECTIONS if labelled.all() else FEW_CORRECTIONS)


def eased(margins: np.ndarray, truth: np.ndarray) -> float:
    """Return what margins are divided by so that the corrected labels are as likely as possible, with a prior.

    Args:
        margins: float [m, labels], those of the corrected texts before anything was learned from them.
        truth: float [m, labels], 1 for each label of a corrected text; all 0 for "none of these".
    """
    shares = np.stack([(softmax(margins / ease) * truth).sum(axis=1) for ease in EASES])
    missed = -np.log(np.maximum(shares[:, (truth > 0).any(axis=1)], 1e-9)).sum(axis=1)
    return float(EASES[np.argmin(missed + FIRMNESS * np.log(EASES / EASE) ** 2)])


def learned(margins: np.ndarray, corpus: LabelTexts, multi_label: bool) -> np.ndarray:
    """Return the margins of all texts, float [n, labels], adjusted to the corrections; unchanged if there are none."""
    usable = corpus.truth.any(axis=1) | multi_label
    if not usable.any():
        return margins
    safe = np.where(np.isfinite(margins), margins, np.nanmin(np.where(np.isfinite(margins), margins, np.nan)) - 10)
    rows, truth = corpus.known[usable], corpus.truth[usable]
    return np.where(np.isnan(margins), margins, adjusted(safe, corpus.vectors, rows, truth, multi_label))


def shortlist(similar: np.ndarray, settings: LabelSettings) -> np.ndarray | None:
    """Return bool [n, labels], the labels to judge for each text; None for all."""
    size = settings.shortlist
    if not size or similar.shape[1] <= size:
        return None
    chosen = np.zeros(similar.shape, bool)
    np.put_along_axis(chosen, np.argpartition(-similar, size - 1, axis=1)[:, :size], True, axis=1)
    return chosen


def together(similar: np.ndarray, judged: np.ndarray, multi_label: bool) -> np.ndarray:
    """Return the mean of both engines' log-probabilities or, with several labels per text, of their log-odds."""
    shares = (probabilities(margins, multi_label) for margins in (similar, judged))
    one, two = (log_odds(each, multi_label) for each in shares)
    return (one + two) / 2


class _Asking:
    """The judge's work on a corpus: in batches, through the journal, within the budget."""

    def __init__(
        self, corpus: LabelTexts, labels: Sequence[Label], judge: Judge, settings: LabelSettings,
        chosen: np.ndarray | None, journal: Journal | None, notify: Notify,
    ) -> None:  # fmt: skip
        self.corpus = corpus
        self.labels = labels
        self.judge = judge
        self.settings = settings
        self.chosen = chosen
        self.journal = journal or Journal.nowhere()
        self.notify = notify
        self.budget = Budget.parse(settings.budget)
        self.cost = len(labels) if chosen is None else settings.shortlist
        self.judged = 0
        self.total = len(corpus)

    def run(self, hints: np.ndarray) -> Margins:
        """Judge all texts; with a budget, judge as many as it allows and predict the others."""
        self.total = min(self._affordable(), len(self.corpus))
        if self.total == len(self.corpus):
            margins = self.ask(np.arange(len(self.corpus)))
            if len(margins) == len(self.corpus):
                adjusted = learned(margins, self.corpus, self.settings.multi_label)
                return Margins(adjusted, self.judged * self.cost, self.judged, before=margins)
        multi, truths = self.settings.multi_label, (self.corpus.known, self.corpus.truth)
        carried = carry(self.ask, self.corpus.vectors, hints, self.total, multi, self.settings.seed, truths)
        margins = learned(carried.margins, self.corpus, multi)
        calls, judged = self.judged * self.cost, len(carried.judged)
        return Margins(margins, calls, judged, carried.agreement, carried.held_back, carried.margins)

    def _affordable(self) -> int:
        if self.budget.calls is not None:
            return max(1, self.budget.calls // self.cost)
        if self.budget.seconds is None:
            return len(self.corpus)
        rng = np.random.default_rng(self.settings.seed)
        began = time.monotonic()
        probe = rng.choice(len(self.corpus), min(PROBE, len(self.corpus)), replace=False)
        self.ask(np.sort(probe))
        return max(len(probe), int(self.budget.seconds / max(time.monotonic() - began, 1e-6) * len(probe)))

    def ask(self, rows: np.ndarray) -> np.ndarray:
        """Return margins as float32 [m, labels]; fewer rows than requested if time runs out."""
        found = []
        for start in range(0, len(rows), AT_ONCE):
            if self.judged and self.budget.over():
                break
            found.append(self._batch(rows[start : start + AT_ONCE]))
            self.notify(Progress("judging", self.judged, max(self.total, self.judged), "texts"))
        return np.concatenate(found) if found else np.empty((0, len(self.labels)), np.float32)

    def _batch(self, rows: np.ndarray) -> np.ndarray:
        keys = [self.corpus.keys[row] for row in rows.tolist()]
        new = np.array([key not in self.journal.known for key in keys], bool)
        if new.any():
            some = rows[new]
            chosen = None if self.chosen is None else self.chosen[some]
            margins = self.judge.margins(self.corpus.read(some), self.labels, self.settings.multi_label, chosen)
            self.journal.add([key for key, fresh in zip(keys, new, strict=True) if fresh], margins)
        self.judged += len(rows)
        return np.array([self.journal.known[key] for key in keys], np.float32)
