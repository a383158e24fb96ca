"""Bodies of answers, as OpenAPI shows them: the fields of each, and which values they can have."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ...indexer.store.kinds import KINDS
from ...pipelines.search.weighting import Mode

ERROR_CODES = (
    "ambiguous", "bad-date", "bad-file", "bad-kind", "bad-name", "bad-quotes", "bad-request", "bad-template", "busy",
    "conflict", "damaged", "disk-full", "empty", "failed", "forbidden", "invalid", "memory", "method-not-allowed",
    "missing-option", "name-taken", "nested", "no-collection", "not-found", "not-unicode", "not-writable",
    "nothing-to-index", "other-model", "out-of-range", "repeated", "repeated-ids", "request-entity-too-large",
    "request-timeout", "reserved", "selection", "sharded", "shards-missing", "taken", "too-few", "too-many",
    "too-many-requests", "unauthorized", "unindexed", "unknown", "unknown-field", "unknown-format", "unknown-option",
    "unsupported-media-type", "usage", "wrong-call", "wrong-host", "wrong-origin", "wrong-type",
)  # fmt: skip
"""The codes that an answer can have; `docs/http.md` lists them with their statuses."""
Kind = Annotated[
    str, Field(description="What made the run.", json_schema_extra={"enum": [str(kind) for kind in KINDS]})
]


class TextRange(BaseModel):
    """A part of a document: its text and where it is in the document's text, counted in Unicode code points."""

    start: int
    end: int = Field(description="In JavaScript: `[...text].slice(start, end).join('')`.")
    text: str


class Scores(BaseModel):
    """The parts of a score; null for a part that did not run."""

    dense: float | None = Field(description="The cosine, -1 to 1.")
    lexical: float | None = Field(description="BM25, 0 or more.")
    rerank: float | None = Field(description="Of the second stage, in the unit that `reranker` names.")


class Sentence(TextRange):
    """A sentence of a passage, and how similar it is to the query."""

    similarity: float


class Match(BaseModel):
    """A word of the query and the word of the hit that it matches, in late interaction."""

    query: str
    word: str
    start: int
    end: int
    title: bool = Field(description="Whether the word is in the title, and the offsets are those in the title.")
    similarity: float


class Why(BaseModel):
    """Why a hit matched."""

    terms: list[tuple[int, int]] = Field(description="The query's words in the text: start and end of each.")
    title_terms: list[tuple[int, int]] = Field(description="The same in the title.")
    sentences: list[Sentence] = Field(description="Most similar first.")
    matches: list[Match] = Field([], description="Only if late interaction ran.")


class Reranking(BaseModel):
    """The second stage of a search."""

    model: str
    kind: str
    unit: str
    depth: int = Field(description="Documents that it read.")
    wanted: int = Field(description="Documents that it would have read without a time limit.")
    seconds: float


class FoundHit(BaseModel):
    """A document that was found, as `sonde search --json` prints it."""

    rank: int = Field(ge=1)
    id: str
    relevance: float = Field(ge=0, le=1, description="Estimated chance that it answers; comparable under one `where`.")
    weak: bool = Field(description="Whether the relevance is below the collection's threshold.")
    score: float = Field(description="Orders the hits of one search; not comparable between searches.")
    title: str
    text: str
    metadata: dict[str, Any]
    scores: Scores
    passage: TextRange = Field(description="The best passage.")
    excerpt: TextRange = Field(description="The part of the passage to show: at most 300 characters.")
    copies: list[str] = Field(description="Ids of documents with the same or nearly the same text, left out.")
    page: int | None = Field(None, ge=1, description="The page of what the excerpt shows; only of texts with pages.")
    why: Why | None = Field(None, description="Why it matched; only if asked with `explain`.")
    reranker: Reranking | None = Field(None, description="The second stage; only if asked with `rerank`.")


class FusionUsed(BaseModel):
    """How a hybrid search weighted meaning and words."""

    dense: float = Field(ge=0, le=1, description="Share of the dense half.")
    words: int = Field(description="Words of the query that are not function words.")
    cover: float = Field(description="Share of them, weighted by rarity, that the best text has.")
    rarity: float = Field(description="How rare they are in the collection, 0 to 1.")
    chosen: bool = Field(description="Whether the share was chosen for this query.")
    why: str


class Hits(BaseModel):
    """Hits, best first, and details.

    If every hit is weak, the notes begin with "nothing here seems to answer this", or with "no hit is close to this in
    meaning" if some hits have all the words of the query.
    """

    query: str
    mode: Mode
    strategy: str
    notes: list[str]
    seconds: float
    loading_seconds: float = Field(description="Time to load models and indexes, not part of `seconds`.")
    fusion: FusionUsed | None = Field(description="Null if the mode has one half.")
    tuned: dict[str, float] = Field(description="Settings that `sonde tune` stored and that this search used.")
    partial: bool = Field(description="Whether a shard did not answer (`sonde serve --on ray`); a note says so.")
    missing_shards: list[int] = Field(description="The shards that did not answer.")
    hits: list[FoundHit]


class Vectors(BaseModel):
    """Embeddings in the order of the texts, of length 1 for a normalised model."""

    model: str
    dimension: int
    vectors: list[list[float]]


class LabelledText(BaseModel):
    """The labels of one text."""

    label: str = Field(description="The most likely label, or `none of these`.")
    labels: list[str] = Field(description="Most likely first: one, several or none.")
    scores: dict[str, float] = Field(description="The probability of every label, most likely first.")
    engine: str
    model: str
    none: float | None = Field(description="The chance that no label fits; null with `multi_label`.")


class Labelled(BaseModel):
    """The labels of each text, in the order of the texts and in the format of `sonde label --text --json`."""

    texts: list[LabelledText]


class Judged(BaseModel):
    """Probabilities that sum to one, and the most likely class."""

    label: str
    entailment: float
    neutral: float
    contradiction: float
    model: str


class RankedText(BaseModel):
    """The position of a text in the request, and its score."""

    place: int
    score: float


class Reranked(BaseModel):
    """The positions of the texts in the request, best first, and the model that scored them."""

    reranker: str
    unit: str
    texts: list[RankedText]


class SkippedOut(BaseModel):
    """A document that could not be used."""

    id: str
    reason: str


class Written(BaseModel):
    """A summary of what was written."""

    added: int
    replaced: int
    unchanged: int
    duplicate_ids: int = Field(
        description="Documents whose id occurs again later in the request: the last one was kept."
    )
    skipped: list[SkippedOut] = Field(description="Documents that could not be used, and why.")


class DocumentOut(BaseModel):
    """A stored document."""

    id: str
    title: str
    text: str
    metadata: dict[str, Any]


class Deleted(BaseModel):
    """How many documents were deleted."""

    deleted: int


class FieldProblem(BaseModel):
    """A field of the request, such as `documents.0.text`, and what is wrong with it."""

    field: str
    problem: str


class ProblemOut(BaseModel):
    """Problem details, RFC 9457."""

    type: str = "about:blank"
    title: str
    status: int
    code: str = Field(description="A short, stable name of the error.", json_schema_extra={"enum": [*ERROR_CODES]})
    detail: str
    errors: list[FieldProblem] = Field([], description="The invalid fields.")


class Step(BaseModel):
    """How far a method is in its present step; `total` is null if the end is not known."""

    stage: str
    done: int
    total: int | None
    unit: str


class JobOut(BaseModel):
    """A write that waits or runs."""

    collection: str
    method: str = Field(description="As in `/write/METHOD`; `put` and `delete` for those of `/documents`.")
    state: Literal["waiting", "running"]
    seconds: float = Field(description="How long it has been in this state.")
    client_waits: bool = Field(description="False if its client closed the connection.")
    progress: Step | None = Field(description="Null if it has not begun, or the method reports none.")


class RunOut(BaseModel):
    """A run: a stored result of clustering, topics, a map, labelling and so on."""

    kind: Kind
    name: str = Field(description="Unique among the runs of its kind.")
    documents: int
    complete: bool
    created: str = Field(description="ISO 8601, UTC.")
    seconds: float
    generation: int = Field(description="The generation of the collection that it read.")
    parameters: dict[str, Any] = Field(description="What it was asked to do; depends on the kind.")
    versions: dict[str, str] = Field(description="The libraries that made it.")
    report: dict[str, Any] = Field(description="What it measured; depends on the kind.")
    model: str | None = Field(description="The bi-encoder; null if it used none.")
    other_model: bool = Field(description="Whether the collection has another model now.")


class GroupOut(BaseModel):
    """A cluster, a topic or a label; further fields depend on how the run was made."""

    model_config = ConfigDict(extra="allow")

    number: int
    name: str
    documents: int
    terms: list[tuple[str, float]] = Field([], description="Of a cluster or topic: words with their weights.")
    representatives: list[str] = Field([], description="Of a cluster or topic: ids of typical documents.")
    description: str = Field("", description="Of a label.")


class Groups(BaseModel):
    """A run with its clusters, topics or labels."""

    run: RunOut
    items: list[GroupOut]


class Point(BaseModel):
    """A document on a map."""

    id: str
    x: float
    y: float


class Region(BaseModel):
    """A named region of a map; further fields say where it is."""

    model_config = ConfigDict(extra="allow")

    name: str


class MapPage(BaseModel):
    """A page of a map's documents, and all its regions."""

    run: RunOut
    total: int = Field(description="Documents on the map.")
    points: list[Point]
    regions: list[Region]


class CollectionOut(BaseModel):
    """A collection in numbers, as `sonde info --json` prints it; a damaged one has only `name` and `error`."""

    name: str
    error: str | None = Field(None, description="Why it cannot be read; absent if it can.")
    documents: int = 0
    passages: int = 0
    tombstones: int = Field(0, description="Rows of documents that were deleted or replaced.")
    newer: int = Field(0, description="Passages that the index does not hold yet, and that are searched exactly.")
    model: str = ""
    model_settings: dict[str, Any] = {}
    dimension: int = 0
    language: str | None = None
    ann: dict[str, Any] | None = Field(None, description="The FAISS index; null if embeddings are scanned exactly.")
    lexical: int | None = None
    fields: dict[str, str] = Field({}, description="The metadata fields with their types.")
    bytes: dict[str, int] = Field({}, description="The size of each part on disk.")
    generation: int = 0
    search_defaults: dict[str, Any] | None = None
    late: dict[str, Any] | None = Field(None, description="The late index; null if there is none.")
    other_models: list[dict[str, Any]] = []
    shards: int | None = None
    disk: int = Field(0, description="The sum of `bytes`.")


class Alive(BaseModel):
    """The process is alive."""

    status: Literal["alive"]


class Ready(BaseModel):
    """The service answers searches."""

    status: Literal["ready"]
    unavailable: dict[str, str] = Field(description="Collections that cannot be used, with the code of the error.")


class Result(BaseModel):
    """What a method returned, in the format that `docs/http.md` describes."""

    result: Any
