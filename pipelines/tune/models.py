"""Two models for one collection, compared on its judgements or, if there are too few, on queries made from its texts.

The paired randomisation test is that of Smucker, Allan and Carterette (CIKM 2007).
"""

import itertools
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from ...indexer.document import Document
from ...indexer.encoder import Encoder
from ...indexer.errors import SondeError
from ...indexer.ingest.chunker import Chunker
from ...indexer.ingest.index import index_documents
from ...indexer.progress import Notify, Progress, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import document_texts
from ...indexer.wording import counted, shown_p
from ..evaluate.judgements import judgements
from ..evaluate.search import Run, bootstrap, per_query, randomisation
from ..search.results import Mode
from ..search.search import search_many
from ..search.settings import SearchSettings
from .queries import FEWEST, FINDS, KnownQuery, made

MODES: tuple[Mode, ...] = ("hybrid", "dense")
"""What is compared: hybrid search and the embeddings alone. The nDCG@10 of both decides."""
JUDGED = 10
"""Queries with judgements from which both models are compared on them."""
SURE = 0.05
"""The p-value below which a difference counts."""
MARGIN = 0.02
"""The loss of nDCG@10 that is accepted: Sonde switches only if the 95 % interval of the difference rules out more."""
K = 10
PACED = 128
"""Passages that each model embeds to show how fast it is."""
UNJUDGED = 0.1
"""How many more of the first ten hits may lack a judgement with the new model before a note says so."""


@dataclass(frozen=True, slots=True)
class ModelSide:
    """One of the two models.

    Attributes:
        model: Its name.
        dimension: Length of an embedding.
        passages: How many passages the collection has with it; the model's window decides how texts are split.
        bytes: Size of all embeddings, in half precision.
        per_second: Passages per second on this machine, for a sample from the collection.
        judged: Share of its first ten hits that have a judgement, 0 to 1; None without judgements.
    """

    model: str
    dimension: int
    passages: int
    bytes: int
    per_second: float
    judged: float | None


@dataclass(frozen=True, slots=True)
class ModelGain:
    """A measure of both models over the same queries, 0 to 1, higher is better.

    Attributes:
        mode: Search mode.
        measure: "ndcg@10" or "mrr@10".
        before: Value for the collection's model.
        after: Value for the other model.
        low: Lower end of the 95 % interval of the difference (paired bootstrap).
        high: Upper end.
        p: Two-sided p-value of the paired randomisation test of the difference.
    """

    mode: str
    measure: str
    before: float
    after: float
    low: float
    high: float
    p: float

    @property
    def difference(self) -> float:
        """After minus before."""
        return self.after - self.before

    @property
    def worse(self) -> bool:
        """Whether the other model is significantly worse."""
        return self.difference < 0 and self.p < SURE

    @property
    def better(self) -> bool:
        """Whether the other model is significantly better."""
        return self.difference > 0 and self.p < SURE

    @property
    def safe(self) -> bool:
        """Whether the interval of the difference rules out a loss of more than `MARGIN`."""
        return self.low >= -MARGIN

    def __str__(self) -> str:
        interval = f"95 % interval {self.low:+.3f} to {self.high:+.3f}"
        return f"{self.mode} {self.measure} {self.difference:+.3f}, {interval}, p {shown_p(self.p)}"


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """Two models compared.

    Attributes:
        source: Where the queries come from, in words.
        queries: How many there are.
        gains: Each measure in each mode, hybrid nDCG@10 first.
        before: The model that the collection has.
        after: The other one.
        notes: Notes for the user.
    """

    source: str
    queries: int
    gains: tuple[ModelGain, ...]
    before: ModelSide
    after: ModelSide
    notes: tuple[str, ...]

    @property
    def worse(self) -> bool:
        """Whether hybrid or dense searches are significantly worse with the other model."""
        return not self.blind and any(gain.worse for gain in self._deciding)

    @property
    def refusal(self) -> str | None:
        """Why the collection keeps its model: searches are, or may be, worse with the other one; None if it need not.

        A test that finds no significant loss is no reason to switch: with few queries it finds none of any size. Nor
        are queries that find almost nothing with either model.
        """
        if self.blind:
            gain = self.gains[0]
            return (
                "the queries made from these texts find almost nothing with either model "
                f"({gain.mode} {gain.measure} {gain.before:.3f} and {gain.after:.3f}), so they cannot compare them: "
                f"judge the hits of {JUDGED} queries with `sonde judge`"
            )
        unsafe = [gain for gain in self._deciding if not gain.safe]
        if not unsafe:
            return None
        gain = min(unsafe, key=lambda gain: (not gain.worse, gain.low))
        if gain.worse:
            return f"searches are significantly worse with {self.after.model} ({gain})"
        return (
            f"searches may be worse with {self.after.model} ({gain}): {counted(self.queries, 'query', 'queries')} do "
            f"not rule out a loss of more than {MARGIN}"
        )

    @property
    def _deciding(self) -> list[ModelGain]:
        return [gain for gain in self.gains if gain.measure == "ndcg@10"]

    @property
    def blind(self) -> bool:
        """Whether queries made of the texts find almost nothing with either model, so that they compare nothing."""
        made_of_texts = self.before.judged is None
        return made_of_texts and max(self.gains[0].before, self.gains[0].after) < FINDS

    @property
    def doubt(self) -> str | None:
        """The sentence that the other model is not significantly better; None if it is."""
        if self.refusal:
            return self.refusal
        if lost := next((each for each in self._deciding if each.worse), None):
            return f"searches are slightly but significantly worse with {self.after.model} ({lost})"
        gain = self.gains[0]
        if gain.better:
            return None
        return f"searches are not significantly better with {self.after.model} ({gain})"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        gains = [asdict(gain) | {"difference": gain.difference} for gain in self.gains]
        found = {"gains": gains, "notes": list(self.notes), "worse": self.worse, "refusal": self.refusal}
        return asdict(self) | found


def compare_models(
    collection: StoredCollection, other: StoredCollection, seed: int = 0, notify: Notify = silent
) -> ModelComparison:
    """Compare the model of a collection with that of another one of the same documents.

    Args:
        collection: Searched as it is now, with the settings that were tuned.
        other: The same documents with the other model, searched with Sonde's own settings.
        seed: Decides which queries are made.
        notify: Receives progress.

    Raises:
        SondeError: A model is not available, or there are neither enough judgements nor long enough texts.
        MissingExtraError: ir-measures is not installed.
    """
    notify("comparing both models")
    own = _judged(collection)
    with ExitStack() as opened:
        if own:
            asked, sides = own, (collection, other)
        else:
            asked, sides = opened.enter_context(_known_items(collection, other, seed, notify))
        followed = _followed(notify, 2 * len(MODES) * len(asked))
        runs = [{mode: _run(side, asked, mode, followed) for mode in MODES} for side in sides]
    truth: Run = {str(number): grades for number, grades in enumerate(asked.truth)}
    measured = [{mode: per_query(run, truth) for mode, run in each.items()} for each in runs]
    gains = [
        ModelGain(
            mode,
            name,
            float(before.mean()),
            float(after.mean()),
            *bootstrap(after - before),
            randomisation(after - before),
        )
        for mode in MODES
        for name, before in measured[0][mode].items()
        for after in [measured[1][mode][name]]
    ]
    shares = [_share_judged(each[MODES[0]], asked) if own else None for each in runs]
    texts = _sample(collection)
    before, after = (_side(side, share, texts) for side, share in zip((collection, other), shares, strict=True))
    return ModelComparison(asked.source, len(asked), tuple(gains), before, after, tuple(_notes(before, after)))


def _judged(collection: StoredCollection) -> KnownQuery | None:
    """Return the judged queries of a collection, None if too few of them have a relevant document."""
    found = judgements(collection)
    qrels, answered = found.qrels, found.answered
    if len(answered) < JUDGED:
        return None
    source = f"{len(answered)} judged queries of the collection"
    return KnownQuery(tuple(text for _, text in answered), tuple(qrels[key] for key, _ in answered), source)


@contextmanager
def _known_items(
    collection: StoredCollection, other: StoredCollection, seed: int, notify: Notify
) -> Iterator[tuple[KnownQuery, tuple[StoredCollection, StoredCollection]]]:
    """Yield generated queries, and a small collection for each model, whose texts lack what became a query."""
    try:
        asked, documents = made(collection, seed)
    except SondeError:
        said = f"the texts give fewer than the {FEWEST} queries that a comparison needs: judge hits with `sonde judge`"
        raise SondeError(f"{said}, {JUDGED} judged queries are enough") from None
    with tempfile.TemporaryDirectory(prefix="sonde-models-") as name, ExitStack() as opened:
        small = []
        for place, side in enumerate((collection, other)):
            path = Path(name) / f"{place}.sonde"
            index_documents(
                documents, path, encoder=side.encoder, notify=_stage(notify, f"embedding with {side.spec.name}")
            )
            small.append(opened.enter_context(closing(StoredCollection.open(path, encoder=side.encoder))))
        yield asked, (small[0], small[1])


def _stage(notify: Notify, stage: str) -> Notify:
    """Return a receiver that passes progress on under the name of this stage, and no sentences."""
    return lambda event: None if isinstance(event, str) else notify(replace(event, stage=stage))


def _followed(notify: Notify, total: int) -> Callable[[], None]:
    """Return what to call after each query, which tells how many of all have been searched."""
    done = itertools.count(1)
    return lambda: notify(Progress("comparing both models", next(done), total, "searches"))


def _run(
    collection: StoredCollection, asked: KnownQuery, mode: Mode, searched: Callable[[], None]
) -> dict[str, dict[str, float]]:
    """Return the first ten hits of every query by its number, with scores that keep their order."""
    found: dict[str, dict[str, float]] = {}
    settings = SearchSettings(k=K, mode=mode, collapse=False)  # as `sonde evaluate search` measures
    for n, results in enumerate(search_many(collection, list(asked.texts), settings, excerpts=False)):
        found[str(n)] = {hit.id: -float(hit.rank) for hit in results}
        searched()
    return found


def _share_judged(run: Run, asked: KnownQuery) -> float:
    hits = [key in asked.truth[int(number)] for number, found in run.items() for key in found]
    return sum(hits) / max(1, len(hits))


def _sample(collection: StoredCollection) -> list[Document]:
    with collection.view() as view:
        return [Document(each.text, each.title) for each in islice(document_texts(view.catalog), PACED)]


def _side(collection: StoredCollection, judged: float | None, documents: Sequence[Document]) -> ModelSide:
    with collection.view() as view:
        passages = view.catalog.counts()[1]
    spec, pace = collection.spec, _pace(collection.encoder, documents)
    return ModelSide(spec.name, spec.dimension, passages, passages * spec.dimension * 2, pace, judged)


def _pace(encoder: Encoder, documents: Sequence[Document]) -> float:
    """Return passages a second, with the time for tokenising."""
    texts = [passage.text for split in Chunker(encoder).split(documents) for passage in split][:PACED]
    encoder.encode_texts(texts[:2])  # the first pass is slower than those after it
    began = time.perf_counter()
    encoder.encode_texts(texts)
    return len(texts) / max(time.perf_counter() - began, 1e-9)


def _notes(before: ModelSide, after: ModelSide) -> Iterator[str]:
    if before.judged is not None and after.judged is not None and after.judged < before.judged - UNJUDGED:
        yield (
            f"{after.judged:.0%} of the first ten hits with {after.model} have a judgement, and {before.judged:.0%} "
            f"with {before.model}: hits without one count as not relevant, so {after.model} may be better than shown"
        )
