"""Label a collection as a named run, and label texts that are not in a collection."""

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from ...indexer.encoder import Encoder, load_encoder
from ...indexer.errors import SondeError, Texts, UsageError, as_texts
from ...indexer.progress import Notify, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import chosen_texts
from ...indexer.store.kinds import LABEL
from ...indexer.store.run_writing import NewRun, Snapshot, check_run_name, write_run
from ...indexer.store.runs import Item
from ...indexer.store.view import View, document_vectors
from ...indexer.wording import counted
from ..search.filters import documents_where, empty_hint
from ..search.rerank.late import Rarity, rarity
from .corrections import Truths, take_corrections, truths_of, unused_corrections
from .engines import STATIC_NOTE, Judge, LateJudge, check_engine, load_judge
from .labels import NONE, NONE_NAME, Label, Labels, make_labels
from .margins import Journal, LabelTexts, Margins, label_corpus, open_journal
from .none import HALF, refusal
from .notes import few_nones, losses, moved, notes_of, relabelled, untrained
from .outcome import (
    Classified,
    LabelReport,
    apply_corrections,
    beside_refusal,
    classified,
    closeness,
    decide,
    doubtful,
)
from .scores import label_vectors
from .settings import LabelSettings

UNKNOWN_SHOWN = 5
"""Labels that a message names, at most, because only corrections have them."""
LIBRARIES = ("torch", "transformers", "numpy")


def label_collection(
    collection: StoredCollection, labels: Labels, settings: LabelSettings = LabelSettings(), *,
    judge: Judge | None = None, notify: Notify = silent,
) -> LabelReport:  # fmt: skip
    """Label a collection's documents and store the result as a label run.

    If a run is killed, start it again with the same settings: it resumes where it stopped. Corrections stored under the
    run's name are applied, and the run learns from them.

    Args:
        collection: The collection.
        labels: Names, with or without descriptions.
        settings: Settings of the labelling.
        judge: A judge of your own instead of the engine's.
        notify: Receives progress and messages.

    Raises:
        UsageError: The labels or a setting is not valid, or the run's name is taken.
        SondeError: A model is not available, the collection is empty or cannot be written.
    """
    began = time.monotonic()
    settings.check()
    engine, made = check_engine(settings.engine), make_labels(labels, several=settings.multi_label)
    begin_run(collection, made, settings, notify)
    with collection.view() as view:
        snapshot = Snapshot.of(view)
        docs, keys = _documents(view, snapshot, settings.where)
        vectors, encoder = document_vectors(view, docs), collection.encoder
        truths = _truths(view, made, settings, docs, notify)
    judge = judge or judge_of(collection, engine, settings, notify)
    corpus = LabelTexts(
        vectors,
        keys,
        lambda rows: label_texts(collection, docs[rows]),
        np.searchsorted(docs, truths.docs),
        truths.shares,
    )
    fingerprint = _fingerprint(made, settings, judge)
    kept = open_journal(collection.path, settings.name, fingerprint) if judge else nullcontext(Journal.nowhere())
    with kept as journal:
        if journal.known:
            notify(f"continuing: {counted(len(journal.known), 'document')} already judged")
        of_labels = label_vectors(encoder, made)
        found = label_corpus(corpus, made, of_labels, engine, judge, settings, journal, notify)
        none, no_label = refusal(corpus, of_labels, settings)
        texts, numbers, scores, lost = _decided(found, made, corpus, settings, none, no_label)
        review = _review(docs, found.probabilities(settings.multi_label, none), settings, none, no_label)
        model = judge.model if judge else encoder.spec.name
        seconds = time.monotonic() - began
        report = replace(
            _report(made, settings, engine, model, found, numbers, len(docs), len(truths.docs), seconds),
            likely_none=None if none is None else int((none >= HALF).sum()),
            doubtful=doubtful(made, numbers, texts, review["margins"]),
        )
        new = NewRun(
            kind=LABEL, name=settings.name, parameters=_parameters(made, settings, engine, model),
            libraries=LIBRARIES, report=_measured(report), seconds=seconds, items=_items(made, numbers),
            assignments=(docs[texts], numbers, scores),
            arrays=review,
        )  # fmt: skip
        report, others = write_labels(collection, new, snapshot, settings, report)
    static = engine == "similarity" and collection.spec.kind == "static"
    return replace(report, notes=notes_of(report, settings, none, static, [*others, *lost, *truths.notes]))


def write_labels(
    collection: StoredCollection, new: NewRun, snapshot: Snapshot, settings: LabelSettings, report: LabelReport
) -> tuple[LabelReport, list[str]]:
    """Store a label run; return its report with the documents that changed meanwhile, and notes on the replaced run."""
    others = relabelled(collection.open_catalog(), new) if settings.replace else []
    return replace(report, changed=write_run(collection, new, snapshot, replace=settings.replace)), others


def begin_run(collection: StoredCollection, labels: Sequence[Label], settings: LabelSettings, notify: Notify) -> None:
    """Check the name of a label run, and copy the corrections of another run to it if the settings name one.

    Raises:
        UsageError: The name is taken, or cannot be one.
        SondeError: The other run has no corrections, or another process is writing.
    """
    check_run_name(collection.open_catalog(), LABEL, settings.name, settings.replace)
    if settings.corrections_of not in (None, settings.name):
        other = str(settings.corrections_of)
        taken = take_corrections(collection, other, settings.name, labels, settings.multi_label)
        notify(f"copied {counted(taken, 'correction')} from {other!r} to {settings.name!r}")


def _decided(
    found: Margins, labels: Sequence[Label], corpus: LabelTexts, settings: LabelSettings, none: np.ndarray | None,
    refused: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:  # fmt: skip
    """Return what `decide` returns with the corrections applied, and notes on labels that lost documents to them."""
    rule = settings.multi_label, settings.least, none, refused
    given = decide(found.probabilities(settings.multi_label, none), *rule)
    texts, numbers, scores = apply_corrections(*given, corpus.known, corpus.truth)
    if found.before is None or not len(corpus.known):
        return texts, numbers, scores, []
    earlier = replace(found, margins=found.before).probabilities(settings.multi_label, none)
    before = decide(earlier, *rule)[:2]
    notes = losses(labels, before[1], numbers, corpus.truth)
    return texts, numbers, scores, notes + moved(before, (texts, numbers), corpus.known, len(labels))


def _review(
    docs: np.ndarray,
    shares: np.ndarray,
    settings: LabelSettings,
    none: np.ndarray | None,
    refused: np.ndarray | None,
) -> dict[str, np.ndarray]:
    """Return what a run stores for its review: documents, margins, runners-up and chances of none."""
    close = closeness(shares, settings.multi_label, settings.least)
    found = {"documents": docs, **beside_refusal(close, none, refused, shares)}
    return found if none is None else found | {"none": none.astype(np.float32)}


def classify(
    texts: Texts, labels: Labels, settings: LabelSettings = LabelSettings(), *,
    encoder: Encoder | None = None, judge: Judge | None = None, notify: Notify = silent,
) -> list[Classified]:  # fmt: skip
    """Label texts that are not in a collection.

    50 or more texts are treated as a corpus: similarity adapts its labels to them, and the ensemble standardises its
    scores over them. Fewer texts are labelled independently.

    Raises:
        UsageError: The labels, a setting or a text is not valid, or a text is empty.
        SondeError: A model is not available.
    """
    texts, made = check_classify(texts, labels, settings)
    engine = check_engine(settings.engine)
    if not texts:
        return []
    given = encoder or load_encoder(device=settings.device, notify=notify)
    judge = judge or _judge(engine, settings, lambda: _late_among(texts, given), notify)
    corpus = LabelTexts(
        given.encode_texts(texts), [str(n) for n in range(len(texts))], lambda rows: [texts[n] for n in rows]
    )
    of_labels = label_vectors(given, made)
    found = label_corpus(corpus, made, of_labels, engine, judge, settings, notify=notify)
    model = judge.model if judge else given.spec.name
    none, no_label = refusal(corpus, of_labels, settings)
    shares = found.probabilities(settings.multi_label, none)
    return classified(shares, made, settings.multi_label, settings.least, engine, model, none, no_label)


def check_classify(
    texts: Texts, labels: Labels, settings: LabelSettings = LabelSettings()
) -> tuple[list[str], tuple[Label, ...]]:
    """Check texts and labels, and return them in the form that `classify` uses; nothing is loaded yet.

    Raises:
        UsageError: The labels, a setting or a text is not valid, or a text is empty.
    """
    settings.check()
    given, made = as_texts(texts, "text"), make_labels(labels, several=settings.multi_label)
    for number, text in enumerate(given, 1):
        if not text.strip():
            said = f"text {number} of {len(given)} is empty: there is nothing to label"
            raise UsageError(said, code="empty", field="texts", value=number)
    return given, made


def _judge(engine: Any, settings: LabelSettings, late: Callable[[], LateJudge], notify: Notify) -> Judge | None:
    return load_judge(
        engine, settings.model, late=late, template=settings.template, device=settings.device, dtype=settings.dtype,
        notify=notify,
    )  # fmt: skip


def judge_of(
    collection: StoredCollection, engine: Any, settings: LabelSettings, notify: Notify = silent
) -> Judge | None:
    """Return the judge of an engine for a collection; None for similarity, with a warning about static models.

    Raises:
        UsageError: A setting is not valid.
        SondeError: The model is not available.
    """
    if engine == "similarity" and collection.spec.kind == "static":
        notify(STATIC_NOTE)
    return _judge(engine, settings, lambda: _late(collection), notify)


def _late(collection: StoredCollection) -> LateJudge:
    with collection.view() as view:
        return LateJudge(collection.encoder, rarity(view, collection.encoder))


def _late_among(texts: Sequence[str], encoder: Encoder) -> LateJudge:
    return LateJudge(encoder, Rarity.of([tokens.ids for tokens in encoder.tokenize(list(texts))]))


def _documents(view: View, snapshot: Snapshot, where: str | None) -> tuple[np.ndarray, list[str]]:
    """Return the numbers of the documents to label, and the digests of their contents."""
    chosen = np.ones(len(snapshot.docs), bool)
    if where is not None:
        chosen = np.isin(snapshot.docs, documents_where(view.catalog, where))
    if not chosen.any():
        path = view.collection.path
        none = f"{path} holds no documents to label"
        raise SondeError(f"no document passes the filter {where!r}{empty_hint(view.catalog, where)}" if where else none)
    keys = [snapshot.contents[place].hex() for place in np.flatnonzero(chosen).tolist()]
    return snapshot.docs[chosen], keys


def _truths(view: View, labels: Sequence[Label], settings: LabelSettings, docs: np.ndarray, notify: Notify) -> Truths:
    """Return the corrections of the documents to label; none if the settings disable corrections."""
    if not settings.corrections:
        return Truths(docs[:0], np.zeros((0, len(labels))))
    found = truths_of(view.catalog, settings.name, labels)
    if found.unknown:
        more = ", …" if len(found.unknown) > UNKNOWN_SHOWN else ""
        labelled = ", ".join(found.unknown[:UNKNOWN_SHOWN])
        notify(f"corrections with labels that this run does not have are left out: {labelled}{more}")
    here = np.isin(found.docs, docs)
    if here.any():
        notify(f"using {counted(int(here.sum()), 'correction')}")
    free = docs[~np.isin(docs, found.docs)]
    notes = unused_corrections(view.catalog, settings.name, labels, free, settings.multi_label)
    if not here.any():
        notes += untrained(view)
    if not settings.multi_label:
        notes += few_nones(found.shares[here])
    return Truths(found.docs[here], found.shares[here], notes=notes)


def label_texts(collection: StoredCollection, docs: np.ndarray) -> list[str]:
    """Return the title of each document followed by its text; "" if the document was deleted in the meantime."""
    with collection.view() as view:
        found = {each.doc: (each.title, each.text) for each in chosen_texts(view.catalog, docs.tolist())}
    pairs = (found.get(doc, ("", "")) for doc in docs.tolist())
    return [f"{title}\n\n{text}" if title.strip() and not text.startswith(title) else text for title, text in pairs]


def _fingerprint(labels: Sequence[Label], settings: LabelSettings, judge: Judge | None) -> str:
    """Return a fingerprint of everything that determines a judge's result for a text."""
    said = (
        getattr(judge, "template", ""),
        settings.multi_label,
        settings.shortlist,
        judge.model if judge else "",
        settings.dtype,
    )
    return json.dumps([[label.wording for label in labels], judge.name if judge else "", *said])


def _parameters(labels: Sequence[Label], settings: LabelSettings, engine: str, model: str) -> dict[str, Any]:
    kept = {
        name: value for name, value in asdict(settings).items() if name not in ("name", "replace", "corrections_of")
    }
    return {"labels": [asdict(label) for label in labels], **kept, "engine": engine, "model": model}


def _items(labels: Sequence[Label], numbers: np.ndarray) -> list[Item]:
    sizes = Counter(numbers.tolist())
    items = [
        Item(n, label.name, {"description": label.description, "size": sizes[n]}) for n, label in enumerate(labels)
    ]
    none = [Item(NONE, NONE_NAME, {"description": "", "size": sizes[NONE]})] if sizes[NONE] else []
    return [*items, *none]


def _report(
    labels: Sequence[Label], settings: LabelSettings, engine: str, model: str, found: Margins, numbers: np.ndarray,
    documents: int, corrected: int, seconds: float,
) -> LabelReport:  # fmt: skip
    sizes = Counter(numbers.tolist())
    counts = {label.name: sizes[number] for number, label in enumerate(labels)}
    if sizes[NONE]:
        counts[NONE_NAME] = sizes[NONE]
    return LabelReport(
        settings.name, engine, model, documents, counts, found.calls, documents * len(labels), found.judged,
        found.agreement, found.held_back, corrected, 0, seconds,
    )  # fmt: skip


def _measured(report: LabelReport) -> dict[str, Any]:
    names = (
        "documents", "counts", "calls", "full_calls", "judged", "agreement", "held_back", "corrected", "likely_none",
    )  # fmt: skip
    return {name: getattr(report, name) for name in names}
