"""How good labels are, against a column or a table that holds the truth."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ...indexer.errors import SondeError, UsageError, arg, did_you_mean
from ...indexer.store.catalog import Catalog
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import document_numbers, numbers_by_id
from ...indexer.store.kinds import CORRECTION, LABEL
from ...indexer.store.members import documents_named_by
from ...indexer.store.runs import Run, find_run, items_by_document, items_of, list_runs
from ...indexer.store.view import View
from ...indexer.wording import counted, existing, on_one_line, shown_id
from ..label.labels import NONE_NAME, codes_of, plain

NORMAL = 1.959964
"""The normal distribution has 95 % of its values within this many standard deviations."""


@dataclass(frozen=True, slots=True)
class ClassQuality:
    """One class: precision, recall and F1, 0 to 1, and how many texts belong to it.

    `kappa` is Cohen's kappa for the decision whether a text has the label, with several labels per text; else None.
    """

    label: str
    precision: float
    recall: float
    f1: float
    support: int
    kappa: float | None = None

    @classmethod
    def of(cls, label: str, decided: Sequence[tuple[bool, bool]], several: bool) -> "ClassQuality":
        """Return the quality of a class from whether each text has it, and whether it was given it."""
        true, guessed = (sum(pair[side] for pair in decided) for side in (0, 1))
        right = sum(one and two for one, two in decided)
        f1 = 2 * right / max(guessed + true, 1)
        kappa = _kappa(decided) if several else None
        return cls(label, right / max(guessed, 1), right / max(true, 1), f1, true, kappa)


@dataclass(frozen=True, slots=True)
class LabelQuality:
    """The quality of a run of labels; every measure is 0 to 1, higher is better.

    Attributes:
        run: The run's name.
        truth: The column or the file that holds the truth.
        documents: Documents that have both a truth and a label.
        accuracy: Share of documents whose labels are the true ones; with several per text, exactly those.
        macro_f1: Mean F1 over the classes of truth and run.
        classes: Each class by name.
        confusion: (truth, label, documents) with one label per text, the most frequent first, agreement included.
        notes: What the user should know: names of the truth that the run does not have, ids that no document has.
        several: Whether a text may have several labels: `accuracy` is then the share of exact matches.
        interval: The 95 % interval of `accuracy`, by Wilson's method.
        kappa: Cohen's kappa with one label per text, at most 1, 0 for chance; None with several, where each class has
            its own, and where chance alone gives full agreement.
    """

    run: str
    truth: str
    documents: int
    accuracy: float
    macro_f1: float
    classes: tuple[ClassQuality, ...]
    confusion: tuple[tuple[str, str, int], ...]
    notes: tuple[str, ...]
    several: bool = False
    interval: tuple[float, float] = (0.0, 1.0)
    kappa: float | None = None

    @property
    def measure(self) -> str:
        """What `accuracy` is called: with several labels per text, "exact match"."""
        return "exact match" if self.several else "accuracy"

    @property
    def margin(self) -> str:
        """The interval of `accuracy`, in words."""
        return "95 % interval of {} (Wilson): {:.3f} to {:.3f}".format(self.measure, *self.interval)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


def evaluate_labels(
    collection: StoredCollection, run: str | None, truth: str, labels: Mapping[str, Sequence[str]] | None = None
) -> LabelQuality:
    """Compare a run of labels with the true labels; names are compared without regard to case and outer spaces.

    Documents whose label a person has corrected do not count, if the run has applied the corrections. Documents without
    a value in the column do not count either. If the run refused texts, "none of these" is the true label of documents
    whose class the run has no label for. If it refused none, these documents are wrong.

    With several labels per text, a value such as "late; broken" names two of them, and "none of these" and an empty
    list mean that the text has none.

    Args:
        collection: The collection.
        run: The run's name; None for the run whose labels match the true ones best; if several do, the newest.
        truth: A metadata column: a text, or a list of texts for a run with several labels per text. With `labels`, what
            messages call these.
        labels: The true labels by document id.

    Raises:
        UsageError: There is no such column, or the run has none of its values as a label.
        SondeError: There is no such run, or no document has both.
    """
    with collection.view() as view:
        docs = document_numbers(view.catalog).tolist()
        true, strange = (
            _of_ids(view.catalog, labels, truth) if labels is not None else (_of_column(view, docs, truth), "")
        )
        found = _matching_run(view.catalog, {name for given in true.values() for name in given}, run)
        items = items_of(view.catalog, found)
        written, names = {plain(one.name): one.name for one in items}, {one.number: plain(one.name) for one in items}
        given = items_by_document(view.catalog, found, docs)
        applied = bool(found.report.get("corrected"))
        by_hand = set(documents_named_by(view.catalog, CORRECTION, found.name) if applied else ())
    several = bool(found.parameters.get("multi_label"))
    true = {doc: _true(listed, names.values()) if several else listed for doc, listed in true.items()
            if listed or several}  # fmt: skip
    known = [doc for doc in docs if doc in true and doc in given]
    _check_shared(truth, {name for doc in known for name in true[doc]}, found.name, names)
    both = [doc for doc in known if doc not in by_hand]
    if not both:
        more = ", apart from those that you corrected" if known else ""
        raise SondeError(f"no document has both a label of the run {found.name!r} and a value in {truth!r}{more}")
    guessed = [[names[number] for number, _ in given[doc] if not several or number >= 0] for doc in both]
    quality = _quality(
        found.name, truth, [true[doc] for doc in both], guessed, set(names.values()), several, names.get(-1)
    )
    notes = [*quality.notes, *([strange] if strange else [])]
    if empty := len([doc for doc in docs if doc in given and doc not in true]):
        notes.append(f"{counted(empty, 'document')} without a value in {truth!r} left out")
    if len(both) < len(known):
        notes.append(f"{counted(len(known) - len(both), 'document')} with labels that you corrected left out")
    return replace(_as_written(quality, written), notes=tuple(notes))


def _as_written(quality: LabelQuality, written: Mapping[str, str]) -> LabelQuality:
    """Return a quality with the names of classes as the run has them."""
    classes = tuple(replace(each, label=written.get(each.label, each.label)) for each in quality.classes)
    pairs = ((written.get(one, one), written.get(two, two), count) for one, two, count in quality.confusion)
    return replace(quality, classes=classes, confusion=tuple(pairs))


def _of_column(view: View, docs: Sequence[int], truth: str) -> dict[int, list[str]]:
    if truth not in view.fields:
        raise UsageError(f"there is no column {truth!r} that could hold the truth: {existing(view.fields)}")
    stored = view.catalog.metadata(docs)
    return {doc: _names(row[truth]) for doc, row in stored.items() if row.get(truth) not in (None, [], "")}


def _of_ids(catalog: Catalog, labels: Mapping[str, Sequence[str]], truth: str) -> tuple[dict[int, list[str]], str]:
    """Return the labels by document number, and a note on ids that no document has, "" if there are none."""
    numbers = numbers_by_id(catalog, labels)
    strange = [shown_id(id) for id in labels if id not in numbers]
    verb = "belongs" if len(strange) == 1 else "belong"
    said = f"{counted(len(strange), 'id')} of {len(labels):,} in {truth!r} {verb} to no document: {_few(strange)}"
    if not numbers:
        raise SondeError(said)
    return {doc: _names(list(labels[id])) for id, doc in numbers.items()}, f"{said}; left out" if strange else ""


def _true(names: Sequence[str], known: Collection[str]) -> list[str]:
    """Return the true labels of a document that may have several; nothing if it has none."""
    return [name for name in map(plain, codes_of(names, known)) if name != plain(NONE_NAME)]


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _check_shared(truth: str, classes: set[str], run: str, names: Mapping[int, str]) -> None:
    """Check that a column and a run of labels have a name in common.

    Raises:
        UsageError: They have none.
    """
    labels = set(names.values())
    if classes and not classes & labels:
        said = f"no value of {truth!r} is a label of the run {run!r}: the values are {_some(classes)}; the labels are "
        said += f"{_some(labels)}; choose another {arg('truth')} or {arg('run')}"
        raise UsageError(said, code="not-found", field="truth", value=truth)


def _some(names: Collection[str]) -> str:
    """Return the first names in order, each shortened."""
    return _few([repr(on_one_line(name, 40)) for name in sorted(names)])


def _matching_run(catalog: Catalog, classes: set[str], name: str | None) -> Run:
    """Return the label run of this name, or the complete one whose labels and `classes` have the most in common."""
    newest = find_run(catalog, LABEL, name)
    if name is not None:
        return newest

    def common(run: Run) -> float:
        """Return the Jaccard index of the run's labels and the classes, 0 to 1."""
        labels = {plain(item.name) for item in items_of(catalog, run) if item.number >= 0}
        named = set(map(plain, codes_of([*classes], labels))) if run.parameters.get("multi_label") else classes
        return len(labels & named) / max(1, len(labels | named))

    runs = [run for run in list_runs(catalog, LABEL) if run.complete]
    return max(reversed(runs), key=common)


def _names(value: Any) -> list[str]:
    return [plain(str(each)) for each in (value if isinstance(value, list) else [value])]


def _quality(
    run: str, column: str, true: Sequence[list[str]], guessed: Sequence[list[str]], known: set[str], several: bool,
    none: str | None,
) -> LabelQuality:  # fmt: skip
    """Compare labels; `none` is what the run calls a text that it gives none, if it does so."""
    missing = sorted({name for names in true for name in names} - known)
    labels = sorted(known - {none})
    shown = [name + did_you_mean(name, labels) for name in missing[:5]]
    listed = ", ".join([*shown, *(["…"] if len(missing) > 5 else [])])
    note = f"the run has no label for these values of {column!r}: {listed}"
    if missing and not several and none is not None and [none] in guessed:
        true = [[none] if set(names) <= set(missing) else names for names in true]
        note += f"; {none!r} counts as right for them"
    elif missing:
        note += "; documents with these values count as wrong"
    if several and not all(true):  # a class of its own only if the truth has it, as in runs of one label per text
        true, guessed = ([names or [plain(NONE_NAME)] for names in part] for part in (true, guessed))
    classes = sorted({name for names in (*true, *guessed) for name in names})
    decided = list(zip(true, guessed, strict=True))
    right = [set(one) == set(two) if several else two[0] in one for one, two in decided]
    pairs = [] if several else [(one[0], two[0]) for one, two in decided]
    confusion = tuple((one, two, count) for (one, two), count in Counter(pairs).most_common())
    accepted = [] if several else [(two[0] if two[0] in one else one[0], two[0]) for one, two in decided]
    each = tuple(ClassQuality.of(name, [(name in one, name in two) for one, two in decided], several)
                 for name in classes)  # fmt: skip
    f1 = sum(quality.f1 for quality in each) / len(each)
    return LabelQuality(
        run, column, len(right), sum(right) / len(right), f1, each, confusion, (note,) if missing else (), several,
        wilson(sum(right), len(right)), _kappa(accepted),
    )  # fmt: skip


def wilson(right: int, texts: int) -> tuple[float, float]:
    """Return the 95 % interval of a share, by Wilson's method (Journal of the American Statistical Association, 1927).

    Args:
        right: How many texts count.
        texts: Of how many, 1 or more.
    """
    share, square = right / texts, NORMAL**2 / texts
    middle = share + square / 2
    width = NORMAL * math.sqrt(share * (1 - share) / texts + square / (4 * texts))
    return max(0.0, (middle - width) / (1 + square)), min(1.0, (middle + width) / (1 + square))


def _kappa(pairs: Sequence[tuple[Any, Any]]) -> float | None:
    """Return Cohen's kappa of pairs of decisions, at most 1; None if chance alone gives full agreement.

    It is the agreement beyond chance (Educational and Psychological Measurement, 1960).
    """
    sides = [Counter(pair[side] for pair in pairs) for side in (0, 1)]
    agreed = sum(one == two for one, two in pairs) / max(len(pairs), 1)
    by_chance = sum(count * sides[1][name] for name, count in sides[0].items()) / max(len(pairs), 1) ** 2
    return None if not pairs or by_chance >= 1 else (agreed - by_chance) / (1 - by_chance)
