"""Answering a question from a collection of questions and answers: the best document, or "nothing similar enough"."""

from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from ...indexer.errors import UsageError, as_text
from ...indexer.progress import Notify, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import document_texts
from .results import Hit
from .search import search
from .settings import SearchSettings, stored_defaults

ANSWER_FIELDS = ("answer", "answers", "reply", "response", "solution", "a")
"""Columns, the likeliest first, that hold the answer where the text is the question."""
SYMMETRIC_NAMES = ("paraphrase", "sts", "quora", "duplicate", "simcse", "all-minilm", "all-mpnet", "all-distilroberta")
ASYMMETRIC_NAMES = ("msmarco", "multi-qa", "e5-", "bge-", "gte-", "dpr", "-retrieval", "arctic-embed", "qa-")
BOTH_NAMES = ("all-minilm", "all-mpnet", "all-distilroberta", "e5-", "bge-", "gte-")
"""Models that were trained on question pairs as well as on questions with passages."""
SHORT = 25
"""Words up to which a text can be a question."""
SAMPLE = 500


@dataclass(frozen=True, slots=True)
class AskSettings:
    """How to answer a question.

    Attributes:
        threshold: Least cosine, -1 to 1; None takes the one that `sonde tune threshold` stored.
        field: The metadata field with the answer; None takes "answer" or the like where there is one, else the text.
        mode: "dense" or "hybrid": which document is the best.
    """

    threshold: float | None = None
    field: str | None = None
    mode: str = "dense"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question, or none.

    Attributes:
        question: What was asked.
        hit: The best document; None where none is similar enough.
        answer: Its answer: the field named, or its text.
        similarity: Cosine of question and best document, -1 to 1, also where it is not enough.
        threshold: What it was compared with; None where there is none yet.
        notes: What is to be said.
    """

    question: str
    hit: Hit | None
    answer: str | None
    similarity: float | None
    threshold: float | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self) | {"hit": self.hit.to_dict() if self.hit else None, "notes": list(self.notes)}


def ask(
    collection: StoredCollection, question: str, *, threshold: float | None = None, field: str | None = None,
    mode: str = "dense", notify: Notify = silent,
) -> Answer:  # fmt: skip
    """Return the best answer to a question, or none where the best is not similar enough.

    Args:
        collection: Questions with answers in their metadata, or passages.
        question: What is asked.
        threshold: Least cosine; None takes the one that `sonde tune threshold` stored.
        field: The metadata field with the answer; None takes "answer" or the like where there is one, else the text.
        mode: "dense" or "hybrid": which document is the best.
        notify: Receives sentences that the user should read at once.

    Raises:
        UsageError: The question is empty, the mode has no cosine, or there is no such field.
        SondeError: The model is not available.
    """
    question = as_text(question, "question")
    if mode not in ("dense", "hybrid"):
        raise UsageError(f"answers are judged by their cosine, which the mode {mode!r} has not: use dense or hybrid")
    SearchSettings(threshold=threshold).check()
    with collection.view() as view:
        names = list(view.fields)
    if field is not None and field not in names:
        raise UsageError(f"there is no field {field!r} in {collection.path}; it has {', '.join(names) or 'none'}")
    field = field or next((name for wanted in ANSWER_FIELDS for name in names if name.lower() == wanted), None)
    stored = stored_defaults(collection).threshold if threshold is None else threshold
    results = search(collection, question, SearchSettings(k=1, mode=mode), notify)  # type: ignore[arg-type]
    notes = list(results.notes)
    if stored is None:
        notes.append(
            "no threshold is known, so the nearest is given whatever it is: find one by `sonde tune threshold`"
        )
    best = results[0] if len(results) else None
    similarity = best.scores.dense if best else None
    if best is None or similarity is None or (stored is not None and similarity < stored):
        return Answer(question, None, None, similarity, stored, tuple(notes))
    value = best.metadata.get(field) if field else None
    return Answer(
        question, best, str(value) if value not in (None, "") else best.text, similarity, stored, tuple(notes)
    )


def fit_of_model(collection: StoredCollection) -> str | None:
    """Return a warning where the model does not fit what the collection holds, else None.

    A collection of questions needs a symmetric model, which brings a question near to another of the same meaning; one
    of passages an asymmetric one, which brings a question near to what answers it. What a model is for is told by its
    name and by whether it marks queries and documents with different prompts.
    """
    kind, spec = _holds(collection), collection.spec
    name = spec.name.lower().rsplit("/", 1)[-1]
    if any(part in name for part in BOTH_NAMES):
        return None
    marks = (spec.query_prompt or "") != (spec.document_prompt or "")
    asymmetric = marks or any(part in name for part in ASYMMETRIC_NAMES)
    symmetric = not asymmetric and any(part in name for part in SYMMETRIC_NAMES)
    if kind == "questions" and asymmetric:
        why = "marks queries and documents differently" if marks else "was trained to bring questions near to passages"
        return f"{spec.name} {why}, and this collection holds questions: a symmetric model compares these better"
    if kind == "passages" and symmetric:
        return (
            f"{spec.name} was trained to compare texts of one kind, and this collection holds passages: a model for "
            "questions and passages (multi-qa, e5, bge) answers better from these"
        )
    return None


def _holds(collection: StoredCollection) -> str:
    """Return "questions" or "passages", by what most of the first texts look like."""
    with collection.view() as view:
        sample = [each.text for each in islice(document_texts(view.catalog), SAMPLE)]
    short = [text for text in sample if len(text.split()) <= SHORT]
    asked = sum("?" in text or "？" in text for text in short)
    return "questions" if sample and asked >= len(sample) / 2 else "passages"
