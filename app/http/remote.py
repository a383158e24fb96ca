"""Methods of a remote collection, created from those of the local one, and the topics and maps of a service."""

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ...indexer.errors import UsageError, as_texts
from ...indexer.store.tabular import Shown, Tabular
from ...indexer.wording import counted

if TYPE_CHECKING:  # a type checker sees the local classes
    from ...pipelines.map import Map as MapLike
    from ...pipelines.topics import Topic
    from ...pipelines.topics import Topics as TopicsLike
else:
    MapLike = Tabular

    class TopicsLike(Shown, Sequence):
        """What a remote run is besides the answers of the service."""


READING = (
    "ask", "assignments", "best_passage", "breakdown", "choices_among", "cluster_run", "clusters_near", "compare",
    "compare_runs", "contrast", "corrected_run", "corrections", "count_by", "counted_run", "counts", "cross_by",
    "documents", "duplicates", "evaluate_clusters", "evaluate_labels", "example_queries", "explain_filter",
    "export_columns", "export_notes", "export_taxonomy", "facets", "fields", "generation", "get", "id_column", "info",
    "item_sizes", "items", "judgements", "like", "matching", "members", "memberships", "model", "model_warning",
    "newest_run", "numbered", "places", "run", "runs", "search", "search_defaults", "search_many", "select",
    "similar", "taxonomy", "taxonomy_log", "texts", "uncounted_runs", "to_confirm", "unsure", "verify",
)  # fmt: skip
WRITING = (
    "check", "cluster", "compact", "correct", "delete", "delete_run", "edit_taxonomy", "forget_corrections",
    "forget_tuning", "import_taxonomy", "judge", "label", "late", "make_taxonomy", "merge_clusters", "refit_taxonomy",
    "rename_run", "repair", "tag", "undo_taxonomy", "update_clusters", "update_map", "update_taxonomy", "watch",
)  # fmt: skip
"""Methods that the service calls by name: methods that read, and methods that write."""
OF_RUNS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "topic_run": (
        (
            "by", "documents", "inside", "level", "levels", "name", "newer", "of", "outliers", "over", "rows", "run",
            "search", "suggested", "topic", "topics", "tree",
        ),
        ("merge", "reduce", "split", "update"),
    ),
    "map_run": (("name", "newer", "places", "regions", "rows", "run"), ("update",)),
}  # fmt: skip
"""For each method that opens a run: the names that read its topics or map, and the methods that change them."""
NOTHING = "nothing-to-index"
"""The error code by which the client recognises `NothingToIndexError`."""
_FILES = "it needs files on the service's machine: run it there, on the collection itself"
_MODEL = "it takes long: run `sonde model` on the service's machine; the service then uses the new model at once"
_NUMBERS = "it takes documents by number, for the web UI: use the methods that take ids or `where`"
_ROWS = "it writes on the service's machine: use to_pandas() or rows(), and write the file here"
ABSENT: Mapping[str, str] = {
    **dict.fromkeys(("export", "export_lines"), _ROWS),
    **dict.fromkeys(
        ("evaluate_search", "import_judgements", "label_by_examples", "tune_search", "tune_threshold"), _FILES
    ),
    **dict.fromkeys(("change_model", "discard_model", "forget_model", "undo_model"), _MODEL),
    **dict.fromkeys(("beginnings", "coloring", "colorings", "contrast_with_rest"), _NUMBERS),
    **dict.fromkeys(("documents_of", "export_numbered", "numbers", "table", "tag_numbered"), _NUMBERS),
    "widget": "it needs the collection on this machine",
    "write_page": "it writes on the service's machine: index the rows() here, and write the page of that",
    "export_groups": "it writes on the service's machine: use run(), and write the file here",
    "export_breakdown": "it writes on the service's machine: use breakdown(), and write the file here",
    "save_corrections": "it writes on the service's machine: use corrections(), and write the file here",
    "search_queries": "use search_many()",
    "try_labels": "use classify() on the texts of some documents",
    "device": "the service decides where its models run",
    "model_at_hand": "the service loads its models",
    "open": "use sonde.connect()",
    "path": "the folder is on the service's machine: `info().path` is the collection's name there",
    "report": "use what put() returns",
    "reranker": "the service keeps its models: search with rerank=True, or POST /rerank",
    "documents_state": "use generation",
    "state": "use generation",
}
"""Attributes and methods that only a local collection has, with what to use instead."""


QUERIES = 100
"""Queries in one request of `search_many`."""
LABELS_BY_ID = ("given", "truth")
"""Arguments that take a Series or a table of labels, which this machine turns into a mapping."""


class Calls(Protocol):
    """The part of a collection that a remote run uses."""

    def call(self, method: str, options: Mapping[str, Any], run: str | None = None) -> Any:
        """Call a method of the service and return its result."""


def options_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments in the service's form: `settings` becomes the fields that differ from their defaults."""
    left = [name for name, value in given.items() if name in ("settings", "progress") or (name, value) == ("k", None)]
    options = {name: value for name, value in given.items() if name not in left}
    settings = given.get("settings")
    if settings is None:
        return options
    if not is_dataclass(settings):
        return options | {"settings": settings}
    default = type(settings)()
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    return {name: value for name, value in values.items() if value != getattr(default, name)} | options  # type: ignore[arg-type]


def check_settings(local: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Check the class of the settings: fields of another class could be mistaken for the method's own.

    Raises:
        UsageError: The settings are not of the class that the local method takes.
    """
    settings, parameter = given.get("settings"), inspect.signature(local).parameters.get("settings")
    wanted = re.findall(r"\w+Settings", str(parameter.annotation)) if parameter else []
    if settings is not None and wanted and type(settings).__name__ not in wanted:
        said = f"settings is a {type(settings).__name__}: {local.__name__} takes sonde.{wanted[0]}"
        raise UsageError(said, code="wrong-type", field="settings")


def remote_method(name: str) -> "Callable[..., Any] | property":
    """Return a method or a property that calls the service by name, with the signature used in `Collection`.

    It is created on first use, so a program that only searches does not load the code for clusters and topics.

    Raises:
        AttributeError: The name does not exist; the message says what to use instead.
    """
    if name not in (*READING, *WRITING):
        raise AttributeError(f"a remote collection has no {name!r}" + (f": {ABSENT[name]}" if name in ABSENT else ""))
    from ..api import Collection

    path, local = f"{'read' if name in READING else 'write'}/{name}", getattr(Collection, name)
    return property(lambda self: self.call(path, {})) if isinstance(local, property) else _method(path, local)


def _method(path: str, local: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(local)
    streams = "Iterator" in str(signature.return_annotation)

    @functools.wraps(local)
    def call(self: Calls, *arguments: Any, **options: Any) -> Any:
        named = _named(local.__name__, signature, arguments, options)
        check_settings(local, named)
        given = options_of(_with_labels_by_id(self, named))
        return _in_parts(self, path, given) if streams else self.call(path, given)

    return call


def _in_parts(collection: Calls, path: str, given: dict[str, Any]) -> "Iterator[Any]":
    """Ask many queries in several requests, since a service limits their number; the first one is sent at once."""
    queries = as_texts(given["queries"], "query")
    parts = [queries[start : start + QUERIES] for start in range(0, len(queries), QUERIES)] or [queries]
    first = collection.call(path, given | {"queries": parts[0]})
    return chain(first, (found for part in parts[1:] for found in collection.call(path, given | {"queries": part})))


def _named(
    method: str, signature: inspect.Signature, arguments: Sequence[Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all arguments of a call by name.

    Raises:
        CallError: The method does not take these.
    """
    try:
        bound = signature.bind(None, *arguments, **options).arguments
    except TypeError as error:
        from ..api.arguments import not_bound

        raise not_bound(method, signature, error) from None
    named = {name: value for name, value in bound.items() if name != "self"}
    rest = next((p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD), None)
    return named | dict(named.pop(rest, {})) if rest else named


def _with_labels_by_id(collection: Calls, given: dict[str, Any]) -> dict[str, Any]:
    """Return arguments whose tables of labels are mappings; the service is asked for its id column only for a table.

    Rows of one document are several corrections, which the service refuses if the run gives each text one label.
    """
    if not any(name in given and not isinstance(given[name], str | dict | None) for name in LABELS_BY_ID):
        return given
    from ...pipelines.label.correction_files import read_corrections
    from ...pipelines.label.examples import given_truth, read_truth

    own = collection.call("read/id_column", {})

    def by_id(name: str, value: Any) -> Any:
        several = name == "given"
        if isinstance(value, Path):
            read = read_corrections if several else read_truth
            return read(value, own, several=several)
        return given_truth(value, name, own, several=several)

    return {name: by_id(name, value) if name in LABELS_BY_ID else value for name, value in given.items()}


class RemoteTopics(TopicsLike):
    """The topics of a run on a service; see `Topics`."""

    def __init__(self, collection: Calls, name: str) -> None:
        self._run_name = name
        self._collection = collection
        self._topics: list[Topic] = collection.call("read/topic_run/topics", {}, name)

    @property
    def name(self) -> str:
        """The run's name."""
        return self._run_name

    @property
    def topics(self) -> "list[Topic]":
        """All topics by number, without outliers, as they were when this object was created."""
        return list(self._topics)

    def __len__(self) -> int:
        return len(self._topics)

    def __getitem__(self, index: Any) -> Any:
        return self._topics[index]

    def __iter__(self) -> "Iterator[Topic]":
        return iter(self._topics)

    def __repr__(self) -> str:
        return f"RemoteTopics({self.name!r}, {counted(len(self), 'topic')}, {self._collection!r})"

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_names("topic_run")})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _of_run(self._collection, "topic_run", self._run_name, name, RemoteTopics)


class RemoteMap(MapLike):
    """A map on a service; see `Map`."""

    def __init__(self, collection: Calls, name: str) -> None:
        self._run_name = name
        self._collection = collection

    @property
    def name(self) -> str:
        """The run's name."""
        return self._run_name

    def __len__(self) -> int:
        return len(self.places)

    def __repr__(self) -> str:
        return f"RemoteMap({self.name!r}, {self._collection!r})"

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_names("map_run")})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _of_run(self._collection, "map_run", self._run_name, name, RemoteMap)


ATTRIBUTES = ("level", "levels", "newer", "outliers", "places", "regions", "run", "suggested")
CHANGES = ("merge", "reduce", "split", "update")
SHOWN = {"topic_run": "remote topics", "map_run": "a remote map"}


def _names(opened: str) -> tuple[str, ...]:
    reading, changing = OF_RUNS[opened]
    return (*reading, *changing)


def _of_run(collection: Calls, opened: str, run: str, name: str, kind: Callable[[Calls, str], Any]) -> Any:
    """Return an attribute of a remote run, or a function that calls its method.

    Raises:
        AttributeError: The service does not offer this name; the message lists the names that it offers.
    """
    if name not in _names(opened):
        have = "has" if opened == "map_run" else "have"
        raise AttributeError(f"{SHOWN[opened]} {have} no {name!r}: there are {', '.join(_names(opened))}")
    if name in ATTRIBUTES:
        return collection.call(f"read/{opened}/{name}", {}, run)

    def call(*given: Any, **options: Any) -> Any:
        path = f"{'write' if name in CHANGES else 'read'}/{opened}/{name}"
        found = collection.call(path, _by_name(opened, name, given, options), run)
        return kind(collection, found) if name in CHANGES else found

    return call


def _by_name(opened: str, method: str, given: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    from ...pipelines.map import Map
    from ...pipelines.topics import Topics

    local = getattr(Map if opened == "map_run" else Topics, method)
    named = _named(method, inspect.signature(local), given, options)
    return {name: value for name, value in named.items() if name != "notify"}  # as `progress` of other methods
