"""`sonde index` beside txtai's hybrid index: the same file, the same model, until everything is saved.

    python benchmarks/index_end_to_end.py [--documents 1000] [--runs 3]
    python benchmarks/index_end_to_end.py --documents 2000 --dtype auto     as a user runs it, on a long file

With `--dtype auto`, Sonde loads the model in each run, and chooses the precision by trial. Both embed with
all-MiniLM-L6-v2, build a lexical and a vector index, store the texts, and save. The answers are checked to be about
the same: the share of common documents in both top tens of a dense search. Needs: pip install txtai
"""

import argparse
import gzip
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from _side_by_side import DATA, beside, in_turn, machine, seconds, spread, times_as_fast
from txtai import Embeddings  # pyright: ignore[reportMissingImports]  # `make bench` installs it

import sonde
from sonde.indexer.encoder.models import locate

QUERIES = ("stock market falls", "football match result", "new mobile phone", "election campaign", "film award winners")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--dtype", default="float32", choices=("float32", "auto"), help="of Sonde; txtai has float32")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    corpus = subset(folder / "corpus.jsonl", arguments.documents)
    model = str(locate("all-MiniLM-L6-v2", print).folder)
    encoder = sonde.load_encoder() if arguments.dtype == "float32" else None
    peer = Embeddings({"path": model, "hybrid": True, "content": True, "gpu": False})

    def run_sonde() -> float:
        shutil.rmtree(folder / "ours.sonde", ignore_errors=True)
        return seconds(lambda: sonde.index(corpus, folder / "ours.sonde", encoder=encoder))

    def run_txtai() -> float:
        def work() -> None:
            peer.index(documents(corpus))
            peer.save(str(folder / "theirs"))

        return seconds(work)

    pairs = in_turn(arguments.runs, run_sonde, run_txtai)
    print(machine("sonde", "txtai", "sentence-transformers", "torch"))
    print(
        f"{arguments.documents:,} documents; seconds (Sonde, txtai): {[(round(a, 1), round(b, 1)) for a, b in pairs]}"
    )
    print(f"Sonde is {spread(times_as_fast(pairs))} x as fast")
    outputs = f"share of the dense top 10 in common {agreement(folder, peer):.2f}"
    beside("index texts for hybrid search", "txtai", times_as_fast(pairs), outputs)
    shutil.rmtree(folder)


def subset(path: Path, count: int) -> Path:
    """The first texts of the BBC set as JSONL, short enough for one passage each, since txtai cuts off longer ones."""
    with gzip.open(DATA / "topics" / "bbc.jsonl.gz", "rt", encoding="utf-8") as lines, path.open("w") as out:
        for number, line in zip(range(count), lines, strict=False):
            row = json.loads(line)
            out.write(json.dumps({"id": str(number), "text": f"{row['title']}\n{row['text']}"[:700]}) + "\n")
    return path


def documents(path: Path) -> list[tuple[str, str, None]]:
    """The same file as txtai takes it."""
    rows = [json.loads(line) for line in path.open()]
    return [(row["id"], row["text"], None) for row in rows]


def agreement(folder: Path, peer: Embeddings) -> float:
    """The mean share of documents that both dense top tens have in common."""
    ours = sonde.open(folder / "ours.sonde")
    shares = []
    for query in QUERIES:
        mine = {hit.id for hit in ours.search(query, k=10, mode="dense")}
        asked = "select id from txtai where similar(:q)"
        theirs: Any = peer.search(asked, 10, weights=1.0, parameters={"q": query})
        shares.append(len(mine & {row["id"] for row in theirs}) / 10)
    return sum(shares) / len(shares)


if __name__ == "__main__":
    main()
