"""The results of a search."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, overload

from ...indexer.document import Value
from ...indexer.store.fields import json_value
from .weighting import FusionWeight, Mode

if TYPE_CHECKING:
    import pandas as pd

NOTHING_ANSWERS = "nothing here seems to answer this"
"""How the first note of a result begins in which every hit is weak, and none has all the words of the query."""
NOT_CLOSE = "no hit is close to this in meaning"
"""How it begins if every hit is weak, but some have all the words of the query."""
PARTIAL = "this result is partial"
"""How the note begins that names the shards that did not answer."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The parts of a score; higher is better in each, None if a stage did not run.

    Attributes:
        dense: Similarity of query and passage: the cosine, -1 to 1 (inner product for a model without normalisation).
        lexical: BM25, 0 or more, without an upper limit.
        rerank: The second stage's score, in the unit given by `Reranking.unit`. None for a hit that it did not read.
    """

    dense: float | None = None
    lexical: float | None = None
    rerank: float | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document: its text and its character offsets in the document's text."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the best passage with its similarity to the query; offsets are positions in the document's text."""

    start: int
    end: int
    text: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Match:
    """A word of the query and the word of a hit that matches it best, by late interaction.

    Attributes:
        query: The word in the query.
        word: The word in the hit.
        start: Offset of the word's first character in the document's text, or in its title.
        end: Offset of the character after the last one.
        title: Whether the word is in the title.
        similarity: The cosine of both words in their contexts, -1 to 1.
    """

    query: str
    word: str
    start: int
    end: int
    title: bool
    similarity: float


@dataclass(frozen=True, slots=True)
class Reranking:
    """The second stage of a search.

    Attributes:
        model: "late" (the bi-encoder's own token vectors), a hub name "org/name" or a folder.
        kind: "late interaction", "cross-encoder" or "multi-vector model".
        unit: The unit of `Scores.rerank`: "similarity" (-1 to 1), "probability" (0 to 1) or "logit"; higher is better.
        depth: Number of documents that it read.
        wanted: Number of documents that it would have read without a time budget.
        seconds: Duration in seconds.
    """

    model: str
    kind: str
    unit: str
    depth: int
    wanted: int
    seconds: float

    def __str__(self) -> str:
        model = "" if self.model == "late" else f" {self.model}"
        return f"{self.kind}{model} over the best {self.depth:,}"


@dataclass(frozen=True, slots=True)
class Why:
    """Why a hit matched.

    Attributes:
        terms: The query's terms found in the passage, as character offsets in the document's text.
        title_terms: The query's terms found in the title, as offsets in the title.
        sentences: Sentences of the passage, most similar first.
        matches: Matching pairs of words of the query and the hit, most important first, if late interaction ran.
    """

    terms: tuple[tuple[int, int], ...]
    title_terms: tuple[tuple[int, int], ...]
    sentences: tuple[Sentence, ...]
    matches: tuple[Match, ...] = ()


STATIC_TOKENS = (
    "late interaction rarely improves the order with a static model, whose tokens have no context: "
    "name a cross-encoder as the rerank model, or change the model of the collection"
)
"""The note of a result that was reranked by the token embeddings of a static model."""


def rounded_down(relevance: float) -> float:
    """Return a relevance with two digits that is not above it."""
    return math.floor(100 * relevance) / 100


@dataclass(frozen=True, slots=True)
class Hit:
    """One document that a search found; rank 1 is the best.

    `relevance` is an estimate of the chance that a person would call the hit an answer, 0 to 1. It can be compared
    between queries, collections and models if the filter is the same. A hit is `weak` if its relevance is below the
    collection's threshold.

    `score` orders the hits. Its meaning depends on the mode: the cosine for dense, BM25 for lexical, and for hybrid the
    fused score of this query, which cannot be compared between queries. After a second stage, named by `reranker`, it
    is the score fused with that stage: 0.5 to 1 for documents that the stage read, below 0.5 for the others.

    `passage` is the best passage, and `excerpt` the part of it to show: at most 300 characters around the sentence with
    most of the query's words. `copies` are the ids of lower-ranked documents with the same or nearly the same text.
    They were left out of the hits. `page` is the page, from 1, on which most of the query's words in the
    excerpt stand; None if the text has no page breaks (form feeds), as that of a PDF has.
    """

    rank: int
    id: str
    score: float
    title: str
    text: str
    metadata: Mapping[str, Value]
    scores: Scores
    passage: Passage
    excerpt: Passage
    why: Why | None = None
    reranker: Reranking | None = None
    relevance: float = 0.0
    weak: bool = False
    copies: tuple[str, ...] = ()
    page: int | None = None

    @property
    def relevance_shown(self) -> str:
        """The relevance with two digits, rounded down for a weak hit, so that it is below the threshold as shown."""
        return f"{rounded_down(self.relevance) if self.weak else self.relevance:.2f}"

    @property
    def shown(self) -> str:
        """The excerpt, with "…" where the passage continues."""
        before = "… " if self.excerpt.start > self.passage.start else ""
        return f"{before}{self.excerpt.text}{' …' if self.excerpt.end < self.passage.end else ''}"

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as JSON values, with the stable names of `--json`."""
        leading = {"rank": self.rank, "id": self.id, "relevance": self.relevance, "weak": self.weak}
        found = leading | asdict(self)
        found["metadata"] = {name: json_value(value) for name, value in self.metadata.items()}
        for name in ("why", "reranker", "page"):
            if found[name] is None:
                del found[name]
        if self.why is not None and self.reranker is None:
            del found["why"]["matches"]
        return found


@dataclass(frozen=True, slots=True)
class Results(Sequence[Hit]):
    """The hits of one query, and details of the search.

    Attributes:
        query: The query's text.
        mode: The mode that ran.
        hits: Best first.
        strategy: How the embeddings were searched: "exact scan of 120 passages", "hnsw", "hnsw with a selector" …
        notes: Notes for the user, for example that nothing is similar enough or that the query was cut off.
        seconds: Wall-clock time of the search in seconds, including encoding the query but not loading. Queries that
            are encoded together share the time equally.
        reranking: The second stage, if one ran.
        loading_seconds: Time in seconds to load the models and the indexes, shared in the same way; 0.0 if nothing was
            loaded.
        fusion: How both halves were weighted, and why; None if the mode has one half.
        tuned: The settings that `sonde tune` stored and that this search used, by name.
        missing_shards: The shards whose embeddings were not searched, because no process answered for them. Documents
            of these shards are found by their words only, or not at all; a note says so.
    """

    query: str
    mode: Mode
    hits: tuple[Hit, ...]
    strategy: str
    notes: tuple[str, ...]
    seconds: float
    reranking: Reranking | None = None
    loading_seconds: float = 0.0
    fusion: FusionWeight | None = None
    tuned: Mapping[str, float] = field(default_factory=dict)
    missing_shards: tuple[int, ...] = ()

    @property
    def partial(self) -> bool:
        """Whether a shard did not answer."""
        return bool(self.missing_shards)

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Hit]: ...
    def __getitem__(self, index: int | slice) -> Hit | Sequence[Hit]:
        return self.hits[index]

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def to_pandas(self) -> "pd.DataFrame":
        """Return one row per hit: rank, id, title, relevance, score and its parts, passage, text, then the metadata.

        A metadata column whose name clashes with one of these columns becomes `metadata.NAME`.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        from .tables import to_pandas

        return to_pandas(self)

    def _repr_html_(self) -> str:
        """Return the hits as an HTML table for notebooks; all text in it is escaped."""
        from .tables import to_html

        return to_html(self)
