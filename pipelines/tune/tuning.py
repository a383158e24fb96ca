"""`sonde tune`: choose the best search settings on one half of the queries, check them on the other."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ...indexer.ann import exact_search
from ...indexer.document import Document
from ...indexer.encoder import ModelSpec
from ...indexer.errors import Message, SondeError, UsageError, arg, check_seed, out_of_range
from ...indexer.ingest.index import index_documents
from ...indexer.progress import Notify, Progress, silent
from ...indexer.store.catalog import ID_COLUMN
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import document_ids
from ...indexer.store.view import View
from ..evaluate.search import Gain, check_measures, gain, per_query
from ..search.candidates import DenseSearch
from ..search.first_stage import FirstStage
from ..search.fusion import Ranked
from ..search.rerank.models import reranker_for
from ..search.rerank.stage import DEPTH as RERANK_DEPTH
from ..search.rerank.stage import Reranker, SecondStage, StoredPassages, TokenMatch
from ..search.settings import DEPTH, MODEL_CHANGED, SearchDefaults, SearchSettings, store_defaults, stored_defaults
from .queries import FEWEST, FINDS, KnownQuery, checked, clicked, judged, made

K = 10


class TuneTrial:
    """Queries with their vectors over one view of a collection."""

    def __init__(self, view: View, asked: KnownQuery, vectors: np.ndarray) -> None:
        """Take the queries' vectors, float32 [n, d], as the collection's encoder gives them."""
        self.view = view
        self.asked = asked
        self.vectors = vectors
        self._keys = dict(document_ids(view.catalog))

    def values(self, defaults: SearchDefaults, reranker: Reranker | None = None) -> np.ndarray:
        """Return float64 [n]: nDCG@10 of every query, as if the collection stored these settings and no others."""
        settings = SearchSettings(k=K, rerank=reranker is not None)
        stage = FirstStage.over(self.view, settings, defaults=defaults)
        ranked = stage.run(self.asked.texts, self.vectors)
        if reranker is not None:
            resolved = stage.settings
            second = SecondStage(self.view, reranker, resolved.reranked, weight=resolved.rerank_weight)
            ranked = [second.run(text, found)[0] for text, found in zip(self.asked.texts, ranked, strict=True)]
        run = {str(number): self._hits(found) for number, found in enumerate(ranked)}
        truth = {str(number): judged for number, judged in enumerate(self.asked.truth)}
        return per_query(run, truth, ("nDCG@10",))["ndcg@10"]

    def recall(self, breadth: int | None) -> np.ndarray:
        """Return float64 [n]: the share of the ten nearest passages that the approximate index finds, by query."""
        segments = self.view.generation.segments
        scores, _ = exact_search(segments, self.vectors, K, rows=np.flatnonzero(self.view.generation.alive))
        least = scores[:, -1]
        found = DenseSearch(self.view, None, breadth).search(self.vectors, K)
        reached = zip(found, least, strict=True)
        return np.array([(one.scores >= least - 1e-6).sum() / max(1, len(one.scores)) for one, least in reached])

    def _hits(self, ranked: Ranked) -> dict[str, float]:
        owners = self.view.generation.owners[ranked.rows[:K]]
        return {self._keys[doc]: -float(place) for place, doc in enumerate(owners.tolist())}


class Remembering:
    """A second stage that scores every pair of query and passage once."""

    def __init__(self, inner: Reranker) -> None:
        """Take the second stage that does the work."""
        self.inner = inner
        self.name, self.kind, self.unit = inner.name, inner.kind, inner.unit
        self.weight, self.agreement = inner.weight, inner.agreement
        self._known: dict[tuple[str, str], float] = {}

    def score(self, query: str, passages: Sequence[str]) -> np.ndarray:
        """Return the scores, those that are known already among them."""
        new = {text: place for place, text in enumerate(passages) if (query, text) not in self._known}
        if new:
            # Passages of a collection stay such: the second stage may know more of them than their texts.
            some = passages.take(list(new.values())) if isinstance(passages, StoredPassages) else list(new)
            scores = np.asarray(self.inner.score(query, some), np.float64)
            self._known |= {(query, text): float(score) for text, score in zip(new, scores, strict=True)}
        return np.array([self._known[query, text] for text in passages])

    def matches(self, query: str, passage: str) -> list[TokenMatch]:
        """Return what the second stage itself says."""
        return self.inner.matches(query, passage)


WEIGHTS = tuple(round(0.1 * step, 1) for step in range(11))
DEPTHS = (25, 50, 100, 200)
RERANK_DEPTHS = (10, 20, 50, 100)
RERANK_WEIGHTS = (0.0, 0.2, 0.4, 0.6, 0.8)
BREADTHS = (0.5, 1, 2, 4, 8)
"""Times what the index was tuned to when it was built."""


@dataclass(frozen=True, slots=True)
class TuneSettings:
    """How to tune.

    Attributes:
        rerank: Also tune the second stage, which takes much longer.
        rerank_model: Which one; None for the default.
        queries: Made queries at most.
        seed: Decides what is made, and the halves.
        keep: Store what was found, only if it is significantly better.
    """

    rerank: bool = False
    rerank_model: str | None = None
    queries: int = 300
    seed: int = 0
    keep: bool = True

    def check(self) -> None:
        """Check the settings before the work is done.

        Raises:
            UsageError: The seed is negative, or fewer queries are to be made than tuning needs.
        """
        check_seed(self.seed)
        if self.queries < FEWEST:
            raise out_of_range("queries", self.queries, f"give a whole number from {FEWEST}")


@dataclass(frozen=True, slots=True)
class TuneReport:
    """What tuning found.

    Attributes:
        source: Where the queries come from.
        chosen_on: Queries on which the settings were chosen.
        checked_on: Other queries, on which they were checked.
        chosen: The best settings on the first half, by name; a weight of None is chosen for each query.
        gains: On the other half, for each part that was tuned: the first stage, the index, the second stage.
        stored: The settings that the collection now has; None where nothing was stored.
        notes: Notes for the user.
    """

    source: str
    chosen_on: int
    checked_on: int
    chosen: dict[str, float | None]
    gains: tuple[Gain, ...]
    stored: SearchDefaults | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "source": self.source,
            "chosen_on": self.chosen_on,
            "checked_on": self.checked_on,
            "chosen": self.chosen,
            "gains": [each.to_dict() for each in self.gains],
            "stored": self.stored.chosen if self.stored else None,
            "notes": list(self.notes),
        }


def tune_search(
    collection: StoredCollection, settings: TuneSettings = TuneSettings(), *, queries: Path | None = None,
    qrels: Path | None = None, clicks: Path | None = None, notify: Notify = silent,
) -> TuneReport:  # fmt: skip
    """Find settings for a collection's searches, and store them as its defaults only if they are significantly better.

    Args:
        collection: The collection.
        settings: How.
        queries: Queries with judgements, and
        qrels: the judgements; or
        clicks: a log of queries with the documents that were taken; with neither, queries are made of the texts.
        notify: Receives progress and sentences.

    Raises:
        UsageError: Queries without judgements, or both kinds were given, or a setting is out of range.
        SondeError: Too few queries have a right document, or the collection is being written.
        MissingExtraError: ir-measures is not installed.
    """
    if (queries is None) != (qrels is None) or (queries and clicks):
        given = f"give {arg('queries')} with {arg('qrels')}, or {arg('clicks')}"
        raise UsageError(f"{given}, or neither to have queries made of the texts", code="conflict", field="queries")
    settings.check()
    check_measures()
    spec = collection.spec
    logged = clicked(clicks, collection.get(ID_COLUMN)) if clicks else None
    given = judged(queries, qrels, notify) if queries and qrels else logged
    with _searched(collection, given, settings, notify) as (over, asked):
        with over.view() as view:
            found = _Tuning(over, view, asked, stored_defaults(collection), settings, notify).run()
        if over is not collection:
            with collection.view() as view:
                if view.generation.spec != spec:
                    raise SondeError(MODEL_CHANGED)
                found.breadth(
                    TuneTrial(view, found.halves[0], found.vectors[0]),
                    TuneTrial(view, found.halves[1], found.vectors[1]),
                )
    if given is None and max(found.gains[0].before, found.gains[0].after) < FINDS:
        return _blind(asked, found)
    return _stored(collection, asked, found, settings, spec)


def _blind(asked: KnownQuery, found: "_Tuning") -> TuneReport:
    """Return the report of made queries that find almost nothing: no setting is chosen by them."""
    note = (
        f"the queries made from these texts find almost nothing (ndcg@10 {found.gains[0].after:.3f}), so they cannot "
        f"choose settings, and nothing was stored: give at least {FEWEST} queries whose answers you know, with "
        f"{arg('queries')} and {arg('qrels')}, or judge hits with `sonde judge`"
    )
    return found.report(asked.source, {}, None, (Message(note),))


@contextmanager
def _searched(
    collection: StoredCollection, given: KnownQuery | None, settings: TuneSettings, notify: Notify
) -> Iterator[tuple[StoredCollection, KnownQuery]]:
    """Give the collection to search and its queries: made ones search a small one of its own, made for the purpose."""
    if given is not None:
        yield collection, checked(given, collection, notify)
        return
    asked, documents = made(collection, settings.seed, settings.queries)
    notify(asked.source)
    with tempfile.TemporaryDirectory(prefix="sonde-tuning-") as folder:
        path = Path(folder) / "known.sonde"
        index_documents(_told(documents, notify), path, encoder=collection.encoder)
        over = StoredCollection.open(path, encoder=collection.encoder)
        try:
            yield over, asked
        finally:
            over.close()


def _told(documents: Sequence[Document], notify: Notify) -> Iterator[Document]:
    for number, document in enumerate(documents, 1):
        notify(Progress("embed", number, len(documents), "documents"))
        yield document


class _Tuning:
    """One setting after the other, each with the best of those before it."""

    def __init__(
        self, collection: StoredCollection, view: View, asked: KnownQuery, stored: SearchDefaults,
        settings: TuneSettings, notify: Notify,
    ) -> None:  # fmt: skip
        self.collection, self.view, self.settings, self.notify = collection, view, settings, notify
        self.halves = asked.halves(settings.seed)
        encoder = collection.encoder
        self.vectors = [encoder.encode(encoder.tokenize(half.texts, query=True)) for half in self.halves]
        self.trials = [TuneTrial(view, half, vectors) for half, vectors in zip(self.halves, self.vectors, strict=True)]
        self.before = self.kept = stored
        self.chosen: dict[str, float | None] = {}
        self.gains: list[Gain] = []

    @property
    def changed(self) -> dict[str, float | None]:
        """The settings to store: those that differ from the ones in force, and are better."""
        before, kept = asdict(self.before), asdict(self.kept)
        return {name: value for name, value in kept.items() if value != before[name]}

    def run(self) -> "_Tuning":
        best = self._best(self.kept, "weight", (None, *WEIGHTS), None)
        best = self._best(best, "depth", DEPTHS, DEPTH)
        self._check("first stage ndcg@10", best)
        if self.settings.rerank:
            inner = reranker_for(self.view, self.settings.rerank_model, self.collection.device, self.notify)
            second = Remembering(inner)
            best = self._best(self.kept, "rerank_weight", (*RERANK_WEIGHTS, inner.weight), inner.weight, second)
            best = self._best(best, "rerank_depth", RERANK_DEPTHS, RERANK_DEPTH, second)
            self._check("second stage ndcg@10", best, second)
        self.breadth(*self.trials)
        return self

    def report(
        self, source: str, chosen: dict[str, float | None], stored: SearchDefaults | None, notes: tuple[str, ...]
    ) -> TuneReport:
        """Return what was found, and what became of it."""
        learn, check = self.halves
        return TuneReport(source, len(learn), len(check), chosen, tuple(self.gains), stored, notes)

    def breadth(self, learn: TuneTrial, check: TuneTrial) -> None:
        """Take the least breadth whose recall on the first half reaches the index's target; an exact one has none."""
        ann = learn.view.generation.ann
        if ann is None or not ann.info.breadth:
            return
        now = self.kept.breadth or ann.info.breadth
        tried = sorted({max(1, round(times * ann.info.breadth)) for times in BREADTHS} | {now})
        reached = [one for one in tried if learn.recall(one).mean() >= ann.info.target]
        best = reached[0] if reached else tried[-1]
        self.gains.append(gain("recall@10 of the index", check.recall(now), check.recall(best)))
        if best != now and (self.gains[-1].sure or self.gains[-1].after >= ann.info.target):
            self.chosen["breadth"] = best
            self.kept = replace(self.kept, breadth=best)

    def _best(
        self, settings: SearchDefaults, name: str, tried: Sequence[float | None], default: float | None,
        second: Remembering | None = None,
    ) -> SearchDefaults:  # fmt: skip
        """Return the settings with the best value of one of them; of equal ones, the nearest to that in force.

        A weight of None is chosen by the search for each query.
        """
        stored = getattr(settings, name)
        now = default if stored is None else stored
        tried, means = tuple(dict.fromkeys((*tried, now))), []
        for number, value in enumerate(tried, 1):
            self.notify(Progress(f"tune {name}", number, len(tried), "values"))
            means.append(self.trials[0].values(replace(settings, **{name: value}), second).mean())  # type: ignore[arg-type]
        far = [0.0 if value == now else 1.0 if value is None or now is None else abs(value - now) for value in tried]
        best = min(range(len(tried)), key=lambda place: (-round(means[place], 6), far[place], place))
        self.chosen[name] = tried[best]
        return settings if tried[best] == now else replace(settings, **{name: tried[best]})  # type: ignore[arg-type]

    def _check(self, what: str, best: SearchDefaults, second: Remembering | None = None) -> None:
        """Measure the best settings on the other half, and keep them only if they are significantly better."""
        before, after = (self.trials[1].values(settings, second) for settings in (self.kept, best))
        self.gains.append(gain(what, before, after))
        if self.gains[-1].sure:
            self.kept = best


def _stored(
    collection: StoredCollection, asked: KnownQuery, found: _Tuning, settings: TuneSettings, spec: ModelSpec
) -> TuneReport:
    notes: list[str] = []
    changed = found.changed
    if not changed:
        notes.append("nothing was stored: no gain on the other half is significant, so the settings stay as they are")
    stored = None
    if changed and settings.keep:
        facts = {
            "source": asked.source,
            "gains": [each.to_dict() for each in found.gains],
            "date": datetime.now(UTC).date().isoformat(),
            "settings": asdict(settings),
        }
        stored = replace(stored_defaults(collection), **changed, found=facts)  # type: ignore[arg-type]
        store_defaults(collection, stored, spec)
        if "weight" in changed and stored.weight is None:
            notes.append("the stored weight was removed: the weight is chosen for each query again")
    return found.report(asked.source, found.chosen, stored, tuple(notes))


def forget_defaults(collection: StoredCollection) -> SearchDefaults:
    """Remove what was tuned, and return it.

    Raises:
        SondeError: The collection is being written.
    """
    known = stored_defaults(collection)
    store_defaults(collection, SearchDefaults())
    return known
