"""The entry point for edits: finds the groups and documents of an edit, and writes it with its entry in the log."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...indexer.errors import SondeError, UsageError, as_texts, give_each, out_of_range
from ...indexer.progress import Notify, silent
from ...indexer.store.catalog import Catalog
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import ids_by_number, numbers_by_id
from ...indexer.store.kinds import TAXONOMY
from ...indexer.store.runs import assignments_of, items_of, list_runs
from ...indexer.store.view import View
from ...indexer.upkeep.delete import numbers_of
from ...indexer.wording import counted, shown_id
from ..analysis.corpus import Corpus
from ..analysis.runs import named
from ..cluster.kmeans import fit_kmeans
from ..search.filters import documents_where, empty_hint
from . import edits
from .changes import State
from .finding import find_group, find_groups, told_where_groups_are
from .groups import NO_GROUP, Groups, Rule, ancestors, check_new_name, under, walk
from .making import make
from .places import Means, fixed_documents, names_for, text_groups
from .rules import matches, matching, obeyed
from .settings import NONE, TOP, EditSettings
from .stored import LogEntry, Stored, load, write_edit

Made = tuple[State, str]
"""A new state, and what was done in a sentence."""


def edit_taxonomy(
    collection: StoredCollection, operation: str, settings: EditSettings, name: str | None = None, *,
    by: str | None = None, seed: int = 0, notify: Notify = silent,
) -> LogEntry | None:  # fmt: skip
    """Edit a taxonomy, and add an entry to its log; both are one transaction.

    Adding a group to a collection without a taxonomy makes one.

    Args:
        collection: Where the taxonomy is.
        operation: One of `OPERATIONS`.
        settings: What the edit is about.
        name: The taxonomy; the newest one if None.
        by: Who edits it; the user of this process if None.
        seed: Of samples, for a split.
        notify: Receives progress.

    Returns:
        The entry of the log; None if nothing is different.

    Raises:
        UsageError: The edit does not exist or is given too little or too much, a group is locked, or a filter is wrong.
        SondeError: There is no such taxonomy, group or document, or another process is writing.
    """
    settings.check(operation)
    beside = operation == "add" and _made(collection, name, by)
    with told_where_groups_are(collection, name):
        return _edited(collection, operation, settings, name, beside, by=by, seed=seed, notify=notify)


def _edited(
    collection: StoredCollection, operation: str, settings: EditSettings, name: str | None, beside: bool, *,
    by: str | None, seed: int, notify: Notify,
) -> LogEntry | None:  # fmt: skip
    slow = _SLOW.get(operation)
    if slow is None:
        quick = _QUICK[operation]

        def edit(catalog: Catalog, stored: Stored) -> Made:
            state, said = quick(catalog, stored, settings)
            return state, said + (f" in the new taxonomy {stored.run.name!r}" if beside else "")

        reads = operation in _READ_DOCUMENTS
        return write_edit(collection, name, operation, edit, by=by, documents=reads)
    with collection.view() as view:
        before = load(view.catalog, name)
        state, said = slow(view, before, settings, seed, notify)
    return write_edit(
        collection, before.run.name, operation, lambda catalog, stored: (_still(state, before, stored), said),
        by=by, head=before.head,
    )  # fmt: skip


def _made(collection: StoredCollection, name: str | None, by: str | None) -> bool:
    """Make an empty taxonomy if there is none of this name; return whether it lies beside others."""
    with collection.view() as view:
        known = list_runs(view.catalog, TAXONOMY, count=False)
    if known if name is None else name in {run.name for run in known}:
        return False
    make(collection, None, str(name or TAXONOMY), by=by)
    return bool(known)


def _still(state: State, before: Stored, now: Stored) -> State:
    """Return a prepared state without the documents that disappeared from the taxonomy in the meantime."""
    return state.without(np.setdiff1d(before.state.docs, now.state.docs))


def chosen_documents(catalog: Catalog, settings: EditSettings) -> tuple[np.ndarray, list[str]]:
    """Return numbers, int64 ascending, and ids of the documents that an edit is about.

    Raises:
        SondeError: An id does not exist.
        UsageError: The filter is not valid, or no document passes it.
    """
    docs = np.array(_numbers(catalog, as_texts(settings.ids, "id"), "ids"), np.int64)
    if settings.where is not None:
        passing = documents_where(catalog, settings.where)
        if not len(passing) and not len(docs):
            said = f"no document passes the filter {settings.where!r}{empty_hint(catalog, settings.where)}"
            raise UsageError(said, code="empty", field="where", value=settings.where)
        docs = np.union1d(docs, passing)
    docs = np.unique(docs)
    ids = ids_by_number(catalog, docs.tolist())
    return docs, [ids[doc] for doc in docs.tolist()]


def _numbers(catalog: Catalog, ids: Sequence[str], field: str) -> list[int]:
    """Return the numbers of documents by id.

    Raises:
        SondeError: An id does not exist.
    """
    for id in ids:
        parts = [part.strip() for part in id.split(",")]
        if len(parts) > 1 and not numbers_by_id(catalog, [id]) and {*numbers_by_id(catalog, parts)} == {*parts}:
            said = f"there is no document with the id {shown_id(id)}, but its parts are ids: give each by itself, "
            said += give_each("id" if field == "ids" else field, field, parts[:2])
            raise SondeError(said, code="not-found", field=field, value=id)
    return numbers_of(catalog, ids)


def _shown(stored: Stored, numbers: Sequence[int]) -> str:
    """Return groups as a sentence names them."""
    names = [stored.state.groups[number].shown for number in numbers[:3]]
    return ", ".join(names) + (f" and {len(numbers) - 3:,} more" if len(numbers) > 3 else "")


def _add(_: Catalog, stored: Stored, settings: EditSettings) -> Made:
    parent = None if settings.to in (None, TOP) else find_group(stored.state.groups, settings.to)
    state = edits.add(stored.state, stored.next, settings.name, parent, settings.description or "")
    return state, f"added {state.groups[stored.next].shown}"


def _rename(_: Catalog, stored: Stored, settings: EditSettings) -> Made:
    if settings.level is not None:
        state = edits.rename_level(stored.state, settings.level, settings.name)
        return state, f"named the level {settings.level} {state.levels[settings.level]!r}"
    [number] = find_groups(stored.state.groups, settings.groups)
    state = edits.rename(stored.state, number, settings.name)
    return state, f"renamed {stored.state.groups[number].shown} to {state.groups[number].name!r}"


def _describe(_: Catalog, stored: Stored, settings: EditSettings) -> Made:
    [number] = find_groups(stored.state.groups, settings.groups)
    return edits.describe(stored.state, number, settings.description), f"described {_shown(stored, [number])}"


def _merge(_: Catalog, stored: Stored, settings: EditSettings) -> Made:
    numbers = find_groups(stored.state.groups, settings.groups)
    state = edits.merge(stored.state, numbers)
    said = f"merged {_shown(stored, numbers[1:])} into {_shown(stored, numbers[:1])}"
    return state, said + _came_along(stored.state, numbers)


def _came_along(before: State, numbers: Sequence[int]) -> str:
    """Say how many documents a merge moved, and which groups that lay under the merged ones came with theirs."""
    first, *others = numbers
    tree, sizes = before.groups, before.sizes()
    above = {n: {n, *ancestors(tree, n)} for n in tree if n not in numbers}
    under = [n for n, line in above.items() if line & {*others} and first not in line]
    if not under:
        return ""
    direct, below = (sum(sizes.get(n, 0) for n in group) for group in (others, under))
    with_them = f"{counted(len(under), 'group')} under {'it' if len(others) == 1 else 'them'}"
    with_them += f" with {counted(below, 'document')}"
    return f"; moved {counted(direct, 'document')} and {with_them}" if direct else f"; moved {with_them}"


def _move(catalog: Catalog, stored: Stored, settings: EditSettings) -> Made:
    groups, to = stored.state.groups, settings.to
    if settings.groups:
        numbers = find_groups(groups, settings.groups)
        under = None if to == TOP else find_group(groups, to if to is not None else "")
        return edits.move(stored.state, numbers, under), f"moved {_shown(stored, numbers)} {_to(stored, under)}"
    docs, ids = chosen_documents(catalog, settings)
    target = NO_GROUP if to == NONE else find_group(groups, to if to is not None else "")
    holding = edits.holders(stored.state, docs, target)
    free = np.flatnonzero(holding == NO_GROUP)
    if settings.ids or not len(free):  # a document that was named must be free; of a filter's, those that are free move
        free = np.arange(len(docs))
    state = edits.assign(stored.state, docs[free], [ids[place] for place in free], target, settings.lock)
    where = "out of all groups" if target == NO_GROUP else f"to {groups[target].shown}"
    held = edits.said_of_held(stored.state, holding)
    there = int(np.isin(docs[free], stored.state.members(target)).sum())
    said = f"moved {counted(len(free) - there, 'document')} {where}"
    said += f"; {there:,} {'was' if there == 1 else 'were'} there already" if there else ""
    return state, said + (f"; {held}" if held else "")


def _remove(_: Catalog, stored: Stored, settings: EditSettings) -> Made:
    numbers = find_groups(stored.state.groups, settings.groups)
    state = edits.remove(stored.state, numbers)
    return state, f"removed {_shown(stored, numbers)}{_moved_up(stored, state)}"


def _moved_up(stored: Stored, after: State) -> str:
    """Say where the groups under removed ones are now."""
    places: dict[int | None, list[int]] = {}
    for number, group in after.groups.items():
        if group.parent != stored.state.groups[number].parent:
            places.setdefault(group.parent, []).append(number)
    return "".join(f"; moved {_shown(stored, numbers)} {_to(stored, place)}" for place, numbers in places.items())


def _to(stored: Stored, place: int | None) -> str:
    return "to the top" if place is None else f"under {stored.state.groups[place].shown}"


def _lock(catalog: Catalog, stored: Stored, settings: EditSettings) -> Made:
    return _locked(catalog, stored, settings, True)


def _unlock(catalog: Catalog, stored: Stored, settings: EditSettings) -> Made:
    return _locked(catalog, stored, settings, False)


def _locked(catalog: Catalog, stored: Stored, settings: EditSettings, locked: bool) -> Made:
    verb = "locked" if locked else "unlocked"
    if settings.level is not None:
        numbers = [group.number for group, depth in walk(stored.state.groups) if depth == settings.level]
        if not numbers:
            raise out_of_range("level", settings.level, "the taxonomy has no group at this level")
        return edits.lock(stored.state, numbers, locked), f"{verb} the level {settings.level}"
    if settings.groups:
        numbers = find_groups(stored.state.groups, settings.groups)
        return edits.lock(stored.state, numbers, locked), f"{verb} {_shown(stored, numbers)}"
    docs, ids = chosen_documents(catalog, settings)
    return edits.lock_documents(stored.state, docs, ids, locked), f"{verb} {counted(len(docs), 'document')}"


def _accept(_: Catalog, stored: Stored, settings: EditSettings) -> Made:
    numbers = find_groups(stored.state.groups, settings.groups)
    return edits.accept(stored.state, numbers), f"accepted {_shown(stored, numbers)}"


_QUICK: Mapping[str, Callable[[Catalog, Stored, EditSettings], Made]] = {
    "add": _add, "rename": _rename, "describe": _describe, "merge": _merge, "move": _move, "remove": _remove,
    "lock": _lock, "unlock": _unlock, "accept": _accept,
}  # fmt: skip
_READ_DOCUMENTS = ("merge", "move", "remove", "lock", "unlock")
"""The quick edits that need to know which document is in which group."""


def _rule(view: View, stored: Stored, settings: EditSettings, _: int, __: Notify) -> Made:
    [number] = find_groups(stored.state.groups, settings.groups)
    examples = tuple(as_texts(settings.examples, "id"))
    _numbers(view.catalog, examples, "examples")
    wanted = settings.where is not None or examples
    rule = Rule(settings.where, examples, settings.near) if wanted else None
    state = edits.set_rule(stored.state, number, rule)
    if rule is None:
        return state, f"removed the rule of {_shown(stored, [number])}"
    state = obeyed(state, matching(view, state.groups), fixed_documents(view, state))
    where = state.numbers[np.isin(state.docs, matches(view, rule))]
    inside = np.isin(where, sorted(under(state.groups, number)))
    before = stored.state.groups[number].rule
    said = f"gave {_shown(stored, [number])} the rule: {rule.said}"
    if before is not None:
        said = f"replaced the rule of {_shown(stored, [number])}: {rule.said}; it was: {before.said}"
    if below := int((inside & (where != number)).sum()):
        said += f"; {counted(below, 'matching document')} {'stays' if below == 1 else 'stay'} in groups under it"
    if others := int((~inside).sum()):
        said += f"; {counted(others, 'matching document')} {'is' if others == 1 else 'are'}"
        said += " locked or held by another rule"
    return state, said


def _reject(view: View, stored: Stored, settings: EditSettings, _: int, __: Notify) -> Made:
    numbers = find_groups(stored.state.groups, settings.groups)
    edits.check_proposed(stored.state, numbers)
    corpus = Corpus.of(view)
    docs = stored.state.docs[np.isin(stored.state.numbers, numbers)]
    left = [n for n, group in stored.state.groups.items() if n not in numbers and not group.rule]
    means = Means.of(corpus, stored.state, left)
    vectors = corpus.vectors[corpus.group[np.searchsorted(corpus.snapshot.docs, docs)]]
    placed, scores = means.place(vectors, far=False)
    ids = ids_by_number(view.catalog, docs.tolist())
    to = {ids[doc]: number for doc, number in zip(docs.tolist(), placed.tolist(), strict=True)}
    locks = {id: to.get(id, number) for id, number in stored.state.locks.items()}
    state = edits.remove(replace(stored.state.placed(docs, placed, scores), locks=locks), numbers)
    return state, f"rejected {_shown(stored, numbers)}"


def _split(view: View, stored: Stored, settings: EditSettings, seed: int, notify: Notify) -> Made:
    state = stored.state
    [number] = find_groups(state.groups, settings.groups)
    docs = state.members(number)
    if not len(docs) and settings.where is not None:
        documents_where(view.catalog, settings.where)  # a mistake in the filter comes first
    _check_members(state, number, docs)
    corpus = Corpus.of(view, docs)
    docs = corpus.snapshot.docs
    if settings.run is not None:
        parts, names = _parts_by_run(view, docs, settings.run)
    elif settings.k is not None:
        parts, names = _parts_by_meaning(corpus, settings.k, seed), []
    else:
        parts, names = _parts_by_rule(view, docs, settings, state.groups)
    count = int(parts.max(initial=-1)) + 1
    blank = names or [f"part {place}" for place in range(count)]
    ids = numbers_by_id(view.catalog, state.locks)
    made = edits.split(state, number, docs, parts, blank, stored.next, ids)
    if not names:
        made = _named(view, made, number, range(stored.next, stored.next + count), seed, notify)
    return made, f"split {_shown(stored, [number])} into {counted(count, 'group')}"


def _check_members(state: State, number: int, docs: np.ndarray) -> None:
    """Check that a group that is to be split has documents of its own.

    Raises:
        UsageError: It has none.
    """
    if len(docs):
        return
    under = [group.shown for _, group in sorted(state.groups.items()) if group.parent == number]
    where = f": split a group under it: {', '.join(under[:3])}{', …' if len(under) > 3 else ''}" if under else ""
    said = f"the group {state.groups[number].shown} has no documents of its own{where}"
    raise UsageError(said, code="empty", field="groups", value=number)


def _parts_by_meaning(corpus: Corpus, k: int, seed: int) -> np.ndarray:
    if not 2 <= k <= len(corpus.vectors):
        raise out_of_range("k", k, f"give 2 to {len(corpus.vectors):,}, the number of different texts in the group")
    return fit_kmeans(corpus.vectors, k, seed).labels[corpus.group]


def _parts_by_run(view: View, docs: np.ndarray, name: str) -> tuple[np.ndarray, list[str]]:
    """Return the group of each document in another run, int64 [n], 0 and up or -1, and the names of these groups."""
    run = named(view.catalog, name)
    found, numbers, _ = assignments_of(view.catalog, run)
    found, first = np.unique(found, return_index=True)
    known = dict(zip(found.tolist(), numbers[first].tolist(), strict=True))
    given = np.array([known.get(doc, NO_GROUP) for doc in docs.tolist()], np.int64)
    used = np.unique(given[given >= 0])
    names = {item.number: item.name for item in items_of(view.catalog, run)}
    return np.where(given < 0, -1, np.searchsorted(used, given)), [names[number] for number in used.tolist()]


def _parts_by_rule(
    view: View, docs: np.ndarray, settings: EditSettings, groups: Groups
) -> tuple[np.ndarray, list[str]]:
    """Return 0 for the documents that match a rule, -1 for the others, and the name that was given."""
    rule = Rule(settings.where, tuple(as_texts(settings.examples, "id")), settings.near)
    _numbers(view.catalog, rule.examples, "examples")
    inside = np.isin(docs, matches(view, rule))
    [number] = find_groups(groups, settings.groups)
    return np.where(inside, 0, -1), [check_new_name(groups, settings.name, number)] if settings.name else []


def _named(view: View, state: State, number: int, new: Sequence[int], seed: int, notify: Notify) -> State:
    """Return a state whose new parts of a group have names of their texts."""
    corpus = Corpus.of(view)
    parent = state.groups[number]
    others = {n: group for n, group in state.groups.items() if n not in new}
    names = names_for(view, corpus, text_groups(corpus, state), others, list(new), parent.name, seed, notify)
    groups = {n: replace(state.groups[n], name=name) for n, name in zip(new, names, strict=True)}
    return replace(state, groups={**state.groups, **groups})


_SLOW: Mapping[str, Callable[[View, Stored, EditSettings, int, Notify], Made]] = {
    "rule": _rule, "reject": _reject, "split": _split,
}  # fmt: skip
"""The edits that read embeddings: they are prepared before the collection is locked."""
