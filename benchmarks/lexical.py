"""Sonde's lexical index against raw Tantivy and SQLite FTS5: the same texts, the same queries, one after the other.

    python benchmarks/lexical.py --rows 500000

Raw Tantivy analyses in its own threads and knows neither languages, titles, nor an order of ties. FTS5 has another
stemmer (Porter) and another inverse document frequency, so its ten best are compared but need not agree. None of the
three searches for stop words.
"""

import argparse
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import tantivy
from _side_by_side import DATA, beside, machine, times_as_fast

from sonde.indexer.lexical import LexicalEntry, LexicalIndex

K = 10
Search = Callable[[str], tuple[list[float], list[int]]]


@dataclass
class Result:
    """What one engine took, and its best rows with their scores per query."""

    name: str
    build_seconds: float
    milliseconds: list[list[float]] = field(default_factory=list)
    """Of every query, a list for each run."""
    scores: list[list[float]] = field(default_factory=list)
    rows: list[list[int]] = field(default_factory=list)


@contextmanager
def sonde(texts: list[str], folder: Path) -> Iterator[Search]:
    """Sonde's index, as an indexing run would write it."""
    index = LexicalIndex.create(folder)
    with index.writer() as writer:
        writer.add(LexicalEntry(row, "", text, "en") for row, text in enumerate(texts))
        writer.commit(len(texts))

    def search(query: str) -> tuple[list[float], list[int]]:
        scores, rows = index.search(query, K)
        return scores.tolist(), rows.tolist()

    yield search


def words_of(stop_words: bool, stems: bool) -> tantivy.TextAnalyzer:
    """The filters of Tantivy's own English analyzer, and ASCII folding."""
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.remove_long(100))
    builder = builder.filter(tantivy.Filter.lowercase())
    builder = builder if stop_words else builder.filter(tantivy.Filter.stopword("english"))
    builder = builder.filter(tantivy.Filter.stemmer("english")) if stems else builder
    return builder.filter(tantivy.Filter.ascii_fold()).build()


@contextmanager
def raw_tantivy(texts: list[str], folder: Path) -> Iterator[Search]:
    """Tantivy, on all its threads."""
    builder = tantivy.SchemaBuilder().add_unsigned_field("row", fast=True)
    schema = builder.add_text_field("text", tokenizer_name="folded", index_option="freq").build()
    folder.mkdir()
    index = tantivy.Index(schema, str(folder))
    index.register_tokenizer("folded", words_of(stop_words=True, stems=True))
    writer = index.writer(128_000_000)
    for row, text in enumerate(texts):
        writer.add_document(tantivy.Document.from_dict({"row": row, "text": text}, schema))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher, analyzer = index.searcher(), words_of(stop_words=False, stems=True)

    def search(query: str) -> tuple[list[float], list[int]]:
        clauses = [
            (tantivy.Occur.Should, tantivy.Query.term_query(schema, "text", term, index_option="freq"))
            for term in analyzer.analyze(query)
        ]
        hits = searcher.search(tantivy.Query.boolean_query(clauses), K, count=False).hits
        rows = searcher.fast_field_values("row", [address for _, address in hits])
        return [score for score, _ in hits], [int(row or 0) for row in rows]

    yield search


@contextmanager
def sqlite_fts5(texts: list[str], folder: Path) -> Iterator[Search]:
    """SQLite's FTS5 with Porter stems over Unicode words."""
    connection = sqlite3.connect(folder)
    connection.execute("CREATE VIRTUAL TABLE passages USING fts5(text, content='', tokenize='porter unicode61')")
    with connection:
        connection.executemany("INSERT INTO passages(rowid, text) VALUES (?, ?)", enumerate(texts))
    analyzer = words_of(stop_words=False, stems=False)

    def search(query: str) -> tuple[list[float], list[int]]:
        words = " OR ".join(f'"{word}"' for word in analyzer.analyze(query))
        sql = "SELECT -rank, rowid FROM passages WHERE passages MATCH ? ORDER BY rank LIMIT ?"
        found = connection.execute(sql, (words, K)).fetchall()
        return [score for score, _ in found], [row for _, row in found]

    yield search
    connection.close()


ENGINES = {"Sonde": sonde, "raw Tantivy": raw_tantivy, "SQLite FTS5": sqlite_fts5}


def sample_queries(texts: list[str], count: int) -> list[str]:
    """Up to nine words in a row out of real texts, always the same."""
    rng = np.random.default_rng(0)
    queries = []
    for place in rng.integers(0, len(texts), count):
        words = texts[place].split()
        start = int(rng.integers(0, max(1, len(words) - 3)))
        queries.append(" ".join(dict.fromkeys(words[start : start + int(rng.integers(4, 10))])))
    return queries


def measure(texts: list[str], queries: list[str], runs: int) -> list[Result]:
    """Build every engine's index, then ask all of them all queries, in turn and several times."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        results, searches = [], []
        for name, engine in ENGINES.items():
            began = time.perf_counter()
            searches.append(stack.enter_context(engine(texts, folder / name)))
            results.append(Result(name, time.perf_counter() - began))
            print(f"{name}: built in {results[-1].build_seconds:.1f} s", file=sys.stderr)
        for _ in range(runs):
            for result, search in zip(results, searches, strict=True):
                ask(result, search, queries)
        return results


def ask(result: Result, search: Search, queries: list[str]) -> None:
    """Warm one engine up and time every query."""
    for query in queries[:20]:
        search(query)
    result.scores, result.rows, taken = [], [], []
    for query in queries:
        began = time.perf_counter()
        scores, rows = search(query)
        taken.append((time.perf_counter() - began) * 1e3)
        result.scores.append(scores)
        result.rows.append(rows)
    result.milliseconds.append(taken)


def agreement(one: Result, other: Result) -> str:
    """The share of queries with the same best scores, and the mean overlap of the best rows."""
    pairs = zip(one.scores, other.scores, strict=True)
    same = sum(len(a) == len(b) and bool(np.allclose(a, b, rtol=1e-4)) for a, b in pairs) / len(one.scores)
    shares = [len({*a} & {*b}) / max(1, len(b)) for a, b in zip(one.rows, other.rows, strict=True)]
    return f"{same:.1%} | {statistics.mean(shares):.1%}"


def main() -> None:
    """Measure the three and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000, help="how many texts")
    parser.add_argument("--queries", type=int, default=200, help="how many queries")
    parser.add_argument("--runs", type=int, default=5, help="how often all of them are asked")
    parser.add_argument(
        "--data", type=Path, default=DATA / "scale/arxiv_sentences.parquet", help="a Parquet file with a column `text`"
    )
    arguments = parser.parse_args()
    texts = pq.read_table(arguments.data, columns=["text"])["text"].slice(0, arguments.rows).to_pylist()
    queries = sample_queries(texts, arguments.queries)
    results = measure(texts, queries, arguments.runs)
    where = f"{machine('tantivy')}, SQLite {sqlite3.sqlite_version}"
    print(f"{len(texts):,} texts, {len(queries)} queries, the {K} best; {where}\n")
    print("| engine | build, s | query, median ms | 95th percentile, ms | scores as Sonde's | rows as Sonde's |")
    print("|---|---|---|---|---|---|")
    for result in results:
        median, high = np.percentile(result.milliseconds, [50, 95])
        speed = f"{result.build_seconds:.1f} | {median:.2f} | {high:.2f}"
        print(f"| {result.name} | {speed} | {agreement(result, results[0])} |")
    ours, *peers = results
    for peer in peers:
        runs = zip(ours.milliseconds, peer.milliseconds, strict=True)
        faster = times_as_fast([(statistics.median(one), statistics.median(other)) for one, other in runs])
        scores, rows = agreement(peer, ours).split(" | ")
        beside("search by words", peer.name, faster, f"same scores for {scores} of queries, {rows} of rows in common")


if __name__ == "__main__":
    main()
