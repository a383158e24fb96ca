"""How good a labelling is against a column that holds the truth: accuracy, macro F1, per class, confusion."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...indexer.errors import SondeError, UsageError
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import document_numbers
from ...indexer.store.kinds import LABEL
from ...indexer.store.runs import find_run, items_by_document, items_of


@dataclass(frozen=True, slots=True)
class ClassQuality:
    """One class: precision, recall and F1, 0 to 1, and how many texts truly belong to it."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True, slots=True)
class LabelQuality:
    """The quality of a run of labels; every measure is 0 to 1, higher is better.

    Attributes:
        run: The run's name.
        truth: The column that holds the truth.
        documents: Documents that have both a truth and a label.
        accuracy: Share of documents whose labels are the true ones; with several per text, exactly those.
        macro_f1: Mean F1 over the classes of truth and run.
        classes: Each class by name.
        confusion: (truth, label, documents) with one label per text, the most frequent first, agreement included.
        notes: What the user should know: names of the truth that the run does not have.
    """

    run: str
    truth: str
    documents: int
    accuracy: float
    macro_f1: float
    classes: tuple[ClassQuality, ...]
    confusion: tuple[tuple[str, str, int], ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


def evaluate_labels(collection: StoredCollection, run: str | None, truth: str) -> LabelQuality:
    """Compare a run of labels with a metadata column; names are compared without regard to case and outer spaces.

    Args:
        collection: The collection.
        run: The run's name; the newest one where None.
        truth: A metadata column: a text, or a list of texts for a run with several labels per text.

    Raises:
        UsageError: There is no such column.
        SondeError: There is no such run, or no document has both.
    """
    with collection.view() as view:
        found = find_run(view.catalog, LABEL, run)
        if truth not in view.fields:
            known = ", ".join(view.fields) or "none at all"
            raise UsageError(f"there is no column {truth!r} that could hold the truth: there is {known}")
        docs = document_numbers(view.catalog).tolist()
        names = {item.number: _plain(item.name) for item in items_of(view.catalog, found)}
        given = items_by_document(view.catalog, found, docs)
        stored = view.catalog.metadata(docs)
    true = {doc: _names(row[truth]) for doc, row in stored.items() if row.get(truth) not in (None, [], "")}
    both = [doc for doc in docs if doc in true and doc in given]
    if not both:
        raise SondeError(f"no document has both a label of the run {found.name!r} and a value in {truth!r}")
    several = bool(found.parameters.get("multi_label"))
    guessed = [[names[number] for number, _ in given[doc] if not several or number >= 0] for doc in both]
    return _quality(found.name, truth, [true[doc] for doc in both], guessed, set(names.values()), several)


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()


def _names(value: Any) -> list[str]:
    return [_plain(str(each)) for each in (value if isinstance(value, list) else [value])]


def _quality(
    run: str, column: str, true: Sequence[list[str]], guessed: Sequence[list[str]], known: set[str], several: bool
) -> LabelQuality:
    from sklearn.metrics import precision_recall_fscore_support
    from sklearn.preprocessing import MultiLabelBinarizer

    classes = sorted({name for names in (*true, *guessed) for name in names})
    matrix = MultiLabelBinarizer(classes=classes)
    told, said = matrix.fit_transform(true), matrix.fit_transform(guessed)
    scores = precision_recall_fscore_support(told, said, average=None, zero_division=0)  # type: ignore[arg-type]
    rows = zip(classes, *(part.tolist() for part in scores), strict=True)  # type: ignore[union-attr]
    each = tuple(ClassQuality(name, *shares, int(support)) for name, *shares, support in rows)  # pyright: ignore[reportCallIssue]
    right = [set(one) == set(two) if several else two[0] in one for one, two in zip(true, guessed, strict=True)]
    pairs = Counter((one[0], two[0]) for one, two in zip(true, guessed, strict=True) if not several)
    confusion = tuple((one, two, count) for (one, two), count in pairs.most_common())
    missing = sorted({name for names in true for name in names} - known)
    notes = (f"the run has no label for {', '.join(missing[:5])}, which are in {column}",) if missing else ()
    f1 = sum(quality.f1 for quality in each) / len(each)
    return LabelQuality(run, column, len(right), sum(right) / len(right), f1, each, confusion, notes)
