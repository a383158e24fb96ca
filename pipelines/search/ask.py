"""Answer a question from a collection of questions and answers: the best document, or "nothing similar enough"."""

from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from ...indexer.errors import UsageError, as_text
from ...indexer.progress import Notify, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import document_texts
from .results import NOT_CLOSE, NOTHING_ANSWERS, Hit
from .search import search
from .settings import SearchSettings, stored_defaults

ANSWER_FIELDS = ("answer", "answers", "reply", "response", "solution", "a")
"""Columns that hold the answer if the text is the question, most likely first."""
SYMMETRIC_NAMES = ("paraphrase", "sts", "quora", "duplicate", "simcse", "all-minilm", "all-mpnet", "all-distilroberta")
ASYMMETRIC_NAMES = ("msmarco", "multi-qa", "e5-", "bge-", "gte-", "dpr", "-retrieval", "arctic-embed", "qa-")
BOTH_NAMES = ("all-minilm", "all-mpnet", "all-distilroberta", "e5-", "bge-", "gte-")
"""Models trained both on question pairs and on questions with passages."""
SHORT = 25
"""Maximum number of words in a question."""
SAMPLE = 500


@dataclass(frozen=True, slots=True)
class AskSettings:
    """How to answer a question.

    Attributes:
        threshold: Minimum cosine, -1 to 1; None uses the one that `sonde tune threshold` stored.
        field: The metadata field with the answer; None uses "answer" or a similar field, else the best passage.
        mode: The search mode that finds the best document: "dense" or "hybrid".
    """

    threshold: float | None = None
    field: str | None = None
    mode: str = "dense"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question, or no answer.

    Attributes:
        question: The question's text.
        hit: The best document; None if no document is similar enough.
        answer: The document's answer: the chosen field or, without one, its best passage.
        similarity: Cosine of the question and the best document, -1 to 1, even if it is below the threshold.
        threshold: The minimum similarity that applied; None if no threshold is set yet.
        notes: Notes for the user.
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
    """Return the best answer to a question, or no answer if the best document is not similar enough.

    Without a threshold, a document whose relevance is weak is no answer.

    Args:
        collection: Questions with answers in their metadata, or passages.
        question: The question's text.
        threshold: Minimum cosine; None uses the one that `sonde tune threshold` stored.
        field: The metadata field with the answer; None uses "answer" or a similar field, else the best passage.
        mode: The search mode that finds the best document: "dense" or "hybrid".
        notify: Receives messages that the user should read at once.

    Raises:
        UsageError: The question is empty, the mode returns no cosine, or the field does not exist.
        SondeError: The model is not available.
    """
    question = as_text(question, "question")
    if not question.strip():
        raise UsageError("the question is empty: say what to ask", code="empty", field="question")
    if mode not in ("dense", "hybrid"):
        raise UsageError(f"answers are judged by their cosine, which the mode {mode!r} has not: use dense or hybrid")
    SearchSettings(threshold=threshold).check()
    with collection.view() as view:
        names = list(view.fields)
    if field is not None and field not in names:
        raise UsageError(f"there is no field {field!r} in {collection.named}; it has {', '.join(names) or 'none'}")
    field = field or next((name for wanted in ANSWER_FIELDS for name in names if name.lower() == wanted), None)
    with collection.view():  # a threshold holds for the model that it was found with
        stored = stored_defaults(collection).threshold if threshold is None else threshold
        results = search(collection, question, SearchSettings(k=1, mode=mode, collapse=False), notify)  # type: ignore[arg-type]
    # A threshold decides what answers; without one, the relevance does.
    notes = [note for note in results.notes if stored is None or not note.startswith((NOTHING_ANSWERS, NOT_CLOSE))]
    weak = any(note.startswith(NOTHING_ANSWERS) for note in notes)
    if stored is None:
        notes.append("no threshold is stored, so only weak hits are refused: `sonde tune threshold` finds a threshold")
    best = results[0] if len(results) else None
    similarity = best.scores.dense if best else None
    if best is None or similarity is None or weak or (stored is not None and similarity < stored):
        return Answer(question, None, None, similarity, stored, tuple(notes))
    value = best.metadata.get(field) if field else None
    answer = str(value) if value not in (None, "") else best.passage.text
    return Answer(question, best, answer, similarity, stored, tuple(notes))


def fit_of_model(collection: StoredCollection) -> str | None:
    """Return a warning if the model does not suit the collection's content, else None.

    A collection of questions needs a symmetric model, which places a question close to others with the same meaning. A
    collection of passages needs an asymmetric model, which places a question close to its answer. The model's name, and
    whether it uses different prompts for queries and documents, show which type it is.
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
    """Return "questions" or "passages", depending on what most of the first texts look like."""
    with collection.view() as view:
        sample = [each.text for each in islice(document_texts(view.catalog), SAMPLE)]
    short = [text for text in sample if len(text.split()) <= SHORT]
    asked = sum("?" in text or "？" in text for text in short)
    return "questions" if sample and asked >= len(sample) / 2 else "passages"
