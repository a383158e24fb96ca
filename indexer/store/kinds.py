"""The kinds of run, one class each: what a kind is called, exported as, filtered by and shown as.

A new kind is a class here and an entry in `KINDS`; a collection's catalog keeps its name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, ClassVar, Literal

from ..errors import UsageError

ColumnValue = Literal["number", "name", "names", "member", "place"]
Payload = Literal["run_documents", "run_places"]

NAME_SUFFIX = " name"
"""What the name of the second column of a run with numbered items ends in."""
_EXPORTED = {"number": "integer", "name": "text", "names": "texts", "member": "boolean", "place": "real"}
_FILTERED = {"number": "integer", "name": "text", "names": "list", "member": "boolean"}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a run, in an export and in a filter.

    Attributes:
        name: Its full name.
        value: What a cell holds of the items that a document belongs to, best first: the first one's "number" or
            "name", the "names" of all, or whether there is any ("member"). "place": one coordinate on a map.
    """

    name: str
    value: ColumnValue

    @property
    def type(self) -> str:
        """Its type in an export: "integer", "text", "texts" (a list), "boolean" or "real"."""
        return _EXPORTED[self.value]

    @property
    def operand(self) -> str | None:
        """Its type in a filter: "integer", "text", "list" or "boolean"; None if no filter can use it."""
        return _FILTERED.get(self.value)

    @property
    def absent(self) -> bool | None:
        """The cell of a document that the run says nothing about: false for a member, else nothing."""
        return False if self.value == "member" else None

    def cell(self, numbers: Sequence[int], names: Sequence[str]) -> int | str | list[str] | bool:
        """Return the cell of a document that belongs to items with these numbers and names, best first.

        Raises:
            ValueError: It holds a place, which no item has.
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
        raise ValueError(f"the column {self.name!r} holds a place: no item has one")


class RunKind(str):
    """A kind of run.

    It is a string, its name, so that `run.kind == "cluster"` is true, JSON gives the name and SQLite stores it. There
    is one object of each kind: compare with `is`, or better, ask for what the kind is like.

    Attributes:
        name: As the catalog stores it and a column's name begins.
        item: What one of its items is called.
        items: What several of its items are called.
        heading: What the UI calls its items.
        score: What the score of a document in an item is called.
        payload: The table of its results: items with their documents, or places.
        numbered: Whether its items have a number and a name; else only a name.
        groups: Whether its items group the documents, so that they can be merged, compared, charted and evaluated.
        colors: Whether a map can be coloured by it.
        update: The words of the `sonde` command that brings a run up to date, its name comes last; empty if none does.
        follows: The kind whose run of the same name it belongs to, and is renamed with.
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
    update: ClassVar[tuple[str, ...]] = ()
    follows: ClassVar["RunKind | None"] = None

    def __new__(cls) -> "RunKind":
        """Return a kind under the name of its class."""
        return super().__new__(cls, cls.name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Be the same object after a copy or in another process."""
        return kind_of, (str(self),)

    def column(self, run: str) -> str:
        """Return the main column of the run of this name."""
        return f"{self}:{run}"

    def columns(self, main: str, parameters: Mapping[str, Any]) -> tuple[Column, ...]:
        """Return a run's columns: items that are numbered have a number and a name, others a name.

        Args:
            main: The run's main column: `column(run)`, unless another run has that.
            parameters: The run's.
        """
        del parameters
        if self.numbered:
            return Column(main, "number"), Column(f"{main}{NAME_SUFFIX}", "name")
        return (Column(main, "name"),)

    def color(self, name: str) -> str:
        """Return what a map's legend calls documents of the item of this name."""
        return name


class Clusters(RunKind):
    """Groups of documents that are near each other."""

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


class Maps(RunKind):
    """Places of documents on a plane; its items are regions, which documents do not belong to."""

    __slots__ = ()
    name, item, items, heading = "map", "region", "regions", "Map"
    payload: ClassVar[Payload] = "run_places"
    update = ("map", "--update")

    def columns(self, main: str, parameters: Mapping[str, Any]) -> tuple[Column, ...]:
        """Return the two coordinates, whose names no run is part of: only the newest map has them."""
        del main, parameters
        return Column("x", "place"), Column("y", "place")


class Labels(RunKind):
    """Labels given by a model: one each, or several where the run's parameters say `multi_label`."""

    __slots__ = ()
    name, item, items, heading = "label", "label", "labels", "Labels"
    score = "probability"
    colors = True

    def columns(self, main: str, parameters: Mapping[str, Any]) -> tuple[Column, ...]:
        """Return one column: a name, or a list of names."""
        return (Column(main, "names" if parameters.get("multi_label") else "name"),)


class Tags(RunKind):
    """Documents that a person put together; the only item is the tag itself."""

    __slots__ = ()
    name, item, items, heading = "tag", "tag", "tags", "Tags"
    colors = True

    def columns(self, main: str, parameters: Mapping[str, Any]) -> tuple[Column, ...]:
        """Return one column: whether a document has the tag."""
        del parameters
        return (Column(main, "member"),)

    def color(self, name: str) -> str:
        """Return one word for every tag: the legend's title names it."""
        del name
        return "tagged"


class Corrections(Labels):
    """Labels that a person gave, for the label run of the same name."""

    __slots__ = ()
    name, heading = "correction", "Corrections"
    score = "score"
    colors = False


CLUSTER, TOPIC, MAP, LABEL, TAG = Clusters(), Topics(), Maps(), Labels(), Tags()
Corrections.follows = LABEL
CORRECTION = Corrections()
KINDS: tuple[RunKind, ...] = (CLUSTER, TOPIC, MAP, LABEL, TAG, CORRECTION)


def kind_of(name: str) -> RunKind:
    """Return the kind of this name.

    Raises:
        UsageError: There is none; the message names the nearest and all others.
    """
    for kind in KINDS:
        if kind == name:
            return kind
    near = get_close_matches(str(name).lower(), KINDS, 1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    said = f"{name!r} is not a kind of run{hint}: use {kind_names()}"
    raise UsageError(said, code="unknown-option", field="kind", value=name, alternatives=KINDS)


def kind_names() -> str:
    """Return the names of all kinds as a sentence lists them."""
    return f"{', '.join(KINDS[:-1])} or {KINDS[-1]}"


def group_kinds() -> tuple[RunKind, ...]:
    """Return the kinds whose items group the documents."""
    return tuple(kind for kind in KINDS if kind.groups)


def followers(kind: RunKind) -> tuple[RunKind, ...]:
    """Return the kinds whose runs belong to a run of this kind, under the same name."""
    return tuple(each for each in KINDS if each.follows is kind)
