"""Judged sets for measuring search: texts, queries and the right documents, and collections made of them once."""

import csv
import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _side_by_side import DATA

import sonde
from sonde.pipelines.evaluate.trec import read_qrels, read_queries

DOCUMENTS, QUERIES = 6_000, 500
"""At most this many of each are sampled from a set, so that a run takes minutes."""


@dataclass(frozen=True, slots=True)
class JudgedSet:
    """Rows to index, and queries with the ids of the right documents.

    Attributes:
        rows: id, title and text of each document.
        queries: The queries' texts.
        truth: For each query, the right documents' ids with their grades.
        measure: "nDCG@10", or "P@5" for sets where every document of the query's class is right.
        classes: The class of each query; empty for sets without classes.
    """

    rows: list[dict[str, str]]
    queries: list[str]
    truth: list[dict[str, int]]
    measure: str
    classes: tuple[str, ...] = ()


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt") as file:
        yield from map(json.loads, file)


def _some(rows: list[Any], most: int, seed: int = 0) -> list[Any]:
    places = np.random.default_rng(seed).permutation(len(rows))[:most]
    return [rows[place] for place in sorted(places.tolist())]


def beir(name: str) -> JudgedSet:
    """Return a set of the Glasgow collections; queries without a judgement are left out."""
    folder = DATA / "retrieval" / name
    rows = [
        {"id": row["_id"], "title": row["title"], "text": row["text"]} for row in _lines(folder / "corpus.jsonl.gz")
    ]
    qrels = read_qrels(folder / "qrels.tsv")
    asked = [(text, qrels[key]) for key, text in read_queries(folder / "queries.jsonl.gz") if key in qrels]
    return JudgedSet(rows, [text for text, _ in asked], [truth for _, truth in asked], "nDCG@10")


def squad() -> JudgedSet:
    """Return passages of SQuAD with their questions."""
    found = list(_lines(DATA / "qa" / "squad_dev.jsonl.gz"))
    rows = [{"id": str(place), "title": "", "text": row["passage"]} for place, row in enumerate(found)]
    asked = [(q["question"], {str(place): 1}) for place, row in enumerate(found) for q in row["questions"]]
    asked = _some(asked, QUERIES)
    return JudgedSet(rows, [text for text, _ in asked], [truth for _, truth in asked], "nDCG@10")


def squad_titles() -> JudgedSet:
    """Return passages of SQuAD; the titles of their articles ask for them."""
    found = list(_lines(DATA / "qa" / "squad_dev.jsonl.gz"))
    rows = [{"id": str(place), "title": "", "text": row["passage"]} for place, row in enumerate(found)]
    truth: dict[str, dict[str, int]] = defaultdict(dict)
    for place, row in enumerate(found):
        truth[row["article"].replace("_", " ")][str(place)] = 1
    return JudgedSet(rows, list(truth), list(truth.values()), "nDCG@10")


def medquad() -> JudgedSet:
    """Return medical answers with their questions."""
    found = _some(list(_lines(DATA / "qa" / "medquad.jsonl.gz")), 3_000)
    rows, truth = [], defaultdict(dict)
    for place, row in enumerate(found):
        rows.append({"id": str(place), "title": "", "text": row["answer"]})
        truth[row["question"]][str(place)] = 1
    asked = _some(list(truth.items()), QUERIES)
    return JudgedSet(rows, [text for text, _ in asked], [truth for _, truth in asked], "nDCG@10")


def arxiv_titles() -> JudgedSet:
    """Return abstracts of papers, without their titles, which ask for them."""
    import pyarrow.parquet as parquet

    table = parquet.read_table(DATA / "titles" / "arxiv_cs.parquet", columns=["title", "abstract"]).to_pylist()
    found = _some(table, 3_000)
    rows = [{"id": str(place), "title": "", "text": row["abstract"]} for place, row in enumerate(found)]
    asked = _some([(row["title"], {str(place): 1}) for place, row in enumerate(found)], QUERIES)
    return JudgedSet(rows, [text for text, _ in asked], [truth for _, truth in asked], "nDCG@10")


def of_classes(kept: list[tuple[str, str, str]], asked: list[tuple[str, str]]) -> JudgedSet:
    """Return a set from (title, text, class) and queries (text, class): right is what has the query's class."""
    kept, asked = _some(kept, DOCUMENTS), _some(asked, QUERIES)
    by_class: dict[str, dict[str, int]] = defaultdict(dict)
    for place, (_, _, label) in enumerate(kept):
        by_class[label][str(place)] = 1
    rows = [{"id": str(place), "title": title, "text": text} for place, (title, text, _) in enumerate(kept)]
    queries, classes = [text for text, _ in asked], tuple(label for _, label in asked)
    return JudgedSet(rows, queries, [by_class[label] for label in classes], "P@5", classes)


def banking77() -> JudgedSet:
    """Return questions of a bank's customers; right is what has the same intent."""
    parts = []
    for part in ("train", "test"):
        with (DATA / "topics" / f"banking77_{part}.csv").open(newline="") as file:
            parts.append([(row["text"], row["category"]) for row in csv.DictReader(file)])
    return of_classes([("", *row) for row in parts[0]], parts[1])


def _split(rows: list[tuple[str, str]], every: int = 10) -> JudgedSet:
    """Return a set of texts of which each tenth is asked."""
    shuffled = _some(rows, len(rows)) if every else rows
    asked = [row for place, row in enumerate(shuffled) if place % every == 0]
    return of_classes([("", *row) for place, row in enumerate(shuffled) if place % every], asked)


def stackoverflow() -> JudgedSet:
    """Return titles of questions on programming; right is what has the same tag."""
    return _split([(row["text"], row["label"]) for row in _lines(DATA / "topics" / "stackoverflow.jsonl.gz")])


def trec6() -> JudgedSet:
    """Return questions by the kind of answer that they want (fine classes)."""
    found = [
        (row["split"], row["text"], f"{row['coarse']}:{row['fine']}")
        for row in _lines(DATA / "topics" / "trec6.jsonl.gz")
    ]
    kept = [("", text, label) for split, text, label in found if split == "train"]
    return of_classes(kept, [(text, label) for split, text, label in found if split != "train"])


def trec6_coarse() -> JudgedSet:
    """Return the same by its six coarse classes."""
    found = [(row["split"], row["text"], row["coarse"]) for row in _lines(DATA / "topics" / "trec6.jsonl.gz")]
    kept = [("", text, label) for split, text, label in found if split == "train"]
    return of_classes(kept, [(text, label) for split, text, label in found if split != "train"])


def bbc() -> JudgedSet:
    """Return news; the titles of every fifth article ask for articles of its class."""
    found = [(row["title"], row["text"], row["label"]) for row in _lines(DATA / "topics" / "bbc.jsonl.gz")]
    asked = [(title, label) for title, _, label in found[::5]]
    return of_classes([row for place, row in enumerate(found) if place % 5], asked)


def opentrivia() -> JudgedSet:
    """Return trivia questions by category."""
    return _split([(row["question"], row["category"]) for row in _lines(DATA / "topics" / "opentrivia.jsonl.gz")])


SETS: dict[str, Callable[[], JudgedSet]] = {
    "cisi": lambda: beir("cisi"), "cacm": lambda: beir("cacm"), "lisa": lambda: beir("lisa"),
    "squad": squad, "squad_titles": squad_titles, "medquad": medquad, "arxiv_titles": arxiv_titles,
    "banking77": banking77, "stackoverflow": stackoverflow, "trec6": trec6, "trec6_coarse": trec6_coarse, "bbc": bbc,
    "opentrivia": opentrivia,
}  # fmt: skip


SAME_ROWS = {"squad_titles": "squad", "trec6_coarse": "trec6"}
"""Sets with the documents of another one."""


def collection_of(
    name: str, folder: Path, model: str = "all-MiniLM-L6-v2", rows: list[dict[str, str]] | None = None
) -> sonde.Collection:
    """Return the collection of a set, made in `folder` unless it is there already."""
    path = folder / f"{SAME_ROWS.get(name, name)}-{model}.sonde"
    if not path.exists():
        given = SETS[name]().rows if rows is None else rows
        sonde.index(given, path, settings=sonde.BuildSettings(model=model, language="en"))
    return sonde.open(path)
