"""One watch of a collection, from the old and new documents to the stored run, and the result as a page."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Literal

import numpy as np

from ...indexer.progress import Notify, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import chosen_texts
from ...indexer.store.kinds import WATCH
from ...indexer.store.run_writing import NewRun, check_run_name, write_run
from ...indexer.store.runs import Item
from ...indexer.store.tabular import Shown
from ...indexer.store.view import View, normalized
from ...indexer.wording import counted, shown_p
from ..analysis.appeared import Place, around, find_places
from ..analysis.corpus import Corpus
from ..analysis.describe import placeholder
from ..analysis.naming.names import naming_of
from ..analysis.statistics import Batch
from .groups import Groups, Parts, Shares, compare_shares, groups_of, parts_of, run_to_compare
from .settings import WatchSettings

ChangeKind = Literal["grew", "shrank", "new"]
EXAMPLES, TEXT = 20, 300
"""Documents that a change shows, and the characters of their texts."""


@dataclass(frozen=True, slots=True)
class Example:
    """A typical document of a change."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class GroupChange:
    """A group that grew, shrank or appeared.

    Attributes:
        kind: "grew" and "shrank" are groups of the run that was compared; "new" is a place of new documents.
        name: The group's; terms that set its texts apart.
        new: How many new documents belong to it.
        old: How many old documents belong to it or, for "new", how many old texts lie among them.
        new_share: Share of the new texts, 0 to 1; equal texts count once.
        old_share: Share of the old texts.
        p: The chance that such a change is reported if new documents are like old ones; smaller is surer.
        examples: Typical documents, the most typical first: old ones for "shrank", otherwise new ones.
    """

    kind: ChangeKind
    name: str
    new: int
    old: int
    new_share: float
    old_share: float
    p: float
    examples: tuple[Example, ...]

    @property
    def title(self) -> str:
        """The kind and the name, as the run's item is called."""
        return f"{self.kind}: {self.name}"

    @property
    def figures(self) -> str:
        """The figures in one line; each share stands with the number that it belongs to."""
        found = f"{counted(self.new, 'new document')} ({self.new_share:.1%} of the new texts), "
        if self.kind == "new":
            found += f"{counted(self.old, 'old text')} among them"
        else:
            found += f"{counted(self.old, 'old document')} ({self.old_share:.1%} of the old texts)"
        return f"{found} · p {shown_p(self.p)}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        shares = {"new_share": round(self.new_share, 6), "old_share": round(self.old_share, 6)}
        return asdict(self) | shares | {"p": round(self.p, 6), "examples": [asdict(one) for one in self.examples]}


@dataclass(frozen=True, slots=True, repr=False)
class Watched(Shown):
    """What a watch found.

    Attributes:
        name: Of the run that keeps it.
        since: What "new" means: a date or the name of a run.
        new: How many new documents there are.
        old: How many old documents there are.
        groups: Name of the run whose groups were compared; None for clusters that were made for the purpose, and if
            there is no new document.
        changes: What changed: "new" first, then "grew" and "shrank", each with the surest first.
        notes: What was left out, in sentences.
        seconds: How long it took.
    """

    name: str
    since: str
    new: int
    old: int
    groups: str | None
    changes: tuple[GroupChange, ...]
    notes: tuple[str, ...]
    seconds: float
    _row = "change"

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each change, as JSON values."""
        return [change.to_dict() for change in self.changes]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "name": self.name, "since": self.since, "new": self.new, "old": self.old, "groups": self.groups,
            "changes": self.rows(), "notes": list(self.notes),
        }  # fmt: skip

    def html(self) -> str:
        """Return the result as one HTML page that needs nothing else."""
        return _page(self)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A change with its documents: their places in the corpus, the most typical first, and cosines to their mean."""

    change: GroupChange
    places: np.ndarray
    cosines: np.ndarray


def watch(
    collection: StoredCollection,
    settings: WatchSettings,
    *,
    name: str = "watch",
    replace: bool = False,
    notify: Notify = silent,
) -> Watched:
    """Report the groups that grew, shrank or appeared among the new documents, and store the result as a run.

    If new documents are like old ones, the chance that anything is reported is at most `settings.alarms`. One half
    is for the shares of the groups, the other for places where new documents lie together. Without new documents,
    nothing is compared, and the run is empty.

    Args:
        collection: What to watch.
        settings: Which documents are new, and how sure to be.
        name: Of the run.
        replace: Whether a run of this name may be replaced.
        notify: Receives progress and sentences.

    Raises:
        UsageError: A setting is not valid, a column cannot tell what is new, or the name is taken.
        SondeError: There is no such run, there is no old document, or another process is writing.
    """
    settings.check()
    began = time.perf_counter()
    with collection.view() as view:
        check_run_name(view.catalog, WATCH, name, replace)
        run_to_compare(view, settings.run)  # to refuse a wrong name also where nothing is new
        parts = parts_of(view, settings)
        look = _Look(view, parts.sampled(settings.seed), settings, notify)
        groups, seen = look.changes() if len(parts.new) else (None, [])
    taken = time.perf_counter() - began
    changes = tuple(each.change for each in seen)
    sizes = len(parts.new), len(parts.old)
    run = groups and groups.run
    watched = Watched(name, settings.since, *sizes, run, changes, look.parts.notes, taken)
    write_run(collection, _run(watched, settings, look.corpus, seen), look.corpus.snapshot, replace=replace)
    return watched


def _run(watched: Watched, settings: WatchSettings, corpus: Corpus, seen: list[_Seen]) -> NewRun:
    docs = [corpus.snapshot.docs[each.places] for each in seen]
    numbers = [np.full(len(each.places), number) for number, each in enumerate(seen)]
    items = [_item(number, each) for number, each in enumerate(seen)]
    report = watched.to_dict() | {"documents": watched.new + watched.old, "found": len(seen)}
    kept = {key: value for key, value in report.items() if key not in ("changes", "name")}
    assignments = (
        np.concatenate([*docs, np.zeros(0, np.int64)]),
        np.concatenate([*numbers, np.zeros(0, np.int64)]),
        np.concatenate([*(each.cosines for each in seen), np.zeros(0)]),
    )
    libraries = ("numpy",)
    return NewRun(WATCH, watched.name, settings.to_dict(), libraries, kept, watched.seconds, items, assignments)


def _item(number: int, seen: _Seen) -> Item:
    change = seen.change.to_dict()
    data = {key: change[key] for key in ("kind", "new", "old", "new_share", "old_share", "p")}
    ids = [one.id for one in seen.change.examples]
    return Item(number, seen.change.title, data | {"size": len(seen.places), "representatives": ids})


class _Look:
    """Looks at the old and new documents of one generation."""

    def __init__(self, view: View, parts: Parts, settings: WatchSettings, notify: Notify) -> None:
        self.view, self.parts, self.settings, self.notify = view, parts, settings, notify
        self.corpus = Corpus.of(view, np.union1d(parts.new, parts.old))
        self.new = np.isin(self.corpus.snapshot.docs, parts.new)
        self.batch = Batch.of(self.corpus.group, self.new)
        self.names: Counter[str] = Counter()

    def changes(self) -> tuple[Groups, list[_Seen]]:
        """Return the groups that were compared, and what changed, the surest first of each kind."""
        corpus, batch, given = self.corpus, self.batch, self.settings
        groups = groups_of(self.view, corpus, self.new, given.run, given.seed, self.notify)
        half, times = given.alarms / 2, given.permutations
        table = around(corpus.vectors, self.notify)
        places = find_places(batch, table, half, times, given.seed, self.notify)
        shares = compare_shares(batch, groups.labels, len(groups.names), times, given.seed)
        return groups, [*self._appeared(places), *self._moved(groups, shares, half)]

    def _appeared(self, places: list[Place]) -> Iterator[_Seen]:
        labels = np.zeros(len(self.corpus.vectors), np.int64)
        for number, place in enumerate(places, 1):
            labels[place.rows] = number
        count, seed = len(places) + 1, self.settings.seed  # group 0: the other texts
        naming = naming_of(self.view, self.corpus, labels, count, seed)
        names = naming.or_quoted(naming.choose()) if places else []
        old, new = int(self.batch.old.sum()), int(self.batch.new.sum())
        for number, place in enumerate(places, 1):
            documents = np.flatnonzero((labels == number)[self.corpus.group])
            name = names[number] or placeholder(number)
            shares = len(place.rows) / new, place.old / old
            yield self._seen("new", name, documents, (len(documents), place.old), shares, place.p)

    def _moved(self, groups: Groups, shares: Shares, limit: float) -> list[_Seen]:
        found = []
        for number in np.lexsort((np.arange(len(shares.p)), shares.p)).tolist():
            if shares.p[number] > limit:
                break
            inside = (groups.labels == number)[self.corpus.group]
            grew = shares.new[number] > shares.old[number]
            documents = np.flatnonzero(inside & (self.new if grew else ~self.new))
            sizes = int((inside & self.new).sum()), int((inside & ~self.new).sum())
            both = float(shares.new[number]), float(shares.old[number])
            kind: ChangeKind = "grew" if grew else "shrank"
            found.append(self._seen(kind, groups.names[number], documents, sizes, both, float(shares.p[number])))
        return sorted(found, key=lambda one: one.change.kind)

    def _seen(
        self, kind: ChangeKind, name: str, documents: np.ndarray, sizes: tuple[int, int],
        shares: tuple[float, float], p: float,
    ) -> _Seen:  # fmt: skip
        """Return a change with its documents in the order of their cosine to the mean of its different texts."""
        rows = self.corpus.group[documents]
        mean = normalized(self.corpus.vectors[np.unique(rows)].mean(axis=0, dtype=np.float64)[None])[0]
        cosines = self.corpus.vectors[rows] @ mean
        order = np.lexsort((documents, -cosines))
        documents, cosines, rows = documents[order], cosines[order], rows[order]
        different = np.sort(np.unique(rows, return_index=True)[1])[:EXAMPLES]
        self.names[f"{kind}: {name}"] += 1
        again = self.names[f"{kind}: {name}"]
        name = name if again == 1 else f"{name} ({again})"
        examples = self._examples(documents[different])
        return _Seen(GroupChange(kind, name, *sizes, *shares, p, examples), documents, cosines)

    def _examples(self, places: np.ndarray) -> tuple[Example, ...]:
        docs = self.corpus.snapshot.docs[places].tolist()
        texts = {each.doc: each for each in chosen_texts(self.view.catalog, docs, TEXT)}
        found = [texts[doc] for doc in docs]
        return tuple(Example(each.id, each.text.strip() or each.title) for each in found)


SHOWN = 10
"""Examples of a change on a page."""
STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem;color:#1b1b1f;background:#fff}
section{border-top:1px solid #ccc;margin-top:1.5rem}h2{font-size:1.15rem;overflow-wrap:anywhere}
li{overflow-wrap:anywhere}small,p.note{color:#555}
@media(prefers-color-scheme:dark){body{color:#eee;background:#1b1b1f}small,p.note{color:#bbb}section{border-color:#555}}
"""


def _page(watched: Watched) -> str:
    """Return an HTML page that needs nothing else; texts of documents are escaped."""
    title = escape(f"{watched.name}: what is new since {watched.since}")
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>",
        f"<p>{counted(watched.new, 'new document')}, {watched.old:,} old.</p>",
        *(f'<p class="note">Note: {escape(note)}.</p>' for note in watched.notes),
        *(_section(change) for change in watched.changes),
        "" if watched.changes or not watched.new else "<p>No significant change.</p>",
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _section(change: GroupChange) -> str:
    items = "".join(
        f"<li>{escape(example.text)} <small>{escape(example.id)}</small></li>" for example in change.examples[:SHOWN]
    )
    return f"<section><h2>{escape(change.title)}</h2><p>{change.figures}</p><ul>{items}</ul></section>"
