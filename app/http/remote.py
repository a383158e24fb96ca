"""Methods of a remote collection, made from those of the local one; topics and maps of a service."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # to a type checker, what is remote is what it stands for
    from ...pipelines.map import Map as MapLike
    from ...pipelines.topics import Topic
    from ...pipelines.topics import Topics as TopicsLike
else:
    MapLike, TopicsLike = object, Sequence

READING = (
    "ask",
    "best_passage",
    "breakdown",
    "choices_among",
    "cluster_run",
    "clusters_near",
    "compare",
    "corrections",
    "counts",
    "documents",
    "duplicates",
    "evaluate_clusters",
    "evaluate_labels",
    "example_queries",
    "facets",
    "fields",
    "get",
    "info",
    "judgements",
    "matching",
    "members",
    "model_warning",
    "run",
    "runs",
    "search_defaults",
    "search_many",
    "unsure",
    "verify",
)
WRITING = (
    "cluster",
    "compact",
    "correct",
    "delete",
    "delete_run",
    "forget_corrections",
    "forget_tuning",
    "judge",
    "label",
    "merge_clusters",
    "rename_run",
    "repair",
    "tag",
    "update_clusters",
    "update_map",
)
"""Methods that the service calls by name: those that read, and those that write."""


class Calls(Protocol):
    """What a remote run needs of its collection."""

    def call(self, method: str, options: Mapping[str, Any], run: str | None = None) -> Any:
        """Return what a method of the service returns."""


def options_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call as the service takes them: `settings` as the fields that are not the defaults."""
    options = {name: value for name, value in given.items() if name not in ("settings", "progress")}
    settings = given.get("settings")
    if settings is None:
        return options
    if not is_dataclass(settings):
        return options | {"settings": settings}
    default = type(settings)()
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    return {name: value for name, value in values.items() if value != getattr(default, name)} | options  # type: ignore[arg-type]


def remote_method(name: str) -> Callable[..., Any]:
    """Return a method that the service calls by name, with the signature of the one of `sonde.Collection`.

    Made when it is first used: a program that only searches does not load what clusters and topics need.

    Raises:
        AttributeError: There is none of this name.
    """
    if name not in (*READING, *WRITING):
        raise AttributeError(f"a remote collection has no {name!r}")
    from ..api import Collection

    return _method(f"{'read' if name in READING else 'write'}/{name}", getattr(Collection, name))


def _method(path: str, local: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(local)
    streams = "Iterator" in str(signature.return_annotation)

    @functools.wraps(local)
    def call(self: Calls, *arguments: Any, **options: Any) -> Any:
        found = self.call(path, options_of(_named(signature, arguments, options)))
        return iter(found) if streams else found

    return call


def _named(signature: inspect.Signature, arguments: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return every argument of a call by its name."""
    bound = signature.bind(None, *arguments, **options).arguments
    named = {name: value for name, value in bound.items() if name != "self"}
    rest = next((p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD), None)
    return named | dict(named.pop(rest, {})) if rest else named


class RemoteTopics(TopicsLike):
    """The topics of a run behind a service; see `Topics`."""

    def __init__(self, collection: Calls, name: str) -> None:
        self._run_name = name
        self._collection = collection
        self._topics: list[Topic] = collection.call("read/topic_run/topics", {}, name)

    @property
    def name(self) -> str:
        """The run's name."""
        return self._run_name

    def __len__(self) -> int:
        return len(self._topics)

    def __getitem__(self, index: Any) -> Any:
        return self._topics[index]

    def __iter__(self) -> "Iterator[Topic]":
        return iter(self._topics)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _of_run(self._collection, "topic_run", self.name, name, RemoteTopics)


class RemoteMap(MapLike):
    """A map behind a service; see `Map`."""

    def __init__(self, collection: Calls, name: str) -> None:
        self._run_name = name
        self._collection = collection

    @property
    def name(self) -> str:
        """The run's name."""
        return self._run_name

    def __len__(self) -> int:
        return len(self.places)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _of_run(self._collection, "map_run", self.name, name, RemoteMap)


ATTRIBUTES = ("newer", "outliers", "places", "regions", "run")
CHANGES = ("merge", "reduce", "split", "update")


def _of_run(collection: Calls, opened: str, run: str, name: str, kind: Callable[[Calls, str], Any]) -> Any:
    """Return an attribute of a remote run, or a function that calls its method."""
    if name in ATTRIBUTES:
        return collection.call(f"read/{opened}/{name}", {}, run)
    if name in CHANGES:
        return lambda *given, **options: kind(
            collection, collection.call(f"write/{opened}/{name}", _by_name(name, given, options), run)
        )
    return lambda *given, **options: collection.call(f"read/{opened}/{name}", _by_name(name, given, options), run)


def _by_name(method: str, given: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    from ...pipelines.topics import Topics

    return _named(inspect.signature(getattr(Topics, method)), given, options)
