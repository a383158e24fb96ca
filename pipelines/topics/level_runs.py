"""The levels of a topic run as runs of their own kinds, so that filters, exports and maps know them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...indexer.progress import Notify, silent
from ...indexer.store.kinds import LEVELS, RunKind
from ...indexer.store.run_writing import NewRun
from ...indexer.store.runs import Item, Run, list_runs
from ...indexer.store.view import View
from ..analysis.corpus import Corpus
from ..analysis.describe import OUTLIERS
from ..analysis.naming.corpus import report_of
from .items import Before, topic_items
from .model import OUTLIER, Assigned, TopicModel


def parts_of(view: View, run: Run) -> dict[RunKind, Run]:
    """Return the levels of a topic run by kind; none for a run of one level."""
    return {kind: part for kind in LEVELS for part in list_runs(view.catalog, kind, count=False)
            if part.name == run.name}  # fmt: skip


def at_level(model: TopicModel, level: int) -> TopicModel:
    """Return a model with levels whose topics are the groups of one of them."""
    assert model.levels is not None
    return replace(model, groups=model.levels.at(level))


def level_runs(
    view: View, corpus: Corpus, whole: NewRun, model: TopicModel, assigned: Assigned,
    before: Mapping[RunKind, Sequence[Item]], notify: Notify = silent,
) -> list[NewRun]:  # fmt: skip
    """Return one run for each level of a model, and none for a model of one level.

    The items have the data of topics and, but for the coarsest, `parent`: the number of their group one level above.

    Args:
        view: Of the collection.
        corpus: Its documents.
        whole: The topic run that the levels are parts of.
        model: Its model.
        assigned: Where the corpus's vectors belong.
        before: The items that the levels had, so that they keep their names.
        notify: Receives progress.
    """
    found: list[NewRun] = []
    named = {tuple(item.data["leaves"]): item for item in whole.items if item.number != OUTLIER}
    for level, kind in enumerate(LEVELS if model.levels else ()):
        own = at_level(model, level)
        outside = assigned.topics == OUTLIER
        topics = np.where(outside, OUTLIER, own.topic_of_leaf[assigned.leaves])
        known = {number: named[leaves] for number, leaves in own.groups.items() if leaves in named}
        known |= {item.number: item for item in before.get(kind, ()) if item.number != OUTLIER}
        notify(f"naming the groups of the {kind} level")
        same = replace(assigned, topics=topics)
        parents = _parents(own, model, level, found[-1].items if found else ())
        told = Before(known, taken=_names_inside(own, model, level, named))
        items, accuracy = topic_items(view, corpus, own, same, whole.parameters, told, notify, parents)
        named |= {tuple(item.data["leaves"]): item for item in items}
        items = [_with_parent(item, model, level) for item in items]
        if outside.any():
            items = [Item(OUTLIER, OUTLIERS, {"size": int(outside[corpus.group].sum())}), *items]
        group = corpus.group
        report = {"documents": len(group), "topics": len(own.groups), "of": "topic"}
        report |= report_of(accuracy) if accuracy else {}
        found.append(NewRun(
            kind, whole.name, whole.parameters, whole.libraries, report, items=items,
            assignments=(corpus.snapshot.docs, topics[group], assigned.cosines[group]),
        ))  # fmt: skip
    return found


def _names_inside(
    own: TopicModel, model: TopicModel, level: int, named: Mapping[tuple[int, ...], Item]
) -> frozenset[str]:
    """Return the names of the suggested groups, for the levels above them: those were named first."""
    if model.levels is None or level >= model.levels.suggested:
        return frozenset()
    whole = set(own.groups.values())
    return frozenset(item.name for leaves, item in named.items() if leaves not in whole)


def _parents(
    own: TopicModel, model: TopicModel, level: int, above: Sequence[Item]
) -> dict[int, tuple[int, str]] | None:
    """Return the number and name of the group one level above each group; None at the coarsest level."""
    if level == 0 or model.levels is None:
        return None
    groups, names = model.levels.groups[level - 1], {item.number: item.name for item in above}
    numbers = {topic: int(groups[leaves[0]]) for topic, leaves in own.groups.items()}
    return {topic: (number, names[number]) for topic, number in numbers.items()}


def _with_parent(item: Item, model: TopicModel, level: int) -> Item:
    if level == 0 or model.levels is None:
        return item
    parent = int(model.levels.groups[level - 1][item.data["leaves"][0]])
    return Item(item.number, item.name, {**item.data, "parent": parent})
