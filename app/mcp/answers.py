"""What the tools answer: short enough for an assistant to read, and never cut without a sign."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ...indexer.errors import out_of_range
from ...indexer.store.fields import json_value
from ...indexer.store.kinds import LEVELS
from ...indexer.store.runs import Item, Run
from ...indexer.store.view import StoredDocument
from ...pipelines.search.ask import Answer
from ...pipelines.search.counts import Counts, CrossCounts
from ...pipelines.search.results import Hit, Results
from ..api import Collection

if TYPE_CHECKING:
    from ...pipelines.duplicates import Duplicates, Group

MOST_HITS = 50
"""Documents of a list, at most."""
MOST_VALUES = 50
"""Values of a column that a count lists, and groups that a list shows, at most."""
MOST_CELLS = 20
"""Values of each of two columns that a table lists, at most."""
SHOWN = 300
"""Characters of a metadata value in a list, and of a text; `get_document` returns more."""
VALUE = 2_000
"""Characters of a metadata value beside the whole text, at most."""
BRIEF = 100
"""Characters of a metadata value in a list of members."""
QUANTILES = {"10%": 0.1, "25%": 0.25, "median": 0.5, "75%": 0.75, "90%": 0.9}
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


def metadata(values: Mapping[str, Any], most: int = SHOWN) -> dict[str, Any]:
    """Return metadata as JSON values, cut; a field without a value is left out."""
    return {name: cut(json_value(value), most) for name, value in values.items() if value not in (None, "")}


def filled(**values: Any) -> dict[str, Any]:
    """Return these values without those that are empty."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def past(offset: int, total: int, what: str) -> list[str]:
    """Return a note if nothing is left after an offset."""
    return [f"offset is {offset:,}, but there are only {total:,} {what}"] if offset and offset >= total else []


def rounded(value: Any) -> Any:
    """Return a number rounded to four decimals, or to four significant digits below 1; other values as they are."""
    return float(f"{value:.4f}" if abs(value) >= 1 else f"{value:.4g}") if isinstance(value, float) else value


def document_of(found: StoredDocument, offset: int, length: int) -> dict[str, Any]:
    """Return a part of a document's text, with its title and its metadata, which are cut."""
    given = {name: json_value(value) for name, value in found.metadata.items()}
    lengths = {name: len(_text(value)) for name, value in given.items()}
    most = VALUE if sum(min(each, VALUE) for each in lengths.values()) <= PART else SHOWN
    values = {
        name: f"{_text(value)[:most].rstrip()} … ({lengths[name]:,} characters: give `field`)"
        if lengths[name] > most else value
        for name, value in given.items()
    }  # fmt: skip
    about = {"id": found.id, **filled(title=found.title)}
    return about | _part("text", found.text, offset, length) | {"metadata": values}


def value_of(found: StoredDocument, field: str, offset: int, length: int) -> dict[str, Any]:
    """Return a part of a metadata value of a document."""
    value = json_value(found.metadata.get(field))
    if value is None:
        return {"id": found.id, "field": field, "value": None}
    return {"id": found.id, "field": field} | _part("value", _text(value), offset, length)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _part(name: str, text: str, offset: int, length: int) -> dict[str, Any]:
    end, size = offset + length, len(text)
    about = filled(characters=size, next_offset=end if end < size else None) if offset or end < size else {}
    return {name: text[offset:end], **about, **filled(notes=past(offset, size, "characters"))}


def answer_of(results: Results, *notes: str, more: int | None = None) -> dict[str, Any]:
    """Return the hits of a search, after its notes; `more` is where the next page begins."""
    tuned = {"tuned": dict(results.tuned)} if results.tuned else {}
    hits = [hit_of(hit) for hit in results]
    return filled(notes=[*notes, *results.notes]) | tuned | {"hits": hits} | filled(next_offset=more)


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
        **_place(hit),
        **filled(copies=list(hit.copies), metadata=metadata(hit.metadata)),
    }


def _place(hit: Hit) -> dict[str, Any]:
    return filled(start=hit.excerpt.start or None, page=hit.page)


def asked(found: Answer) -> dict[str, Any]:
    """Return the answer to a question, with the document that it is from."""
    hit = found.hit
    source = filled(title=hit.title, excerpt=hit.excerpt.text) | _place(hit) if hit else {}
    notes = list(found.notes)
    if hit and found.answer and len(found.answer) > PART:
        column = next((name for name, value in hit.metadata.items() if value == found.answer), None)
        given = "" if column is None else f"field {json.dumps(column, ensure_ascii=False)} and "
        offset = PART + (hit.passage.start if column is None else 0)
        notes.append(f"the answer is longer: read on with `get_document`, {given}offset {offset}")
    return filled(notes=notes) | {
        "answer": cut(found.answer, PART),
        "id": hit.id if hit else None,
        **source,
        **({"relevance": round(hit.relevance, 4)} if hit else {}),
        "similarity": None if found.similarity is None else round(found.similarity, 4),
        "threshold": found.threshold,
    }


def counts_of(found: Counts, offset: int, mean_of: str | None = None) -> dict[str, Any]:
    """Return the counts of a column from an offset on; values after those that are listed are counted as others.

    With `mean_of`, each value has the mean of that column, so that of the counted one is left out.
    """
    count = len(found.values)
    names = found.names or [None] * count
    means = found.means or [None] * count
    listed = [
        {"value": cut(json_value(value)), "documents": many} | filled(name=name, mean=rounded(json_value(mean)))
        for (value, many), name, mean in zip(found.values, names, means, strict=True)
    ]
    mean = None if mean_of and mean_of != found.column else rounded(json_value(found.mean))
    about = filled(low=json_value(found.low), high=json_value(found.high), mean=mean, mean_of=mean_of)
    answer = {"documents": found.documents, "missing": found.missing, "distinct": found.distinct, **about}
    if found.distinct > offset + count:
        rest = found.documents - found.missing - sum(many for _, many in found.values)
        answer["others"] = {"values": found.distinct - offset - count} | filled(
            documents=None if offset else max(rest, 0) or None
        )
    return {**answer, "values": listed} | filled(
        next_offset=offset + count if count and offset + count < found.distinct else None
    )


def cross_of(found: CrossCounts) -> dict[str, Any]:
    """Return a table of two columns; `others` has the number of values of each column that are not listed."""
    rows, heads = ([cut(json_value(value)) for value in values] for values in found.values)
    means = found.means or [None] * len(rows)
    left_out = {
        column: distinct - len(values)
        for column, distinct, values in zip(found.columns, found.distinct, found.values, strict=True)
        if distinct > len(values)
    }
    return {
        "documents": found.documents, "missing": found.missing, **filled(others=left_out),
        "of": found.columns[0], "by": found.columns[1], "head": heads,
        "rows": [
            {"value": row, "documents": list(counts)}
            | filled(means=None if some is None else [rounded(json_value(mean)) for mean in some])
            for row, counts, some in zip(rows, found.counts, means, strict=True)
        ],
    }  # fmt: skip


def quantiles(values: Sequence[tuple[float, int]]) -> dict[str, float]:
    """Return quantiles of (number, frequency) pairs: the smallest number that reaches each share."""
    ordered, found, below = sorted(values), dict[str, float](), 0
    total = sum(many for _, many in ordered)
    shares = iter(QUANTILES.items())
    name, share = next(shares)
    for value, many in ordered:
        below += many
        while share is not None and below >= share * total:
            found[name] = value
            name, share = next(shares, ("", None))
    return {"min": ordered[0][0], **found, "max": ordered[-1][0]}


def duplicates_of(
    found: "Duplicates", shown: Sequence["Group"], texts: Mapping[str, StoredDocument], offset: int
) -> dict[str, Any]:
    """Return some groups of duplicates, each with the beginning of one text and the ids of the others."""
    items = [
        {"documents": len(group.duplicates) + 1, "id": group.representative,
         **filled(title=texts[group.representative].title, text=cut(texts[group.representative].text)),
         "duplicates": [
             each.to_dict() | ({} if each.kind == "exact" else filled(text=cut(texts[each.id].text, BRIEF)))
             for each in group.duplicates[:TERMS]
         ],
         **filled(more=max(0, len(group.duplicates) - TERMS) or None)}
        for group in shown
    ]  # fmt: skip
    end, groups = offset + len(shown), len(found.groups)
    about = {"documents": found.documents, "groups": groups, "redundant": len(found.redundant), "items": items}
    notes = [*found.notes, *past(offset, groups, "groups")]
    return about | filled(next_offset=end if shown and end < groups else None, notes=notes)


def groups_of(
    collection: Collection, run: Run, items: Sequence[Any], number: int | None, k: int, offset: int
) -> dict[str, Any]:
    """Return the groups of a run from a place on, or one group with all that is known of it."""
    sizes = collection.item_sizes(run)
    documents = len(collection)
    found: dict[str, Any] = {
        "run": f"{run.kind}:{run.name}" if run.kind.part else run.name,  # as `members` takes it
        "groups": len(items), **filled(in_no_group=sizes.get(-1)),
        **filled(not_in_this_run=max(documents - run.documents, 0) or None),
    }  # fmt: skip
    if number is not None:
        item = next(each for each in items if each.number == number)
        known = {name: value for name, value in item.data.items() if name in ("description", "name_accuracy", "parent")}
        typical = collection.documents(item.data.get("representatives", []))
        texts = [{"id": each.id, **filled(title=each.title, text=cut(each.text))} for each in typical.values()]
        about = _group(item, sizes, TERMS) | known | filled(typical=texts) | _inside(collection, run, item)
        return found | {"group": about}
    found["items"] = [_group(item, sizes, FEW_TERMS) for item in items[offset : offset + k]]
    return found | filled(
        next_offset=offset + k if offset + k < len(items) else None, notes=past(offset, len(items), "groups")
    )


def _inside(collection: Collection, run: Run, item: Item) -> dict[str, Any]:
    """Return the groups of the next finer level that a topic consists of; nothing if it has none."""
    leaves = set(item.data.get("leaves", ()))
    kinds = [each.kind for each in LEVELS for each in collection.uncounted_runs(each) if each.name == run.name]
    finer = kinds[kinds.index(run.kind) + 1 :] if run.kind in kinds else kinds
    for kind in finer if leaves else ():
        level = collection.newest_run(kind, run.name)
        parts = [each for each in level.items if set(each.data.get("leaves", ())) < leaves]
        if len(parts) > 1:
            sizes = collection.item_sizes(level.run)
            listed = [{"number": each.number, "name": each.name, "documents": sizes.get(each.number, 0)}
                      for each in parts[:MOST_VALUES]]  # fmt: skip
            more = filled(more=max(0, len(parts) - MOST_VALUES) or None)
            return {"inside": {"run": f"{kind}:{run.name}", "groups": listed, **more}}
    return {}


def _group(item: Any, sizes: Mapping[int, int], most: int) -> dict[str, Any]:
    terms = _words(item.data.get("keywords") or item.data.get("terms") or [])
    return {
        "number": item.number, "name": item.name, "documents": sizes.get(item.number, 0), **filled(terms=terms[:most]),
    }  # fmt: skip


def _words(terms: Iterable[Any]) -> list[str]:
    return [each if isinstance(each, str) else str(each[0]) for each in terms]
