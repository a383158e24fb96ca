"""Training data: labelled sentence pairs, queries with their passages, and mined hard negatives."""

import gzip
import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...indexer.document import Document
from ...indexer.encoder import Encoder
from ...indexer.errors import SondeError, UsageError
from ...indexer.ingest.index import index_documents
from ...indexer.progress import Notify, silent
from ...indexer.store.collection import StoredCollection
from ..search.search import search_many
from ..search.settings import SearchSettings

LABELS = ("entailment", "neutral", "contradiction")


@dataclass(frozen=True, slots=True)
class Premise:
    """A text and its hypotheses, each with "entailment", "neutral" or "contradiction"."""

    text: str
    pairs: tuple[tuple[str, str], ...]


def read_pairs(path: Path) -> list[Premise]:
    """Read pairs; neighbouring lines of one premise become one `Premise`.

    Args:
        path: JSONL, perhaps gzipped, with "premise", "hypothesis" and "label" in each line.

    Raises:
        UsageError: There is no such file, or no pair in it.
        SondeError: A line cannot be used; the message has its number.
    """
    found: list[tuple[str, list[tuple[str, str]]]] = []
    for number, row in read_lines(path):
        premise, hypothesis, label = (_text(row, name, path, number) for name in ("premise", "hypothesis", "label"))
        if label not in LABELS:
            raise SondeError(f"{path}, line {number}: the label is {label!r}: give one of {', '.join(LABELS)}")
        if not found or found[-1][0] != premise:
            found.append((premise, []))
        found[-1][1].append((hypothesis, label))
    if not found:
        raise UsageError(f"{path} holds no pairs: give lines of JSON with premise, hypothesis and label")
    return [Premise(text, tuple(pairs)) for text, pairs in found]


def write_pairs(path: Path, pairs: Iterable[tuple[str, str, str]]) -> None:
    """Write (premise, hypothesis, label) as `read_pairs` reads them, without compression."""
    with path.open("w", encoding="utf-8") as file:
        for premise, hypothesis, label in pairs:
            row = {"premise": premise, "hypothesis": hypothesis, "label": label}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a JSONL file with their line numbers, from 1; empty lines are passed over.

    Raises:
        UsageError: There is no such file.
        SondeError: A line is no JSON object, or the file is damaged.
    """
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, _object(line, path, number)
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise SondeError(f"{path} cannot be read: {error}") from error


def digest_of(*parts: object) -> str:
    """Return a digest of data and settings, to tell one training run from another."""
    return hashlib.sha256("\x1f".join(map(repr, parts)).encode()).hexdigest()


def _object(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise SondeError(f"{path}, line {number} is no JSON: {error}") from error
    if not isinstance(row, dict):
        raise SondeError(f"{path}, line {number} is no JSON object")
    return row


def _text(row: dict[str, Any], name: str, path: Path, number: int) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise SondeError(f"{path}, line {number}: {name!r} must be a text, not {value!r}")
    return value


@dataclass(frozen=True, slots=True)
class TrainingQuery:
    """A query, the passages that answer it, and passages known not to."""

    text: str
    right: tuple[str, ...]
    wrong: tuple[str, ...] = ()


def read_training_queries(path: Path) -> list[TrainingQuery]:
    """Read queries; lines of the same query, wherever they are, become one `Query`.

    Args:
        path: JSONL, perhaps gzipped, with "query" and "passage" in each line and, if wanted, "negatives", a list.

    Raises:
        UsageError: There is no such file, or no query in it.
        SondeError: A line cannot be used; the message has its number.
    """
    right: dict[str, dict[str, None]] = {}
    wrong: dict[str, dict[str, None]] = {}
    for number, row in read_lines(path):
        where = f"{path}, line {number}"
        query, passage = (_queries_text(row.get(name), name, where) for name in ("query", "passage"))
        negatives = row.get("negatives") or []
        if not isinstance(negatives, list):
            raise SondeError(f"{where}: 'negatives' must be a list of texts, not {negatives!r}")
        right.setdefault(query, {})[passage] = None
        wrong.setdefault(query, {}).update((_queries_text(each, "negatives", where), None) for each in negatives)
    if not right:
        raise UsageError(f"{path} holds no queries: give lines of JSON with query and passage")
    return [
        TrainingQuery(query, tuple(passages), tuple(text for text in wrong[query] if text not in passages))
        for query, passages in right.items()
    ]


def _queries_text(value: Any, name: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise SondeError(f"{where}: {name!r} must be a text, not {value!r}")
    return value


DEPTH = 20
"""Candidates of each half that are looked at."""
SAME = 0.92
"""A candidate this similar to a right passage is taken for right as well, and left out."""
BETTER = 1.05
"""So is one whose similarity to the query exceeds the best right passage's by this factor: most such are unjudged
answers (RocketQA, Qu et al., NAACL 2021)."""


def mine_negatives(
    queries: Sequence[TrainingQuery], encoder: Encoder, count: int, notify: Notify = silent
) -> list[TrainingQuery]:
    """Return the queries with wrong passages added until each has `count`, or no more are found.

    Args:
        queries: Their passages together are the collection that is searched.
        encoder: A bi-encoder for the dense half and for recognising false negatives.
        count: Wrong passages wanted of each query; its own come first.
        notify: Receives progress.
    """
    texts = list(dict.fromkeys(text for query in queries for text in (*query.right, *query.wrong)))
    places = {text: place for place, text in enumerate(texts)}
    with tempfile.TemporaryDirectory(prefix="sonde-mining-") as folder:
        path = Path(folder) / "passages.sonde"
        documents = (Document(text, key=str(place)) for place, text in enumerate(texts))
        # What the index says of itself is of no interest here: it is gone when the passages are found.
        index_documents(
            documents, path, encoder=encoder, notify=lambda event: None if isinstance(event, str) else notify(event)
        )
        collection = StoredCollection.open(path, encoder=encoder)
        asked = [query.text for query in queries]
        found = [
            [
                [int(hit.id) for hit in hits]
                for hits in search_many(
                    collection, asked, SearchSettings(k=DEPTH, mode=mode, collapse=False), excerpts=False
                )
            ]
            for mode in ("dense", "lexical")
        ]
        collection.close()
    vectors, wanted = encoder.encode_texts(texts), encoder.encode_texts(asked, query=True)
    mined = []
    for number, query in enumerate(queries):
        right = np.array([places[text] for text in query.right])
        taken = {*right.tolist(), *(places[text] for text in query.wrong)}
        both = _interleaved(found[0][number], found[1][number])
        kept = [place for place in both if place not in taken and _wrong(place, right, vectors, wanted[number])]
        added = tuple(texts[place] for place in kept[: max(0, count - len(query.wrong))])
        mined.append(replace(query, wrong=(query.wrong + added)[:count]))
    return mined


def _interleaved(first: list[int], second: list[int]) -> list[int]:
    longest = max(len(first), len(second))
    pairs = (each for place in range(longest) for each in (first[place : place + 1], second[place : place + 1]))
    return list(dict.fromkeys(number for pair in pairs for number in pair))


def _wrong(place: int, right: np.ndarray, vectors: np.ndarray, query: np.ndarray) -> bool:
    if float((vectors[right] @ vectors[place]).max()) >= SAME:
        return False
    return float(vectors[place] @ query) <= BETTER * float((vectors[right] @ query).max())
