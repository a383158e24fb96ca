"""Names of clusters and topics: candidate labels that most typical texts get, and names that a person has given."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...indexer.encoder import Encoder
from ...indexer.errors import UsageError, arg, unknown_option
from ...indexer.progress import Notify, silent
from ...indexer.store.catalog import Catalog
from ...indexer.store.kinds import CLUSTER
from ...indexer.store.run_writing import RENAMED
from ...indexer.store.runs import Item, assignments_of, items_of, list_runs
from ...indexer.wording import counted
from ..analysis.neighbours import one_thread

ENGINES = ("similarity", "nli")
READ = 5
"""Typical texts of a group that NLI reads; similarity compares all that it is given."""
SHORTLIST = 10
"""Labels that NLI reads a text against, the most similar ones."""
LEAST = 0.5
"""The share of its typical texts that a group's label must have."""
ABOVE = 0.5
"""By how many standard deviations a text must be nearer to its label than texts are on average. Labels adapt to the
corpus, so each is some texts' likeliest: without this, labels that have nothing to do with a corpus name all of its
topics, with it fewer. A higher limit would refuse a label that most of a corpus deserves.
"""
ADAPT_TO = 20_000
"""Texts beside the typical ones that labels adapt to, at most."""

SHARED = 0.5
"""Of the documents of two clusters together, the share that both must have for the name to be carried over."""


@dataclass(frozen=True, slots=True)
class GroupLabel:
    """The label of a group: None if no label has half of its typical texts; `share` is that of the commonest.

    By similarity, a text that is hardly nearer to its label than texts are on average has none.
    """

    label: str | None
    share: float


def read_candidates(text: str | None, path: Path | None) -> tuple[str, ...]:
    """Return candidate labels that were given with commas between them, or one a line in a file; neither gives none.

    Raises:
        UsageError: Both were given, or a label is not valid.
        SondeError: The file cannot be read.
    """
    from ..label.labels import make_labels, read_labels

    if text is not None and path is not None:
        raise UsageError(f"give {arg('labels')} or {arg('labels_file')}, not both", code="conflict", field="labels")
    if text is None and path is None:
        return ()
    return tuple(label.wording for label in make_labels(read_labels(path) if path else text or ""))


def check_labels(labels: Sequence[str], engine: str) -> None:
    """Check candidate labels before the work is done.

    Raises:
        UsageError: There is but one, one is empty or comes twice, or there is no such engine.
    """
    from ..label.labels import make_labels

    if engine not in ENGINES:
        raise unknown_option("engine", engine, ENGINES)
    if labels:
        make_labels(labels)
    elif engine != ENGINES[0]:
        said = f"{arg('engine')} {engine} chooses among labels: give {arg('labels')} too"
        raise UsageError(said, code="conflict", field="engine", value=engine)


def label_groups(
    encoder: Encoder, vectors: np.ndarray, typical: Sequence[np.ndarray], read: Callable[[np.ndarray], list[str]],
    labels: Sequence[str], engine: str, notify: Notify = silent, judge: Any = None,
) -> list[GroupLabel]:  # fmt: skip
    """Return a label for each group of texts.

    Args:
        encoder: The collection's.
        vectors: float32 [n, d], of length 1: all texts, to which labels adapt as in `sonde label`.
        typical: int64 rows of each group's most typical texts, the most typical first.
        read: Returns the texts in some rows.
        labels: Candidates, "name" or "name: description".
        engine: "similarity" or "nli".
        notify: Receives sentences.
        judge: An NLI judge in place of the one that is loaded.

    Raises:
        SondeError: A model is not available.
    """
    from ..label.labels import make_labels
    from ..label.solvers import probabilities

    if not typical:
        return []
    made, groups = make_labels(labels), list(typical)
    if engine == "nli":
        groups = [rows[:READ] for rows in groups]
        judge = judge or _nli(notify)
    rows = np.unique(np.concatenate(groups))
    with one_thread():
        margins, nearer = _similar(encoder, vectors, rows, made)
        if engine == "nli":
            notify(f"reading {counted(len(rows), 'typical text')} against the labels")
            margins, nearer = judge.margins(read(rows), made, False, _shortlist(margins)), np.ones(margins.shape, bool)
    shares, names = probabilities(margins, False), [label.name for label in made]
    places = [np.searchsorted(rows, some) for some in groups]
    return [_chosen(shares[some], nearer[some], names) for some in places]


def _nli(notify: Notify) -> Any:
    from ..label.engines import BUNDLED_MODEL, load_nli
    from ..label.labels import BUNDLED_TEMPLATE, TEMPLATE
    from ..label.scores import NliJudge

    pairs = load_nli(notify=notify)
    return NliJudge(pairs, BUNDLED_TEMPLATE if pairs.name == BUNDLED_MODEL else TEMPLATE)


def label_names(found: Sequence[GroupLabel | None], own: Sequence[str]) -> list[str]:
    """Return a name for each group: its label, with the group's own name after it where several have this label.

    Args:
        found: Of each group; None for one that was not labelled.
        own: Names made of terms.
    """
    counts = Counter(each.label for each in found if each and each.label)
    return [
        name if not each or not each.label else each.label if counts[each.label] == 1 else f"{each.label}: {name}"
        for each, name in zip(found, own, strict=True)
    ]


def _similar(encoder: Encoder, vectors: np.ndarray, rows: np.ndarray, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return float32 [rows, labels] margins of labels that have adapted to the corpus, and bool of the same shape.

    The latter tells whether a text is clearly nearer to a label, as it was given, than texts are on average.
    """
    from ..label.scores import ENOUGH, adapted_margins, label_vectors, similarity_margins

    of_labels = label_vectors(encoder, labels)
    some = np.random.default_rng(0).choice(len(vectors), min(ADAPT_TO, len(vectors)), replace=False)
    every = np.union1d(rows, some)
    own, texts = np.searchsorted(every, rows), vectors[every]
    cosines = np.round((texts @ of_labels.T).astype(np.float64), 6)
    adapted = (
        adapted_margins(texts, of_labels) if len(vectors) >= ENOUGH else similarity_margins(texts, of_labels, False)
    )
    return adapted[own], cosines[own] >= cosines.mean(axis=0) + ABOVE * cosines.std(axis=0)


def _shortlist(margins: np.ndarray) -> np.ndarray | None:
    if margins.shape[1] <= SHORTLIST:
        return None
    order = np.argsort(-margins, axis=1, kind="stable")[:, :SHORTLIST]
    chosen = np.zeros(margins.shape, bool)
    np.put_along_axis(chosen, order, True, axis=1)
    return chosen


def _chosen(shares: np.ndarray, nearer: np.ndarray, names: Sequence[str]) -> GroupLabel:
    """Let texts, float and bool [n, labels], vote; of equal labels the one with the higher mean probability wins."""
    likeliest = shares.argmax(axis=1)
    valid = nearer[np.arange(len(shares)), likeliest]
    votes = np.bincount(likeliest[valid], minlength=len(names)) / len(shares)
    best = int(np.lexsort((-shares.mean(axis=0), -votes))[0])
    share = round(float(votes[best]), 4)
    return GroupLabel(names[best] if share >= LEAST else None, share)


def carry_names(
    catalog: Catalog, run: str, items: Sequence[Item], docs: np.ndarray, labels: np.ndarray, notify: Notify
) -> list[Item]:
    """Return clusters under the names that a person gave to those that they replace.

    A cluster takes over a name if both clusters share more than half of their documents (Jaccard index), which at most
    one cluster can do. A name that no cluster takes over is reported.

    Args:
        catalog: Of the collection.
        run: Name of the run that is replaced; nothing is carried over if there is none.
        items: The new clusters.
        docs: int64 [n], document numbers.
        labels: int64 [n], the new cluster of each.
        notify: Receives a sentence for each name that is lost.
    """
    old = next((each for each in list_runs(catalog, CLUSTER, count=False) if each.name == run), None)
    given = [item for item in items_of(catalog, old) if item.data.get(RENAMED)] if old else []
    if old is None or not given:
        return list(items)
    before, numbers, _ = assignments_of(catalog, old)
    names: dict[int, str] = {}
    for item in given:
        number = _heir(docs, labels, before[numbers == item.number])
        if number is None:
            notify(f"no cluster has most of the documents of {item.name!r} any more: that name is gone")
        else:
            names[number] = item.name
    return [_named(item, names.get(item.number)) for item in items]


def _named(item: Item, name: str | None) -> Item:
    return item if name is None else replace(item, name=name, data={**item.data, RENAMED: True})


def _heir(docs: np.ndarray, labels: np.ndarray, members: np.ndarray) -> int | None:
    """Return the cluster that shares more than half of its and these documents with them, if there is one."""
    inside = labels[np.isin(docs, members)]
    inside = inside[inside >= 0]
    if not len(inside):
        return None
    number = int(np.bincount(inside).argmax())
    shared, own = int((inside == number).sum()), int((labels == number).sum())
    return number if shared / (own + len(members) - shared) > SHARED else None
