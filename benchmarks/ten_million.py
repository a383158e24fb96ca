"""Millions of passages on one machine, in shards: time, memory and disk to build, then queries, recall and memory.

    python benchmarks/ten_million.py FOLDER [--copies 20] [--shards 4]

The passages are those of ../shared/data/scale (500,000 sentences) several times over, each time with a fifth of the
words exchanged for others of the same texts. The static model embeds them. Recall@10 is that of the dense half of a
hybrid query against all stored vectors, for 30 queries. What is in FOLDER already is kept. It needs 2.5 GB for each
million of passages, and each stage runs in a process of its own.
"""

import argparse
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _side_by_side import DATA, machine

import sonde
from sonde.indexer.ann import exact_search
from sonde.pipelines.search.candidates import DenseSearch, ShardedDense
from sonde.pipelines.search.settings import DEPTH

QUERIES, CHECKED = 200, 30
EXCHANGED = 0.2
ROWS = 50_000


def main() -> None:
    """Run the stages and print what each says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--copies", type=int, default=20)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--stage", choices=("index", "query"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    source, collection = given.folder / "many.parquet", given.folder / "many.sonde"
    if given.stage == "index":
        index(source, collection, given.shards)
    elif given.stage == "query":
        query(collection)
    else:
        print(machine("sonde", "faiss-cpu", "tantivy"), flush=True)
        if not source.exists():
            make(source, given.copies)
        for stage in ["query"] if collection.exists() else ["index", "query"]:
            same = [str(given.folder), "--copies", str(given.copies), "--shards", str(given.shards)]
            subprocess.run([sys.executable, __file__, *same, "--stage", stage], check=True)


def make(source: Path, copies: int) -> None:
    """Write the passages; no row group holds more than 50,000, so that readers need little memory."""
    table = pq.read_table(DATA / "scale" / "arxiv_sentences.parquet", columns=["text", "category", "month"])
    chance = np.random.default_rng(0)
    with pq.ParquetWriter(source.with_suffix(".part"), schema()) as writer:
        for copy in range(copies):
            for start in range(0, table.num_rows, ROWS):
                part = table.slice(start, ROWS)
                texts = list(exchanged(part.column("text").to_pylist(), chance)) if copy else part.column("text")
                ids = [f"{copy}-{start + n}" for n in range(part.num_rows)]
                columns = [ids, texts, part.column("category"), part.column("month")]
                writer.write_table(pa.table(columns, schema=schema()))
    source.with_suffix(".part").rename(source)


def schema() -> pa.Schema:
    """Return the columns of the source."""
    return pa.schema([(name, pa.string()) for name in ("id", "text", "category", "month")])


def exchanged(texts: list[str], chance: np.random.Generator) -> Iterator[str]:
    """Yield texts in which a fifth of the words come from other places of the same texts."""
    words = [text.split() for text in texts]
    every = np.array([word for text in words for word in text], dtype=object)
    swapped, others = chance.random(len(every)) < EXCHANGED, every[chance.permutation(len(every))]
    found, start = np.where(swapped, others, every), 0
    for text in words:
        yield " ".join(found[start : start + len(text)])
        start += len(text)


def index(source: Path, collection: Path, shards: int) -> None:
    """Index, and print seconds, memory and disk."""
    began = time.perf_counter()
    made = sonde.index(source, collection, model="static", shards=shards, progress=tell)
    took = time.perf_counter() - began
    own, readers = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu = sum(part.ru_utime + part.ru_stime for part in (own, readers))
    disk = sum(path.stat().st_size for path in collection.rglob("*") if path.is_file())
    print(
        f"{len(made):,} documents: {took:,.0f} s by the clock ({len(made) / took:,.0f} a second), {cpu:,.0f} CPU s, "
        f"peak {own.ru_maxrss / 1e3:,.0f} MB, {disk / 1e9:.1f} GB on disk",
        flush=True,
    )


def tell(event: object) -> None:
    """Print sentences, not progress."""
    if isinstance(event, str):
        print(f"  {event}", flush=True)


def query(collection: Path) -> None:
    """Search, and print milliseconds, recall and memory."""
    opened = sonde.open(collection)
    questions = nine_words()
    for question in questions[:20]:
        opened.search(question)
    taken = []
    for question in questions:
        began = time.perf_counter()
        opened.search(question)
        taken.append(1_000 * (time.perf_counter() - began))
    median, slow = np.percentile(taken, [50, 95])
    held = {name: int(value) / 1e3 for name, value in memory()}
    print(
        f"hybrid query with its encoding: median {median:.1f} ms, 95th percentile {slow:.1f} ms; resident "
        f"{held['VmRSS']:,.0f} MB, of which {held['RssAnon']:,.0f} not backed by files",
        flush=True,
    )
    print(f"recall@10 {recall(opened, questions[:CHECKED]):.4f} over {CHECKED} queries")


def nine_words() -> list[str]:
    """Return the beginnings of sentences, from anywhere in the set."""
    texts = pq.read_table(DATA / "scale" / "arxiv_sentences.parquet", columns=["text"]).column("text").to_pylist()
    chosen = np.random.default_rng(1).choice(len(texts), QUERIES, replace=False)
    return [" ".join(texts[place].split()[:9]) for place in chosen.tolist()]


def memory() -> Iterator[tuple[str, str]]:
    """Yield the lines of Linux's account of this process that tell of memory, in kB."""
    yield from re.findall(r"(Vm\w+|Rss\w+):\s+(\d+)", Path("/proc/self/status").read_text())


def recall(opened: sonde.Collection, questions: list[str]) -> float:
    """Return the share of the ten nearest passages, of all that are stored, that the dense half finds."""
    vectors = opened.stored.encoder.encode_texts(questions, query=True)
    with opened.stored.view() as view:
        dense = (ShardedDense.over if view.parts else DenseSearch)(view, None, None)
        found = [set(each.rows[:10].tolist()) for each in dense.search(vectors, DEPTH)]
        exact = exact_search(view.generation.segments, vectors, 10)[1]
    return float(np.mean([len(near & set(row)) / 10 for near, row in zip(found, exact.tolist(), strict=True)]))


if __name__ == "__main__":
    main()
