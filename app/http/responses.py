"""Bodies of answers, as OpenAPI shows them: the fields of each, and which values they can have."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class TextRange(BaseModel):
    """A part of a document: its text and its character offsets in the document's text."""

    start: int
    end: int
    text: str


class FoundHit(BaseModel):
    """A document that was found, as `sonde search --json` prints it."""

    model_config = ConfigDict(extra="allow")

    rank: int = Field(ge=1)
    id: str
    relevance: float = Field(ge=0, le=1, description="Estimated chance that it answers; comparable under one `where`.")
    weak: bool = Field(description="Whether the relevance is below the collection's threshold.")
    score: float = Field(description="Orders the hits of one search; not comparable between searches.")
    title: str
    text: str
    metadata: dict[str, Any]
    scores: dict[str, float | None] = Field(description="The parts of the score: dense, lexical, rerank.")
    passage: TextRange = Field(description="The best passage.")
    excerpt: TextRange = Field(description="The part of the passage to show: at most 300 characters.")
    copies: list[str] = Field(description="Ids of documents with the same or nearly the same text, left out.")


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
    mode: str
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


class Labelled(BaseModel):
    """The labels of each text, in the order of the texts and in the format of `sonde label --text --json`."""

    texts: list[dict[str, Any]]


class Judged(BaseModel):
    """Probabilities that sum to one, and the most likely class."""

    label: str
    entailment: float
    neutral: float
    contradiction: float
    model: str


class Reranked(BaseModel):
    """The positions of the texts in the request, best first, and the model that scored them."""

    reranker: str
    unit: str
    texts: list[dict[str, float]]


class Written(BaseModel):
    """A summary of what was written."""

    added: int
    replaced: int
    unchanged: int
    duplicate_ids: int = Field(
        description="Documents whose id occurs again later in the request: the last one was kept."
    )
    skipped: list[dict[str, str]] = Field(description="Documents that could not be used, and why.")


class DocumentOut(BaseModel):
    """A stored document."""

    id: str
    title: str
    text: str
    metadata: dict[str, Any]


class Deleted(BaseModel):
    """How many documents were deleted."""

    deleted: int


class ProblemOut(BaseModel):
    """Problem details, RFC 9457."""

    type: str = "about:blank"
    title: str
    status: int
    code: str = Field(description="A short, stable name of the error, such as out-of-range.")
    detail: str
    errors: list[dict[str, str]] = Field([], description="The invalid fields.")


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
