"""Runs every command over collections of odd texts: a single one, equal ones, only digits, one word, no words at all.

    python benchmarks/odd_collections.py [--only numbers one-word]

Whatever a command says, it must end with exit code 0, 1 or 2, and print no traceback and no warning of a library. The
later commands find what the earlier ones left: fewer documents, another model, none at all.
"""

import argparse
import csv
import io
import json
import os
import random
import shlex
import sys
import tempfile
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

# The threads of OpenMP do not survive a fork. Numba's own do, and with them `topics` once aborted the process.
os.environ |= {"OMP_NUM_THREADS": "1", "NUMBA_THREADING_LAYER": "workqueue"}

from sonde.app.cli.main import main as sonde

WORDS = ("card", "payment", "refund", "parcel", "late", "money", "bank", "account", "password", "phone", "crash")
COMMANDS = """
search {c} refund
search {c} refund --mode lexical --explain
search {c} refund --where "kind = 'a'" --json
ask {c} "where is my refund?"
similar {c} d0
similar {c} --text "my parcel"
cluster {c}
cluster {c} -k 2 --name two
cluster {c} -k 500 --name many
cluster {c} --method density --name dense
topics {c}
topics {c} --name few --reduce-to 2
topics {c} --seed-words "refund,money;parcel" --name guided
map {c}
label {c} --labels refund,parcel
label {c} --labels refund,parcel --none --name none
tag {c} mine d0
duplicates {c}
compare {c} --where "kind = 'a'" --where "kind = 'b'"
compare {c} --cluster 0 --cluster 1
compare {c} --run kmeans --run two
compare {c} --query refund --query parcel -k 4
check {c}
check {c} --label kind
watch {c} --since 2024-03-01
runs list {c}
runs show {c} kmeans
runs show {c} kmeans 0
runs show {c} topics
runs show {c} labels
runs draw {c} kmeans --to {d}/kmeans.html
runs draw {c} topics --to {d}/topics.html
runs draw {c} map --to {d}/map.html
runs draw {c} topics --by day --period month --to {d}/months.html
runs draw {c} kmeans --by kind --to {d}/kinds.html
runs update {c} kmeans
runs update {c} topics
runs merge {c} topics 0 1
runs split {c} topics 0
taxonomy {c} --from topics
taxonomy add {c} Other
taxonomy move {c} --id d0 --to Other
taxonomy rename {c} 1 first
taxonomy split {c} 1 -k 2
taxonomy merge {c} 1 2
taxonomy update {c}
taxonomy refit {c}
taxonomy undo {c}
taxonomy export {c} --to {d}/taxonomy.json
export {c} --to {d}/all.csv
export {c} --to {d}/all.xlsx
export {c} --to {d}/all.parquet --vectors
get {c} d0
count {c} --by kind
count {c} --by day --period month
judge {c} refund d0
evaluate search {c}
evaluate clusters {c}
evaluate clusters {c} --run kmeans --truth kind
tune {c} --dry-run
late {c}
search {c} refund --rerank --rerank-model late
info {c}
verify {c}
compact {c}
repair {c}
model {c} --to static
search {c} refund
topics {c} --name of-static
map {c} --name of-static
delete {c} d0
delete {c} --where "kind = 'a'" --yes
search {c} refund
topics {c} --name fewer
map {c} --name fewer
verify {c}
delete {c} --where "kind = 'b'" --yes
search {c} refund
cluster {c} --name empty
topics {c} --name empty
map {c} --name empty
label {c} --labels a,b --name empty
duplicates {c}
count {c} --by kind
verify {c}
""".strip().splitlines()


def collections() -> dict[str, list[str]]:
    """Return the texts of each collection."""
    draw = random.Random(1)
    some = [" ".join(draw.choices(WORDS, k=6)) for _ in range(25)]
    return {
        "one": ["a single text about refunds"],
        "two": ["a text about refunds", "a text about parcels"],
        "three": ["refund", "parcel", "card"],
        "equal": ["exactly the same text"] * 30,
        "numbers": [f"{number * 7919}" for number in range(40)],
        "one-word": [f"refund {number}" for number in range(40)],
        "signs": ["!!! ???", "...", "---", "***"] * 8 + ["£$%"],
        "stop-words": ["the and of it", "is it the one", "of and the"] * 12,
        "chinese": ["我的卡丢了", "包裹没有到", "密码忘记了", "退款什么时候到"] * 10,
        "emoji": ["😀😀", "😢 😡", "👍👍👍", "❤️"] * 9,
        "long": [" ".join(draw.choices(WORDS, k=3000)) for _ in range(6)],
        "seven": some[:7],
        "few": some,
        "markup": ["<script>alert(1)</script>", "<b>bold</b> `code` $x$", "[x](javascript:1)"] * 11,
    }


def main() -> None:
    """Run all commands over all collections, and print what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[])
    only = parser.parse_args().only
    tries = wrong = 0
    for name, texts in collections().items():
        if not only or name in only:
            with tempfile.TemporaryDirectory() as folder:
                found = faults(Path(folder), name, texts)
            tries, wrong = tries + len(COMMANDS) + 1, wrong + len(found)
            print(f"{name}: {len(COMMANDS) + 1} commands, {len(found)} wrong", *found, sep="\n  ", flush=True)
    print(f"{tries:,} tries, {wrong} wrong")
    sys.exit(bool(wrong))


def faults(folder: Path, name: str, texts: list[str]) -> list[str]:
    """Return the commands that went wrong over a collection of these texts, with their last line."""
    source, collection = folder / "texts.csv", folder / f"{name}.sonde"
    with source.open("w", newline="") as file:
        rows = [[f"d{n}", text, "ab"[n % 2], f"2024-0{1 + n % 9}-01"] for n, text in enumerate(texts)]
        csv.writer(file).writerows([["id", "text", "kind", "day"], *rows])
    found = []
    for command in (f"index {source} --to {{c}}", *COMMANDS):
        code, said = ran(shlex.split(command.format(c=collection, d=folder)))
        if code not in (0, 1, 2) or "Traceback" in said or "Warning" in said:
            found.append(f"{command} ({code}): {said.strip().splitlines()[-1:]}")
    return found


def ran(words: list[str]) -> tuple[int, str]:
    """Run a command in a child, which has every library already; return its exit code and what it printed."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        with os.fdopen(writing, "w") as stream:
            json.dump(_in_child(words), stream)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        said = stream.read()
    os.waitpid(child, 0)
    return tuple(json.loads(said)) if said else (98, "the process was aborted")


def _in_child(words: list[str]) -> tuple[int, str]:
    said = io.StringIO()
    sys.argv, code = ["sonde", *words], 0
    with redirect_stdout(said), redirect_stderr(said):
        try:
            sonde()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except BaseException:
            code = 99
            said.write(traceback.format_exc())
    return code, said.getvalue()


if __name__ == "__main__":
    main()
