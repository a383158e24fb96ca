"""The kinds of run, one class each: names, export columns, filters and display.

To add a kind, add a class here and an entry in `KINDS`; see decision 0028 for columns of a new sort. A collection's
catalog stores the kind's name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ..errors import UsageError, did_you_mean
from ..wording import either, on_one_line

ColumnValue = Literal["number", "name", "names", "member", "place", "path", "level", "score"]
Payload = Literal["run_documents", "run_places"]

NAME_SUFFIX = " name"
"""Suffix of the second column's name, for a run with numbered items."""
PATH_SUFFIX = " path"
"""Suffix of the name of the column with paths, for a run whose items lie under others."""
NO_LABEL = "none of these"
"""What a text is called that no label fits."""
SEPARATOR = " > "
"""Between the names of a path. No name of a group holds it, but one may begin or end with its sign."""
_FILTERED = {
    "number": "integer", "name": "text", "names": "list", "member": "boolean", "path": "text", "level": "text",
    "score": "real",
}  # fmt: skip
_EXPORTED = _FILTERED | {"names": "texts", "place": "real"}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a run, in an export and in a filter.

    Attributes:
        name: The column's full name.
        value: What a cell holds about the items to which a document belongs, best first: the "number" or "name" of
            the first item, the "names" of all, or whether there are any ("member"). "place": one coordinate on a map.
            Where items lie under others, the "path" to the first item, or the name of the item at one "level" of it.
            "score": that of the first item.
        level: Of a "level" column, 0 at the top.
    """

    name: str
    value: ColumnValue
    level: int = 0

    @property
    def type(self) -> str:
        """The column's type in an export: "integer", "text", "texts" (a list), "boolean" or "real"."""
        return _EXPORTED[self.value]

    @property
    def operand(self) -> str | None:
        """The column's type in a filter: "integer", "real", "text", "list" or "boolean"; None if none can use it."""
        return _FILTERED.get(self.value)

    @property
    def absent(self) -> bool | None:
        """The cell of a document that is not in the run: False for a "member" column, else None."""
        return False if self.value == "member" else None

    def cell(
        self, numbers: Sequence[int], names: Sequence[str], path: Sequence[str] = (), score: float | None = None
    ) -> float | str | list[str] | bool | None:
        """Return the cell for a document that belongs to items with these numbers and names, best first.

        `path` holds the names from the top down to the first item. Below that item, a "level" is None. `score` is the
        first item's.

        Raises:
            ValueError: The column holds a map coordinate, which items do not have.
        """
        match self.value:
            case "number":
                return numbers[0]
            case "name":
                return names[0]
            case "names":
                return list(names)
            case "member":
                return True
            case "path":
                return SEPARATOR.join(path)
            case "level":
                return path[self.level] if self.level < len(path) else None
            case "score":
                return score
        raise ValueError(f"the column {self.name!r} holds a place: no item has one")


class RunKind(str):
    """A kind of run.

    A kind is a string with the kind's name, so `run.kind == "cluster"` works, and JSON and SQLite store the name. Only
    one object of each kind exists: compare with `is` or, better, check the kind's attributes.

    Attributes:
        name: The name in the catalog and the prefix of column names.
        item: The word for one item.
        items: The word for several items.
        heading: The heading of the items in the UI.
        score: The word for the score of a document in an item.
        payload: The table that holds the results: items with their documents, or map coordinates.
        numbered: Whether items have a number and a name; otherwise they have only a name.
        groups: Whether items group the documents, so that they can be merged, compared, charted and evaluated.
        colors: Whether this kind can colour a map.
        embedded: Whether a run reads the embeddings; otherwise a person made it, and it holds for every model.
        kept: Whether a document stays in it when its text changes, because a person put it there by its id.
        update: The words of the `sonde` command that updates a run, followed by the run's name; empty if none does.
        follows: The parent kind, or None. A run of this kind belongs to the run of the parent kind with the same name
            and is renamed with it.
        part: Whether a run that follows another is a part of it: written, replaced and deleted with it.
        logged: Whether every change of an item is an entry in a log, so that items are changed only by its own edits.
        nested: Whether an item may lie under another, whose number its data has as `parent`. The documents of an item
            are then those in it and in all items under it, in filters and wherever an item is named.
    """

    __slots__ = ()

    name: ClassVar[str]
    item: ClassVar[str]
    items: ClassVar[str]
    heading: ClassVar[str]
    score: ClassVar[str] = "score"
    payload: ClassVar[Payload] = "run_documents"
    numbered: ClassVar[bool] = False
    groups: ClassVar[bool] = False
    colors: ClassVar[bool] = False
    embedded: ClassVar[bool] = True
    kept: ClassVar[bool] = False
    update: ClassVar[tuple[str, ...]] = ()
    follows: ClassVar["RunKind | None"] = None
    part: ClassVar[bool] = False
    logged: ClassVar[bool] = False
    nested: ClassVar[bool] = False

    def __new__(cls) -> "RunKind":
        """Create a kind with the name given in its class."""
        return super().__new__(cls, cls.name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep the kind the same object after a copy or in another process."""
        return kind_of, (str(self),)

    @property
    def command(self) -> str:
        """The words of the `sonde` command that makes a run."""
        return self.update[0] if self.update else self.name

    def column(self, run: str) -> str:
        """Return the main column's name for a run of this name."""
        return f"{self}:{run}"

    def columns(self, main: str, parameters: Mapping[str, Any]) -> tuple[Column, ...]:
        """Return a run's columns: number and name for numbered items, else only the name.

        Args:
            main: The run's main column: `column(run)`, unless another run already uses that name.
            parameters: The run's parameters.
        """
        del parameters
        if self.numbered:
            return Column(main, "number"), Column(f"{main}{NAME_SUFFIX}", "name")
        return (Column(main, "name"),)

    def further_columns(self, main: str, parameters: Mapping[str, Any], depth: int) -> tuple[Column, ...]:
        """Return the columns that give way to another run's main column of their name.

        These are the path and each level of a run whose items lie under others. A level's column has the name of the
        level, or "level 0" and so on where it has none.

        Args:
            main: The run's main column, as in `columns`.
            parameters: The run's parameters.
            depth: How many levels the run has.
        """
        if not self.nested:
            return ()
        given = [*parameters.get("levels", ())][:depth]
        named = given + [f"level {level}" for level in range(len(given), depth)]
        levels = (Column(f"{main} {name}", "level", level) for level, name in enumerate(named))
        return Column(f"{main}{PATH_SUFFIX}", "path"), *levels

    def color(self, name: str) -> str:
        """Return the label in a map's legend for documents of the item of this name."""
        return name


class Clusters(RunKind):
    """Groups of documents that are close to each other."""

    __slots__ = ()
    name, item, items, heading = "cluster", "cluster", "clusters", "Clusters"
    numbered = groups = colors = True
    update = ("cluster", "--update")


class Topics(RunKind):
    """Dense groups with names, joined in a tree."""

    __slots__ = ()
    name, item, items, heading = "topic", "topic", "topics", "Topics"
    numbered = groups = colors = True
    update = ("topics", "--update")


class Level(Topics):
    """One level of a topic run: the same documents in other groups. The levels of a run are nested."""

    __slots__ = ()
    part = True


class Coarse(Level):
    """Few large groups."""

    __slots__ = ()
    name, heading = "coarse", "Coarse topics"


class Middle(Level):
    """Groups inside the coarse ones."""

    __slots__ = ()
    name, heading = "middle", "Middle topics"


class Fine(Level):
    """Many small groups inside the middle ones."""

    __slots__ = ()
    name, heading = "fine", "Fine topics"


class Maps(RunKind):
    """Positions of documents on a plane; the items are regions, to which documents do not belong."""

    __slots__ = ()
    name, item, items, heading = "map", "region", "regions", "Map"
    payload: ClassVar[Payload] = "run_places"
    update = ("map", "--update")

    def columns(self, main: str, parameters: Mapping[str, Any]) -> tuple[Column, ...]:
        """Return the two coordinate columns. Only the newest map has them, so their names do not include the run."""
        del main, parameters
        return Column("x", "place"), Column("y", "place")


class Labels(RunKind):
    """Labels assigned by a model: one for each document, or several if the run's parameters set `multi_label`."""

    __slots__ = ()
    name, item, items, heading = "label", "label", "labels", "Labels"
    score = "probability"
    colors = True

    def columns(self, main: str, parameters: Mapping[str, Any]) -> tuple[Column, ...]:
        """Return one column: a name, or a list of names."""
        return (Column(main, "names" if parameters.get("multi_label") else "name"),)

    def further_columns(self, main: str, parameters: Mapping[str, Any], depth: int) -> tuple[Column, ...]:
        """Return one column: the probability of the label, or of the likeliest one of several."""
        del parameters, depth
        return (Column(f"{main} {self.score}", "score"),)


class Tags(RunKind):
    """Documents tagged by a person; the only item is the tag itself."""

    __slots__ = ()
    name, item, items, heading = "tag", "tag", "tags", "Tags"
    colors = kept = True
    embedded = False

    def columns(self, main: str, parameters: Mapping[str, Any]) -> tuple[Column, ...]:
        """Return one column: whether a document has the tag."""
        del parameters
        return (Column(main, "member"),)

    def color(self, name: str) -> str:
        """Return the same word for every tag, because the legend's title already names the tag."""
        del name
        return "tagged"


class Corrections(Labels):
    """Labels assigned by a person, as corrections to the label run of the same name."""

    __slots__ = ()
    name, heading = "correction", "Corrections"
    score = "score"
    colors = embedded = False
    kept = True

    @property
    def command(self) -> str:
        """A person makes one by the first correction."""
        return "runs correct"

    def further_columns(self, main: str, parameters: Mapping[str, Any], depth: int) -> tuple[Column, ...]:
        """Return no column: a person is sure."""
        del main, parameters, depth
        return ()


class Checks(RunKind):
    """Documents with something wrong; a document can be in several groups."""

    __slots__ = ()
    name, item, items, heading = "check", "finding", "findings", "Checks"

    def columns(self, main: str, parameters: Mapping[str, Any]) -> tuple[Column, ...]:
        """Return one column: a list of names."""
        del parameters
        return (Column(main, "names"),)


class Watches(Checks):
    """What changed: groups that grew or shrank, and new ones; a document can be in several."""

    __slots__ = ()
    name, item, items, heading = "watch", "change", "changes", "What is new"
    score = "similarity"


class Taxonomies(RunKind):
    """Groups that people keep and edit, in a tree; a document belongs to one of them, or to none (-1)."""

    __slots__ = ()
    name, item, items, heading = "taxonomy", "group", "groups", "Taxonomies"
    score = "similarity"
    numbered = groups = colors = logged = nested = True
    embedded = False


class Edits(RunKind):
    """The log of a taxonomy: one item for each edit, and no documents."""

    __slots__ = ()
    name, item, items, heading = "edit", "edit", "edits", "Edits"
    part = True
    embedded = False

    def columns(self, main: str, parameters: Mapping[str, Any]) -> tuple[Column, ...]:
        """Return no column: the log is not about documents."""
        del main, parameters
        return ()


CLUSTER, TOPIC, MAP, LABEL, TAG, CHECK = Clusters(), Topics(), Maps(), Labels(), Tags(), Checks()
WATCH = Watches()
Corrections.follows = LABEL
CORRECTION = Corrections()
TAXONOMY = Taxonomies()
Edits.follows = TAXONOMY
EDIT = Edits()
Level.follows = TOPIC
COARSE, MIDDLE, FINE = Coarse(), Middle(), Fine()
LEVELS: tuple[RunKind, ...] = (COARSE, MIDDLE, FINE)
"""The levels of a topic run, the coarsest first; their names are those of the levels."""
TOPIC_KINDS: tuple[RunKind, ...] = (TOPIC, *LEVELS)
KINDS: tuple[RunKind, ...] = (CLUSTER, TOPIC, *LEVELS, MAP, LABEL, TAG, CORRECTION, CHECK, WATCH, TAXONOMY, EDIT)
KEPT = frozenset(kind for kind in KINDS if kind.kept)
"""Kinds of run that keep a document whose text changes."""


def kind_of(name: str) -> RunKind:
    """Return the kind of this name.

    Raises:
        UsageError: The kind does not exist; the message suggests the closest name and lists the others.
    """
    for kind in KINDS:
        if kind == name:
            return kind
    shown = on_one_line(str(name))
    said = f"{shown!r} is not a kind of run{did_you_mean(name, KINDS)}: use {either(KINDS)}"
    raise UsageError(said, code="unknown-option", field="kind", value=name, alternatives=KINDS)


def group_kinds() -> tuple[RunKind, ...]:
    """Return the kinds whose items group the documents, without those that are parts of others."""
    return tuple(kind for kind in KINDS if kind.groups and not kind.part)


def followers(kind: RunKind) -> tuple[RunKind, ...]:
    """Return the kinds whose runs belong to a run of this kind, under the same name."""
    return tuple(each for each in KINDS if each.follows is kind)
