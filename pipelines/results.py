"""What a search returns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, overload

from ..indexer.document import Value
from ..indexer.fields import plain

Mode = Literal["dense", "lexical", "hybrid"]


@dataclass(frozen=True, slots=True)
class Scores:
    """The parts of a score; higher is better in each, None where a stage did not run.

    Attributes:
        dense: Similarity of query and passage: the cosine, -1 to 1 (inner product for a model without normalisation).
        lexical: BM25, 0 and up, not bounded.
        rerank: The second stage's score, where one ran.
    """

    dense: float | None = None
    lexical: float | None = None
    rerank: float | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """The best passage of a hit: its text and its character offsets in the document's text."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the best passage with its similarity to the query; offsets are those in the document's text."""

    start: int
    end: int
    text: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Why:
    """Why a hit matched.

    Attributes:
        terms: The query's terms found in the passage, as character offsets in the document's text.
        title_terms: Those found in the title, as offsets in it.
        sentences: Sentences of the passage, the most similar first.
    """

    terms: tuple[tuple[int, int], ...]
    title_terms: tuple[tuple[int, int], ...]
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """One document found, best first from rank 1.

    `score` orders the hits; what it means depends on the mode: the cosine for dense, BM25 for lexical, and for hybrid
    the fused score of this query, which cannot be compared between queries.
    """

    rank: int
    id: str
    score: float
    title: str
    text: str
    metadata: Mapping[str, Value]
    scores: Scores
    passage: Passage
    why: Why | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as JSON values, under the stable names of `--json`."""
        found = asdict(self)
        found["metadata"] = {name: plain(value) for name, value in self.metadata.items()}
        if self.why is None:
            del found["why"]
        return found


@dataclass(frozen=True, slots=True)
class Results(Sequence[Hit]):
    """The hits of one query, and how they were found.

    Attributes:
        query: The query's text.
        mode: The mode that ran.
        hits: Best first.
        strategy: How the vectors were searched: "exact scan of 120 passages", "hnsw", "hnsw with a selector" and so on.
        notes: Sentences that the user should read: nothing similar enough, a query that was cut off and so on.
        seconds: Wall-clock time, encoding of the query included.
    """

    query: str
    mode: Mode
    hits: tuple[Hit, ...]
    strategy: str
    notes: tuple[str, ...]
    seconds: float

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
