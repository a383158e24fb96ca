"""New documents in a taxonomy: locks first, then rules, then the nearest group, or a new one that is proposed."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...indexer.errors import UsageError
from ...indexer.progress import Notify, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import numbers_by_id
from ...indexer.store.view import View
from ...indexer.wording import counted
from ..analysis.corpus import Corpus
from ..analysis.neighbours import products
from .changes import State
from .groups import NO_GROUP, Group
from .places import Means, fixed_documents, names_for, new_places, text_groups, typical_of
from .rules import Conflict, Matched, matching, obeyed
from .stored import Stored, load, write_edit

GROWING = 5
"""How often the mean of a new place is taken again of the documents that joined it."""


@dataclass(frozen=True, slots=True)
class TaxonomyUpdate:
    """What an update or a refit did.

    Attributes:
        taxonomy: The run's name.
        added: Documents that the taxonomy did not know before.
        moved: Documents that it knew, and that are in another group now.
        outside: Added documents that are too far from every group, so they belong to none.
        locked: Documents that are locked.
        proposed: Numbers of the groups that are proposed, with their names and sizes.
        kept: Groups that had documents and still have most of them, of all that had any.
        conflicts: Rules that match the same documents.
    """

    taxonomy: str
    added: int
    moved: int
    outside: int
    locked: int
    proposed: tuple[tuple[int, str, int], ...]
    kept: tuple[int, int]
    conflicts: tuple[Conflict, ...]

    @property
    def said(self) -> str:
        """What was done, in a sentence."""
        parts = [f"{counted(self.added, 'document')} added", f"{self.moved:,} moved"]
        parts += [f"{counted(len(self.proposed), 'group')} proposed"] if self.proposed else []
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        found = {name: getattr(self, name) for name in ("taxonomy", "added", "moved", "outside", "locked")}
        proposed = [{"number": number, "name": name, "documents": size} for number, name, size in self.proposed]
        conflicts = [one.to_dict() for one in self.conflicts]
        return found | {"proposed": proposed, "kept": list(self.kept), "conflicts": conflicts}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A taxonomy before its new documents are placed: locks and rules are obeyed.

    Attributes:
        stored: As the catalog has it.
        state: With what locks and rules decide.
        matched: What the rules match.
        corpus: All documents.
        locked: int64, documents that a lock holds where they are.
        fixed: int64, these, and the documents that a rule holds.
        new: int64, documents that the taxonomy did not know, and that no lock and no rule has placed.
        leaving: int64, documents of a group with a rule that do not match it.
    """

    stored: Stored
    state: State
    matched: Matched
    corpus: Corpus
    locked: np.ndarray
    fixed: np.ndarray
    new: np.ndarray
    leaving: np.ndarray


def prepare(view: View, name: str | None) -> Prepared:
    """Return a taxonomy in which locks and rules are obeyed.

    Raises:
        SondeError: There is no such taxonomy.
        UsageError: The filter of a rule is no longer valid.
    """
    stored = load(view.catalog, name)
    corpus, state = Corpus.of(view), _relocked(view, stored.state)
    locked = fixed_documents(view, state)
    matched = matching(view, state.groups)
    state = obeyed(state, matched, locked)
    ruled = [number for number, group in state.groups.items() if group.rule]
    inside = state.docs[np.isin(state.numbers, ruled)]
    fixed = np.union1d(locked, matched.docs)
    return Prepared(
        stored, state, matched, corpus, locked, fixed, np.setdiff1d(corpus.snapshot.docs, state.docs),
        np.setdiff1d(inside, fixed),
    )  # fmt: skip


def _relocked(view: View, state: State) -> State:
    """Return a state with the locked documents that came back, or whose texts changed, where they were locked."""
    numbers = numbers_by_id(view.catalog, state.locks)
    back = {doc: state.locks[id] for id, doc in numbers.items()}
    docs = np.setdiff1d(np.array(sorted(back), np.int64), state.docs)
    return state.placed(docs, np.array([back[doc] for doc in docs.tolist()], np.int64))


def update(
    collection: StoredCollection, name: str | None = None, *, by: str | None = None, seed: int = 0,
    notify: Notify = silent,
) -> TaxonomyUpdate:  # fmt: skip
    """Put the documents that a taxonomy does not know into its groups; those that it knows stay, but for its rules.

    A document that was locked returns to its group. One that matches a rule goes to that group. The others go to the
    nearest group. Where new documents lie together and old ones do not, a new group is proposed.

    Args:
        collection: Where the taxonomy is.
        name: Its name; the newest one if None.
        by: Who does it; the user of this process if None.
        seed: Of the samples.
        notify: Receives progress.

    Raises:
        SondeError: There is no such taxonomy, it was edited in the meantime, or another process is writing.
    """
    with collection.view() as view:
        ready = prepare(view, name)
        check_filled(ready)
        means = joinable(ready)
        notify("looking for new groups")
        places = new_places(ready.corpus, np.isin(ready.corpus.snapshot.docs, ready.new), seed, notify)
        state = place_new(view, ready, means, places, seed, notify)
    return finish(collection, ready, state, "update", by)


def check_filled(ready: Prepared) -> None:
    """Check that a group holds documents; otherwise all new documents would be filed under no group.

    Raises:
        UsageError: There are groups, and none does.
    """
    if ready.state.groups and len(ready.new) and not (ready.state.numbers != NO_GROUP).any():
        said = f"no group of the taxonomy {ready.stored.run.name!r} has documents, so none can be near to one: "
        said += "move some there, give rules, or label when you import the groups"
        raise UsageError(said, code="empty", field="taxonomy")


def joinable(ready: Prepared) -> Means:
    """Return the means of the groups that a document can join by being near: those without a rule."""
    return Means.of(ready.corpus, ready.state, [n for n, group in ready.state.groups.items() if not group.rule])


def place_new(view: View, ready: Prepared, means: Means, places: list[np.ndarray], seed: int, notify: Notify) -> State:
    """Return a state with the new documents in groups, and in proposed ones."""
    corpus, docs = ready.corpus, np.union1d(ready.new, ready.leaving)
    vectors = corpus.vectors[corpus.group[np.searchsorted(corpus.snapshot.docs, docs)]]
    numbers, scores = means.place(vectors)
    state = ready.state.placed(docs, numbers, scores)
    if not places:
        return state
    near = np.nan_to_num(means.place(vectors, far=False)[1], nan=-1.0)
    own, cosines, new = _grown(corpus, vectors, np.isin(docs, ready.new), near, places)
    first, chosen = ready.stored.next, cosines.argmax(axis=1)
    state = state.placed(docs[new], first + chosen[new], np.round(cosines.max(axis=1)[new].astype(np.float64), 6))
    return with_proposals(view, ready, state, means, own, first, seed, notify)


def _grown(
    corpus: Corpus, vectors: np.ndarray, fresh: np.ndarray, near: np.ndarray, places: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the means of the new places once they hold all new documents that are nearer to them than to a group.

    Args:
        corpus: All documents.
        vectors: float32 [n, d], documents to place.
        fresh: bool [n], which of them are new.
        near: float64 [n], the cosine of each to the nearest group.
        places: The rows of the texts of each place.

    Returns:
        float32 [places, d] means; float32 [n, places] cosines to them; bool [n], the documents that a place gets.
    """
    own = np.array([_mean(corpus.vectors[rows]) for rows in places], np.float32)
    inside = np.zeros(len(vectors), bool)
    for _ in range(GROWING):
        cosines = products(vectors, own)
        now, chosen = fresh & (cosines.max(axis=1) > near), cosines.argmax(axis=1)
        if (now == inside).all():
            break
        inside = now
        own = np.array(
            [_mean(vectors[inside & (chosen == place)]) if (inside & (chosen == place)).any() else own[place]
             for place in range(len(own))], np.float32,
        )  # fmt: skip
    return own, products(vectors, own), inside


def _mean(vectors: np.ndarray) -> np.ndarray:
    mean = vectors.mean(axis=0, dtype=np.float64)
    return mean / max(float(np.linalg.norm(mean)), 1e-12)


def with_proposals(
    view: View, ready: Prepared, state: State, means: Means, own: np.ndarray, first: int, seed: int, notify: Notify
) -> State:
    """Return a state with a group for each new place, beside the group that is nearest to it.

    Args:
        view: Of the collection.
        ready: The taxonomy before.
        state: The taxonomy with the documents of the new groups.
        means: The other groups.
        own: float32 [places, d], the means of the places.
        first: Number of the first new group.
        seed: Of the texts that are read for names.
        notify: Receives progress.
    """
    corpus = ready.corpus
    nearest = means.place(own, far=False)[0].tolist()
    found = [first + place for place in range(len(own)) if (state.numbers == first + place).any()]
    names = names_for(view, corpus, text_groups(corpus, state), state.groups, found, None, seed, notify)
    groups = dict(state.groups)
    for number, name in zip(found, names, strict=True):
        beside = nearest[number - first]
        parent = state.groups[beside].parent if beside != NO_GROUP else None
        examples = typical_of(view, corpus, state, number, own[number - first])
        groups[number] = Group(number, name, parent=parent, proposed=True, source="new documents", examples=examples)
    return replace(state, groups=groups)


def finish(
    collection: StoredCollection, ready: Prepared, state: State, operation: str, by: str | None
) -> TaxonomyUpdate:
    """Write what was computed, without the documents that changed in the meantime, and return what was done."""
    report = report_of(ready, state)

    def edit(catalog: Any, stored: Stored) -> tuple[State, str]:
        still = ready.corpus.snapshot.docs[ready.corpus.snapshot.still(catalog)]
        gone = np.setdiff1d(state.docs, np.union1d(still, stored.state.docs))
        changed = np.setdiff1d(np.intersect1d(state.docs, ready.corpus.snapshot.docs), still)
        return state.without(np.union1d(gone, changed)), f"{operation}: {report.said}"

    write_edit(collection, ready.stored.run.name, operation, edit, by=by, head=ready.stored.head)
    return report


def report_of(ready: Prepared, state: State) -> TaxonomyUpdate:
    """Return what became of the documents and the groups."""
    before = ready.stored.state
    _, old, new = np.intersect1d(before.docs, state.docs, assume_unique=True, return_indices=True)
    was, now = before.numbers[old], state.numbers[new]
    added = ~np.isin(state.docs, before.docs)
    sizes = state.sizes()
    proposed = [group for number, group in state.groups.items() if number not in before.groups]
    return TaxonomyUpdate(
        ready.stored.run.name, int(added.sum()), int((was != now).sum()),
        int((state.numbers[added] == NO_GROUP).sum()),
        len(ready.locked),
        tuple((group.number, group.name, sizes.get(group.number, 0)) for group in proposed),
        _kept(was, now), ready.matched.conflicts,
    )  # fmt: skip


def _kept(was: np.ndarray, now: np.ndarray) -> tuple[int, int]:
    """Return how many groups still have more than half of the documents that they had, and of how many."""
    numbers = np.unique(was[was != NO_GROUP])
    kept = [number for number in numbers.tolist() if 2 * (now[was == number] == number).sum() > (was == number).sum()]
    return len(kept), len(numbers)
