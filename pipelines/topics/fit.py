"""Make a topic run: fit on a sample, assign every document, name the topics, write all at once."""

import time
from collections.abc import Mapping
from dataclasses import replace as changed
from typing import Any, cast

import numpy as np

from ...indexer.ann.devices import faiss_package
from ...indexer.errors import Message, arg
from ...indexer.progress import Notify, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.kinds import LEVELS, TOPIC, kind_of
from ...indexer.store.run_writing import NewRun, check_run_name, write_run
from ...indexer.store.runs import Item, Run, array_of, assignments_of, check_model, find_run, items_of, list_runs
from ...indexer.store.view import View
from ...indexer.wording import counted
from ..analysis.corpus import Corpus, texts_of
from ..analysis.cuml import cuml_package
from ..analysis.describe import OUTLIERS
from ..analysis.naming.namer import Namer
from ..analysis.naming.names import MEASURED, report_of
from ..analysis.neighbours import one_thread, sample_rows
from ..analysis.terms import from_arrays, to_arrays
from ..search.foreign import notify_of_languages
from . import adapter
from .adapter import bertopic
from .items import Before, topic_items, words_of
from .layers import FEWEST
from .levels import level_runs, nested_levels, parts_of
from .model import OUTLIER, Assigned, Levels, TopicModel, leaves_of, nested_leaves
from .results import Regrouped
from .settings import LEVEL_NAMES, Level, TopicSettings

LEAST = 0.1
"""Two topics are the same only if they share this much of their common documents (Jaccard), or,"""
ALIKE = 0.9
"""where they have none in common, if the cosine of their vectors is at least this."""


def matched(
    new: TopicModel, new_topics: np.ndarray, old: TopicModel, old_topics: np.ndarray, *, comparable: bool = True
) -> tuple[TopicModel, dict[int, int]]:
    """Number the topics of a model like those of an older one.

    The assignment is the one of the largest total overlap and similarity (Kuhn, Naval Research Logistics Quarterly 2,
    1955).

    Args:
        new: The model to be numbered.
        new_topics: int64 [n], its topics of the documents that both know.
        old: The model before it.
        old_topics: int64 [n], its topics of the same documents.
        comparable: Whether both used the same bi-encoder's embeddings; if not, only documents are compared.

    Returns:
        The model with other numbers, and which of them are matched: the old number by the new model's own. A topic
        that is new gets a number above all old ones.
    """
    from scipy.optimize import linear_sum_assignment

    ours, theirs = list(new.groups), list(old.groups)
    pairs: dict[int, int] = {}
    if ours and theirs:
        overlap = _jaccard(new_topics, ours, old_topics, theirs)
        cosines = _cosines(new, old) if comparable else np.zeros_like(overlap)
        rows, columns = linear_sum_assignment(-(overlap + 0.5 * cosines))
        shared = np.isin(old_topics, theirs).any()
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            if overlap[row, column] >= LEAST or (not shared and cosines[row, column] >= ALIKE):
                pairs[ours[row]] = theirs[column]
    fresh = max([*theirs, -1]) + 1
    numbers = dict(pairs)
    for topic in ours:
        if topic not in numbers:
            numbers[topic] = fresh
            fresh += 1
    groups = {numbers[topic]: leaves for topic, leaves in new.groups.items()}
    return changed(new, groups=dict(sorted(groups.items()))), pairs


def _cosines(new: TopicModel, old: TopicModel) -> np.ndarray:
    return np.round((new.topic_vectors() @ old.topic_vectors().T).astype(np.float64), 5)


def renumbered(topics: np.ndarray, numbers: Mapping[int, int]) -> np.ndarray:
    """Return int64 [n] topics under other numbers; outliers stay."""
    return np.array([numbers.get(topic, OUTLIER) for topic in topics.tolist()], np.int64)


def _jaccard(ours: np.ndarray, our_topics: list[int], theirs: np.ndarray, their_topics: list[int]) -> np.ndarray:
    known = np.isin(ours, our_topics) | np.isin(theirs, their_topics)
    one = (ours[known, None] == np.array(our_topics)).astype(np.float64)
    other = (theirs[known, None] == np.array(their_topics)).astype(np.float64)
    both = one.T @ other
    either = one.sum(axis=0)[:, None] + other.sum(axis=0) - both
    return both / np.maximum(either, 1)


ARRAYS = ("vectors", "thresholds", "tree", "counts", "counts_word", "counts_start", "words")
KEPT = ("fitted", "min_size", "groups", "levels", "suggested", "level", "clear", "equal", "silhouette", "stability")
"""What a run's report keeps when the run is written again without a fit."""
OF_NUMBER = ("clear", "equal")
"""Whether the number of topics is clear: dropped when a person changes the topics."""
LIBRARIES = ("bertopic", "evoc", "hdbscan", "numba", "numpy", "scikit-learn", "scipy", "umap-learn")
SEED_SHARE = 0.25
"""How far a text is drawn towards the group of seed words that it is nearest to."""


def make_topics(
    collection: StoredCollection,
    settings: TopicSettings = TopicSettings(),
    name: str = "topics",
    *,
    replace: bool = False,
    match: str | None = None,
    notify: Notify = silent,
) -> None:
    """Fit topics and write them as the run `name`.

    Args:
        collection: What to fit.
        settings: How.
        name: Of the run.
        replace: Whether a run of this name may be replaced; the topics are then numbered like its topics.
        match: Another run whose numbers are taken where topics are the same.
        notify: Receives progress.

    Raises:
        UsageError: A setting or the name is not valid.
        SondeError: There is no run `match`, or another process is writing.
        MissingExtraError: BERTopic is not installed.
    """
    began = time.perf_counter()
    settings.check()
    with collection.view() as view:
        check_run_name(view.catalog, TOPIC, name, replace)
        earlier = _earlier(view, name, match)
        bertopic()
        corpus = Corpus.of(view)
        model, report = _fit(view, corpus, settings, notify)
        assigned = model.assign(corpus.vectors)
        known = Before(namer=Namer.of(settings.namer, settings.namer_model, settings.namer_show))
        if earlier:
            model, known = _numbered(view, corpus, model, assigned, earlier, known.namer)
            assigned = model.assign(corpus.vectors)
        new = _run(view, corpus, model, assigned, name, settings.to_dict(), report, known, notify)
        parts = level_runs(view, corpus, new, model, assigned, {}, notify)
    new = _timed(new, time.perf_counter() - began)
    write_run(collection, new, corpus.snapshot, replace=replace, parts=parts)


def rewrite(
    collection: StoredCollection, run: Run, found: Regrouped, change: Mapping[str, Any] | None, notify: Notify = silent
) -> None:
    """Write a run again with a changed model, for all documents that there are now.

    Args:
        collection: Where the run is.
        run: The run.
        found: Its model, changed.
        change: What was done, kept with the parameters; None for nothing but new documents.
        notify: Receives progress.

    Raises:
        SondeError: Another process is writing.
    """
    began, model = time.perf_counter(), found.model
    with collection.view() as view:
        check_model(run, view.generation.spec)
        corpus = Corpus.of(view)
        items = {item.number: item for item in items_of(view.catalog, run)} | dict(found.restored)
        parameters = dict(run.parameters)
        if change:
            parameters["changes"] = [*parameters.get("changes", []), dict(change)]
        dropped = OF_NUMBER if change else ()
        report = {key: run.report[key] for key in (*KEPT, *MEASURED) if key in run.report and key not in dropped}
        assigned = model.assign(corpus.vectors)
        new = _run(view, corpus, model, assigned, run.name, parameters, report, Before(items), notify)
        before = {kind: items_of(view.catalog, part) for kind, part in parts_of(view, run).items()}
        parts = level_runs(view, corpus, new, model, assigned, before, notify)
    new = changed(_timed(new, time.perf_counter() - began), items=found.remembered(new.items))
    write_run(collection, new, corpus.snapshot, replace=True, parts=parts)


def load_topic_model(view: View, run: Run) -> TopicModel:
    """Return the model that a run keeps."""
    arrays = {name: array_of(view.catalog, run, name) for name in ARRAYS}
    groups = {item.number: tuple(item.data["leaves"]) for item in items_of(view.catalog, run) if item.number != OUTLIER}
    levels = None
    if "suggested" in run.report:
        suggested = LEVELS.index(kind_of(run.report["suggested"]))
        levels = Levels(array_of(view.catalog, run, "levels"), suggested, array_of(view.catalog, run, "means"))
    return TopicModel(arrays["vectors"], arrays["thresholds"], from_arrays(arrays), arrays["tree"], groups, levels)


def automatic_size(count: int) -> int:
    """Return the fewest texts of a topic for this many distinct texts: three quarters of the square root, 5 or more."""
    return max(5, round(0.75 * count**0.5))


def _earlier(view: View, name: str, match: str | None) -> Run | None:
    if match is not None:
        return find_run(view.catalog, TOPIC, match)
    return next((run for run in list_runs(view.catalog, TOPIC) if run.name == name and run.complete), None)


def _fit(view: View, corpus: Corpus, settings: TopicSettings, notify: Notify) -> tuple[TopicModel, dict[str, Any]]:
    notify_of_languages(view, notify)
    chosen = sample_rows(len(corpus.vectors), settings.sample, settings.seed)
    vectors = corpus.vectors[chosen]
    texts = texts_of(view, corpus.snapshot.docs[corpus.first[chosen]])
    if settings.dense or len(chosen) < FEWEST:
        return _fit_dense(view, vectors, texts, settings, notify)
    return _fit_levels(view, vectors, texts, settings, notify)


def _fit_levels(
    view: View, vectors: np.ndarray, texts: list[str], settings: TopicSettings, notify: Notify
) -> tuple[TopicModel, dict[str, Any]]:
    """Return a model of nested levels, with its topics at the level that is asked for, and what was measured."""
    notify(f"fitting topics on {counted(len(texts), 'distinct text')}")
    nested = nested_levels(_guided(view.collection, vectors, settings), settings.seed, notify)
    leaves, thresholds, fine, levels = nested_leaves(
        vectors, nested.leaves, nested.levels, nested.suggested, settings.outliers == "keep"
    )
    inside = np.isin(nested.leaves, fine)
    place = np.empty(int(nested.leaves.max()) + 1, np.int64)
    place[fine] = np.arange(len(fine))
    notify(f"counting words of {counted(len(fine), 'fine group')}")
    some = np.flatnonzero(inside)
    counts = adapter.count_words(
        [texts[row] for row in some], vectors[some], place[nested.leaves[some]], words_of(view)
    )  # fmt: skip
    model = TopicModel.of(leaves, thresholds, counts, levels)
    suggested = str(LEVELS[nested.suggested])
    chosen = suggested if settings.level == "suggested" else settings.level
    wanted = settings.reduce_to
    if settings.about is not None:
        chosen, wanted = near_level(settings.about, levels.sizes(), suggested)
    if chosen != suggested:
        model = changed(model, groups=levels.at(LEVEL_NAMES.index(cast("Level", chosen)) - 1))
    if wanted is not None and wanted < len(model.groups):
        model = model.cut(wanted)
    if settings.reduce_to is not None and settings.reduce_to > len(model.groups):
        notify(_fewer(settings.reduce_to, len(model.groups), chosen, levels.sizes()))
    if settings.about is not None:
        model = _largest_first(model, np.bincount(place[nested.leaves[some]], minlength=len(fine)))
    if settings.about is not None and not _near(len(model.groups), settings.about):
        said = f"{arg('about')} {settings.about} gives {counted(len(model.groups), 'topic')}"
        notify(Message(f"{said}: even the fine level has no more groups"))
    report = {"fitted": len(texts), **nested.report(), "groups": len(fine), "levels": levels.sizes()}
    return model, report | {"suggested": suggested, "level": chosen}


NEAR = 0.1
"""How far the number of topics may be from the one that was asked for, as a share of it."""


def _near(found: int, asked: int) -> bool:
    return abs(found - asked) <= NEAR * asked


def near_level(asked: int, sizes: Mapping[str, int], suggested: str) -> tuple[str, int | None]:
    """Return the level from which about `asked` topics are made, and to how many its groups are merged.

    A level that has about as many is used as it is, the suggested level first. Otherwise, it is the coarsest level that
    has more, or the finest one.
    """
    asis = [name for name, size in sizes.items() if _near(size, asked)]
    if asis:
        return min(asis, key=lambda name: (name != suggested, abs(sizes[name] - asked))), None
    return next((name for name, size in sizes.items() if size > asked), list(sizes)[-1]), asked


def _largest_first(model: TopicModel, sizes: np.ndarray) -> TopicModel:
    """Return a model with its topics numbered from 0 without a gap, the largest first, given the size of each leaf."""
    ranked = sorted(model.groups.values(), key=lambda leaves: (-int(sizes[list(leaves)].sum()), leaves))
    return changed(model, groups=dict(enumerate(ranked)))


def _fewer(asked: int, found: int, level: str, sizes: Mapping[str, int]) -> Message:
    """Return why there are fewer topics than were asked for, and the next level that has more."""
    said = f"{arg('reduce_to')} {asked} gives {counted(found, 'topic')}: the level {level} has no more"
    finer = list(sizes)[list(sizes).index(level) + 1 :]
    more = next((name for name in finer if sizes[name] >= asked), finer[-1] if finer else level)
    return Message(said + (f"; {arg('level')} {more} has {sizes[more]:,}" if sizes[more] > found else ""))


def _fit_dense(
    view: View, vectors: np.ndarray, texts: list[str], settings: TopicSettings, notify: Notify
) -> tuple[TopicModel, dict[str, Any]]:
    """Return a model of dense groups, each of them a topic, and what was measured."""
    min_size = settings.min_size or automatic_size(len(texts))
    notify(f"fitting topics on {counted(len(texts), 'distinct text')}, of at least {min_size} each")
    words = words_of(view)
    dense = adapter.fit_bertopic(texts, _guided(view.collection, vectors, settings), words, settings, min_size)
    found, thresholds, groups = leaves_of(vectors, dense.labels, settings.outliers == "keep")
    model = TopicModel.of(found, thresholds, dense.counts.of(groups))
    wanted = settings.reduce_to if settings.about is None else settings.about
    if wanted is not None:
        model = model.cut(wanted)
    if not len(found):
        said = f"no {min_size} texts lie close together: there is no topic (try a smaller {arg('min_size')})"
        notify(Message(said))
    elif wanted is not None and wanted > len(model.groups) and not (settings.about and _near(len(found), wanted)):
        named = arg("reduce_to" if settings.about is None else "about")
        said = f"{named} {wanted} gives {counted(len(model.groups), 'topic')}"
        notify(Message(f"{said}: there are no more dense groups (try a smaller {arg('min_size')})"))
    return model, {"fitted": len(texts), "min_size": min_size, "groups": len(found)}


def _guided(collection: StoredCollection, vectors: np.ndarray, settings: TopicSettings) -> np.ndarray:
    """Return vectors for the fit: those nearer to a group of seed words than to the mean of all are drawn to it."""
    if not settings.seed_words:
        return vectors
    from ...indexer.store.view import normalized

    seeds = collection.encoder.encode_texts([" ".join(group) for group in settings.seed_words])
    every = np.vstack([seeds, normalized(vectors.mean(axis=0, keepdims=True))])
    with one_thread():
        nearest = np.round((vectors @ every.T).astype(np.float64), 6).argmax(axis=1)
    drawn = vectors.copy()
    for group, seed in enumerate(seeds):
        rows = np.flatnonzero(nearest == group)
        drawn[rows] = normalized((1 - SEED_SHARE) * vectors[rows] + SEED_SHARE * seed)
    return drawn


def _numbered(
    view: View, corpus: Corpus, model: TopicModel, assigned: Assigned, run: Run, namer: Namer | None
) -> tuple[TopicModel, Before]:
    """Number a model's topics like those of an earlier run."""
    docs, items, _ = assignments_of(view.catalog, run)
    known = np.isin(corpus.snapshot.docs, docs)
    old = items[np.searchsorted(docs, corpus.snapshot.docs[known])]
    before = load_topic_model(view, run)
    ours = assigned.topics[corpus.group[known]]
    model, _ = matched(model, ours, before, old, comparable=not run.other_model)
    return model, Before({item.number: item for item in items_of(view.catalog, run)}, matched=True, namer=namer)


def _run(
    view: View,
    corpus: Corpus,
    model: TopicModel,
    assigned: Assigned,
    name: str,
    parameters: dict[str, Any],
    report: dict[str, Any],
    known: Before,
    notify: Notify,
) -> NewRun:
    group = corpus.group
    topics = assigned.topics[group]
    items, accuracy = topic_items(view, corpus, model, assigned, parameters, known, notify)
    outliers = int((topics == OUTLIER).sum())
    if outliers:
        items = [Item(OUTLIER, OUTLIERS, {"size": outliers}), *items]
    report = report | (report_of(accuracy) if accuracy else {}) | {
        "documents": len(group), "distinct": len(corpus.first), "topics": len(model.groups), "outliers": outliers,
        "outlier_share": round(outliers / max(len(group), 1), 6),
        "carried": max(0, len(corpus.first) - report.get("fitted", 0)),
    }  # fmt: skip
    arrays = {"vectors": model.vectors, "thresholds": model.thresholds, "tree": model.tree} | to_arrays(model.counts)
    if model.levels:
        arrays |= {"levels": model.levels.groups, "means": model.levels.means}
    arrays |= {"documents": corpus.snapshot.docs, "probabilities": assigned.probabilities[group].astype(np.float32)}
    return NewRun(
        TOPIC, name, parameters, libraries=(faiss_package(), *cuml_package(), *LIBRARIES), report=report, items=items,
        arrays=arrays,
        assignments=(corpus.snapshot.docs, topics, assigned.cosines[group]),
    )  # fmt: skip


def _timed(new: NewRun, seconds: float) -> NewRun:
    return changed(new, seconds=round(seconds, 3))
