"""What the tools answer: short enough for an assistant to read, and never cut without a sign."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ...indexer.errors import out_of_range
from ...indexer.store.fields import json_value
from ...indexer.store.runs import Run
from ...pipelines.search.ask import Answer
from ...pipelines.search.counts import Counts
from ...pipelines.search.results import Hit, Results
from ..api import Collection

MOST_HITS = 50
"""Documents of a list, at most."""
MOST_VALUES = 50
"""Values of a column that a count lists, and groups that a list shows, at most."""
SHOWN = 300
"""Characters of a metadata value in a list, and of a text; `get_document` returns more."""
PART = 20_000
"""Characters of a text that one call returns, at most."""
TERMS = 20
"""Words that a comparison, or one group, lists at most."""
FEW_TERMS = 6
"""Words of each group in a list of groups."""


def checked(name: str, value: int, most: int) -> int:
    """Return a number of documents or groups.

    Raises:
        UsageError: It is out of range.
    """
    if not 1 <= value <= most:
        raise out_of_range(name, value, f"give 1 to {most:,}")
    return value


def cut(value: Any, most: int = SHOWN) -> Any:
    """Return a JSON value whose texts, and lists, are cut; "…" or "… 7 more" ends what is cut."""
    if isinstance(value, list):
        more = [f"… {len(value) - TERMS} more"] if len(value) > TERMS else []
        return [cut(each, most) for each in value[:TERMS]] + more
    return f"{value[:most].rstrip()} …" if isinstance(value, str) and len(value) > most else value


def metadata(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata as JSON values, cut; a field without a value is left out."""
    return {name: cut(json_value(value)) for name, value in values.items() if value not in (None, "")}


def filled(**values: Any) -> dict[str, Any]:
    """Return these values without those that are empty."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def answer_of(results: Results, *notes: str) -> dict[str, Any]:
    """Return the hits of a search, after its notes."""
    tuned = {"tuned": dict(results.tuned)} if results.tuned else {}
    return {"notes": [*notes, *results.notes], **tuned, "hits": [hit_of(hit) for hit in results]}


def hit_of(hit: Hit) -> dict[str, Any]:
    """Return one hit: what to cite, how good it is, and the best part of its text."""
    return {
        "id": hit.id,
        **filled(title=hit.title),
        "relevance": round(hit.relevance, 4),
        "weak": hit.weak,
        "score": round(hit.score, 4),
        "scores": {name: round(value, 4) for name, value in asdict(hit.scores).items() if value is not None},
        "excerpt": hit.excerpt.text,
        **filled(start=hit.excerpt.start or None, copies=list(hit.copies), metadata=metadata(hit.metadata)),
    }


def asked(found: Answer) -> dict[str, Any]:
    """Return the answer to a question, with the document that it is from."""
    hit = found.hit
    source = filled(title=hit.title, excerpt=hit.excerpt.text, start=hit.excerpt.start or None) if hit else {}
    return {
        "answer": cut(found.answer, PART),
        "id": hit.id if hit else None,
        **source,
        **({"relevance": round(hit.relevance, 4)} if hit else {}),
        "similarity": None if found.similarity is None else round(found.similarity, 4),
        "threshold": found.threshold,
        "notes": list(found.notes),
    }


def counts_of(found: Counts) -> dict[str, Any]:
    """Return the counts of a column; values that are not listed are counted as others."""
    values = found.values[:MOST_VALUES]
    names = found.names[:MOST_VALUES] or [None] * len(values)
    listed = [
        {"value": cut(json_value(value)), "documents": count} | filled(name=name)
        for (value, count), name in zip(values, names, strict=True)
    ]
    about = filled(low=json_value(found.low), high=json_value(found.high), mean=json_value(found.mean))
    counted = {"documents": found.documents, "missing": found.missing, "distinct": found.distinct, **about}
    if found.distinct > len(values):
        rest = found.documents - found.missing - sum(count for _, count in values)
        counted["others"] = {"values": found.distinct - len(values)} | filled(documents=max(rest, 0) or None)
    return {**counted, "values": listed}


def groups_of(
    collection: Collection, run: Run, items: Sequence[Any], number: int | None, k: int, offset: int
) -> dict[str, Any]:
    """Return the groups of a run from a place on, or one group with all that is known of it."""
    sizes = collection.item_sizes(run)
    documents = len(collection)
    found: dict[str, Any] = {
        "run": run.name, "groups": len(items), **filled(in_no_group=sizes.get(-1)),
        **filled(not_in_this_run=max(documents - run.documents, 0) or None),
    }  # fmt: skip
    if number is not None:
        item = next(each for each in items if each.number == number)
        known = {name: value for name, value in item.data.items() if name in ("description", "name_accuracy", "parent")}
        typical = collection.documents(item.data.get("representatives", []))
        texts = [{"id": each.id, **filled(title=each.title, text=cut(each.text))} for each in typical.values()]
        return found | {"group": _group(item, sizes, TERMS) | known | filled(typical=texts)}
    found["items"] = [_group(item, sizes, FEW_TERMS) for item in items[offset : offset + k]]
    return found | filled(next_offset=offset + k if offset + k < len(items) else None)


def _group(item: Any, sizes: Mapping[int, int], most: int) -> dict[str, Any]:
    terms = _words(item.data.get("keywords") or item.data.get("terms") or [])
    return {
        "number": item.number, "name": item.name, "documents": sizes.get(item.number, 0), **filled(terms=terms[:most]),
    }  # fmt: skip


def _words(terms: Iterable[Any]) -> list[str]:
    return [each if isinstance(each, str) else str(each[0]) for each in terms]
