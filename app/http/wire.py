"""Serialisation: results of the Python API to JSON and back, and documents in requests that a service can read.

A type that JSON lacks becomes an object with one key that begins with "$". Only the classes listed here are created
from JSON.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from functools import cache
from importlib import import_module
from typing import Any

from ...indexer.document import Document
from ...indexer.errors import SondeError
from ...indexer.store.kinds import RunKind, kind_of

TYPES = {
    "indexer.document": ("Document", "Skipped"),
    "indexer.ingest": ("BuildReport",),
    "indexer.ingest.late": ("LateReport",),
    "indexer.store.documents": ("DocumentText",),
    "indexer.store.runs": ("Item", "Run"),
    "indexer.store.view": ("StoredDocument",),
    "indexer.upkeep.delete": ("CompactReport",),
    "indexer.upkeep.info": ("Info",),
    "indexer.upkeep.verify": ("Finding",),
    "pipelines.analysis.breakdown": ("RunBreakdown",),
    "pipelines.analysis.runs": ("Assignment", "Member", "Membership", "RunDetails"),
    "pipelines.analysis.selections": ("Tagged",),
    "pipelines.check.check": ("Checked", "Found"),
    "pipelines.watch.watch": ("Example", "GroupChange", "Watched"),
    "pipelines.cluster": ("Clustering", "Updated"),
    "pipelines.compare": ("Change", "Contrast", "RunComparison", "Side"),
    "pipelines.duplicates.finding": ("Duplicate", "Duplicates", "Group"),
    "pipelines.evaluate.groups": ("ClusterQuality",),
    "pipelines.evaluate.labels": ("ClassQuality", "LabelQuality"),
    "pipelines.evaluate.judgements": ("Judgement", "Judgements"),
    "pipelines.label.corrections": ("Corrected", "Correction"),
    "pipelines.search.counts": ("Counts", "CrossCounts"),
    "pipelines.search.facets": ("Facet",),
    "pipelines.label": ("Classified", "Entailment", "Label", "LabelReport", "Unsure"),
    "pipelines.search.ask": ("Answer",),
    "pipelines.search.results": (
        "Hit", "Match", "Passage", "Reranking", "Results", "Scores", "Sentence", "Why",
    ),
    "pipelines.search.settings": ("SearchDefaults",),
    "pipelines.search.weighting": ("FusionWeight",),
    "pipelines.taxonomy": ("Conflict", "LogEntry", "Taxonomy", "TaxonomyGroup", "TaxonomyUpdate"),
    "pipelines.topics.over": ("Breakdown", "Cell"),
    "pipelines.topics.results": ("Node", "Topic", "TopicMatch", "TopicMember"),
}  # fmt: skip
"""The classes that can be serialised, by module."""
DTYPES = ("bool", "int32", "int64", "float16", "float32", "float64")
"""The array types that can be serialised."""

AT_ONCE = 500
"""Number of documents to write in one request."""
MOST_BYTES = 2_000_000
"""Bytes of the documents in one request; a service reads 4,000,000 unless it was told otherwise."""


def encode(value: Any) -> Any:
    """Return JSON values from which `decode` restores an equal value.

    Raises:
        TypeError: The value cannot be serialised.
    """
    if isinstance(value, RunKind):
        return {"$kind": str(value)}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, datetime):
        return {"$datetime": value.isoformat()}
    if isinstance(value, date):
        return {"$date": value.isoformat()}
    if is_dataclass(value):
        return _encode_result(value, [field.name for field in fields(value)])
    if hasattr(value, "dtype"):  # NumPy's arrays and numbers, without importing it
        return _encode_numbers(value)
    return _encode_many(value)


def _encode_result(value: Any, names: Iterable[str]) -> dict[str, Any]:
    kind = type(value).__name__
    if not any(kind in known for known in TYPES.values()):
        raise TypeError(f"{kind} cannot be sent")
    return {"$result": kind} | {name: encode(getattr(value, name)) for name in names}


def _encode_numbers(value: Any) -> Any:
    if not hasattr(value, "ndim") or value.ndim == 0:
        return encode(value.item())
    listed = value.tolist()
    return {"$array": listed, "dtype": str(value.dtype)} if str(value.dtype) in DTYPES else encode(listed)


def _encode_many(value: Any) -> Any:
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: encode(each) for key, each in value.items()}
        return {"$pairs": [[encode(key), encode(each)] for key, each in value.items()]}
    if isinstance(value, AbstractSet):
        return {"$set": [encode(each) for each in sorted(value, key=repr)]}
    if isinstance(value, tuple):
        named = getattr(value, "_fields", None)
        return _encode_result(value, named) if named else {"$tuple": [encode(each) for each in value]}
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [encode(each) for each in value]
    raise TypeError(f"{type(value).__name__} cannot be sent")


def decode(value: Any) -> Any:
    """Return the original value of an `encode` call.

    Raises:
        SondeError: The value names a class that is unknown to this version.
    """
    if isinstance(value, list):
        return [decode(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "$result" in value:
        kind = _classes().get(value["$result"])
        if kind is None:
            raise SondeError(f"this version of Sonde does not know the result {value['$result']!r}: use the service's")
        return kind(**{name: decode(each) for name, each in value.items() if name != "$result"})
    if "$array" in value:
        return _array(value["$array"], value.get("dtype"))
    for mark, back in _MARKS.items():
        if mark in value:
            return back(value[mark])
    return {name: decode(each) for name, each in value.items()}


def _array(values: Any, dtype: Any) -> Any:
    if dtype not in DTYPES:  # others, such as "S1000000000", could allocate far too much memory
        raise ValueError(f"{dtype!r} is not a number type: use {', '.join(DTYPES)}")
    import numpy as np

    return np.array(values, dtype)


_MARKS = {
    "$kind": kind_of,
    "$float": float,
    "$datetime": datetime.fromisoformat,
    "$date": date.fromisoformat,
    "$pairs": lambda pairs: {decode(key): decode(each) for key, each in pairs},
    "$set": lambda parts: frozenset(decode(each) for each in parts),
    "$tuple": lambda parts: tuple(decode(each) for each in parts),
}


@cache
def _classes() -> dict[str, type[Any]]:
    top = __name__.rsplit(".", 3)[0]
    return {name: getattr(import_module(f"{top}.{home}"), name) for home, names in TYPES.items() for name in names}


def parts_of(documents: Sequence[Document]) -> Iterator[list[Document]]:
    """Yield documents for one request each: at most `AT_ONCE`, and `MOST_BYTES` as JSON unless one has more."""
    part: list[Document] = []
    held = 0
    for each in documents:
        size = len(json.dumps([each.text, each.title, each.key, each.metadata], default=str))
        if part and (len(part) == AT_ONCE or held + size > MOST_BYTES):
            yield part
            part, held = [], 0
        part.append(each)
        held += size
    if part or not documents:
        yield part
