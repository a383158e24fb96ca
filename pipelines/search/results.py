"""What a search returns, and its hits as CSV or JSON lines."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, overload

from ...indexer.document import Value
from ...indexer.store.fields import json_value, stored_text

Mode = Literal["dense", "lexical", "hybrid"]


@dataclass(frozen=True, slots=True)
class Scores:
    """The parts of a score; higher is better in each, None where a stage did not run.

    Attributes:
        dense: Similarity of query and passage: the cosine, -1 to 1 (inner product for a model without normalisation).
        lexical: BM25, 0 and up, not bounded.
        rerank: The second stage's score; `Reranking.unit` says what it is. None for a hit that it did not read.
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
class Match:
    """A word of the query and the word of a hit that it matched best, by a late interaction.

    Attributes:
        query: The word in the query.
        word: The word in the hit.
        start: Its first character in the document's text, or in its title.
        end: The character after the last.
        title: Whether it is in the title.
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
        model: "late" (the bi-encoder's own token vectors), a hub's "org/name" or a folder.
        kind: "late interaction", "cross-encoder" or "multi-vector model".
        unit: What `Scores.rerank` is: "similarity" (-1 to 1), "probability" (0 to 1) or "logit"; higher is better.
        depth: How many documents it read.
        wanted: How many it would have read without a time budget.
        seconds: How long it took.
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
        title_terms: Those found in the title, as offsets in it.
        sentences: Sentences of the passage, the most similar first.
        matches: Which words of the query matched which words, the most important first, where a late interaction ran.
    """

    terms: tuple[tuple[int, int], ...]
    title_terms: tuple[tuple[int, int], ...]
    sentences: tuple[Sentence, ...]
    matches: tuple[Match, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """One document found, best first from rank 1.

    `score` orders the hits; what it means depends on the mode: the cosine for dense, BM25 for lexical, and for hybrid
    the fused score of this query, which cannot be compared between queries. After a second stage, which `reranker`
    names, it is the score fused with it: 0.5 to 1 for what that stage read, below 0.5 for the documents behind.
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
    reranker: Reranking | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as JSON values, under the stable names of `--json`."""
        found = asdict(self)
        found["metadata"] = {name: json_value(value) for name, value in self.metadata.items()}
        for name in ("why", "reranker"):
            if found[name] is None:
                del found[name]
        if self.why is not None and self.reranker is None:
            del found["why"]["matches"]
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
        seconds: Wall-clock time of the search in seconds, encoding of the query included and loading left out. Of
            queries that are encoded together, each has an equal share of the time.
        reranking: The second stage, where one ran.
        loading_seconds: Time in seconds to load the models and the indexes first, shared in the same way; 0.0 where
            nothing was loaded.
    """

    query: str
    mode: Mode
    hits: tuple[Hit, ...]
    strategy: str
    notes: tuple[str, ...]
    seconds: float
    reranking: Reranking | None = None
    loading_seconds: float = 0.0

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


BEFORE = ("rank", "id", "title", "score", "dense", "lexical", "rerank", "passage", "text")


def to_jsonl(results: Results) -> bytes:
    """Return a JSON object a line, as `sonde search --json` prints them."""
    return "".join(json.dumps(hit.to_dict(), ensure_ascii=False) + "\n" for hit in results).encode()


def to_csv(results: Results) -> bytes:
    """Return rows with rank, id, title, score and its parts, passage, text, then the metadata in columns.

    A column of the metadata that is named like one of those before is called `metadata.NAME`.
    """
    names = list(dict.fromkeys(name for hit in results for name in hit.metadata))
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    table.writerow([*BEFORE, *(f"metadata.{name}" if name in BEFORE else name for name in names)])
    table.writerows([*_cells(hit), *(_cell(hit.metadata.get(name)) for name in names)] for hit in results)
    return stream.getvalue().encode()


def _cells(hit: Hit) -> list[Any]:
    scores = (hit.score, hit.scores.dense, hit.scores.lexical, hit.scores.rerank)
    return [hit.rank, hit.id, hit.title, *(None if one is None else f"{one:.6f}" for one in scores),
            hit.passage.text, hit.text]  # fmt: skip


def _cell(value: Any) -> str:
    return "" if value is None else stored_text(value)
