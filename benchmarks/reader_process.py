"""What reading a file in a process of its own costs: an index run with the static model, with and without it.

    python benchmarks/reader_process.py [--rows 15000] [--runs 5]

The runs take turns. The rows are those of 20 Newsgroups, as JSONL and as CSV. CPU seconds include the reader process's.
"""

import argparse
import csv
import gzip
import json
import os
import shutil
import tempfile
from pathlib import Path

from _side_by_side import DATA, in_turn, machine, seconds, spread

import sonde
from sonde.indexer.readers import read
from sonde.indexer.readers.bytestream import ByteStream
from sonde.indexer.readers.child_table import ChildTable
from sonde.indexer.readers.formats import table_source
from sonde.indexer.readers.source import ReadOptions, Source


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=15_000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    encoder = sonde.load_encoder("static")
    print(machine("pyarrow"), f"load {os.getloadavg()[0]:.1f}")
    for path in written(folder, arguments.rows):
        cpu: dict[bool, list[float]] = {True: [], False: []}

        def run(process: bool, path: Path = path, cpu: dict[bool, list[float]] = cpu) -> float:
            shutil.rmtree(folder / "c.sonde", ignore_errors=True)
            read.ChildTable = ChildTable if process else here  # type: ignore[assignment]
            before = sum(os.times()[:4])
            took = seconds(lambda: sonde.index(path, folder / "c.sonde", encoder=encoder))
            cpu[process].append(sum(os.times()[:4]) - before)
            return took

        run(False)
        cpu[False].clear()
        pairs = in_turn(arguments.runs, lambda: run(True), lambda: run(False))
        print(f"{path.name}, {path.stat().st_size / 1e6:.1f} MB, {arguments.runs} runs in turn, seconds:")
        print(f"  with a process {spread([ours for ours, _ in pairs])}, without {spread([peer for _, peer in pairs])}")
        print(f"  with / without {spread([ours / peer for ours, peer in pairs])}")
        print(f"  CPU: with a process {spread(cpu[True])}, without {spread(cpu[False])}", flush=True)
    shutil.rmtree(folder)


def here(name: str, path: Path | None, options: ReadOptions) -> Source:
    """The source that reads in this process."""
    return table_source(ByteStream(name, path), options)


def written(folder: Path, rows: int) -> list[Path]:
    """The corpus as files."""
    with gzip.open(DATA / "topics" / "newsgroups20.jsonl.gz", "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line, _ in zip(lines, range(rows), strict=False)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(found[0]))
        writer.writeheader()
        writer.writerows(found)
    return [folder / "rows.jsonl", folder / "rows.csv"]


if __name__ == "__main__":
    main()
