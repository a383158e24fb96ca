"""Proves that a reorganisation of the code changes no result: keeps what a version answers, and compares two versions.

    python benchmarks/same_answers.py keep FOLDER [--sonde PATH/TO/sonde] [--data ../shared/data]
    python benchmarks/same_answers.py compare BEFORE AFTER

`keep` runs the commands of same_answers.txt with one installed version, over real data, and writes what each answers
into FOLDER. Scores keep every digit; of vectors a digest is kept; times, dates, versions of libraries and sizes on disk
are left out. `compare` prints a line for each file, and ends with exit code 1 if one differs. Keep both versions on the
same machine, with the same number of cores: others round otherwise.

Each command is a process of its own. It is forked from one that has loaded torch and other libraries, but nothing of
Sonde: a process that begins from nothing takes seven seconds to load them.
"""

import argparse
import contextlib
import importlib
import json
import multiprocessing
import os
import re
import runpy
import shlex
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from time import perf_counter
from typing import Any

from _same_answers import fill, look, write_inputs
from _side_by_side import DATA

PLAN = Path(__file__).with_suffix(".txt")
LIBRARIES = (
    *("torch", "sentence_transformers", "faiss", "sklearn.cluster", "sklearn.linear_model", "pyarrow.parquet"),
    *("umap", "hdbscan", "bertopic", "ir_measures", "datasets", "peft"),
)
"""What Sonde uses and what is slow to load."""
LEFT_OUT = re.compile(r".*seconds?|created|versions|latency_ms|bytes|memory|others|date|at")
IN_WORDS = re.compile(r"[\d.,]+ (ms|s|kB|MB|GB)\b")


def main() -> int:
    """Keep, or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    keeping, comparing = verbs.add_parser("keep"), verbs.add_parser("compare")
    keeping.add_argument("folder", type=Path)
    keeping.add_argument("--sonde", type=Path, default=Path(sys.executable).with_name("sonde"))
    keeping.add_argument("--data", type=Path, default=DATA)
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.verb == "compare":
        return compare(given.before, given.after)
    python = given.sonde.absolute().with_name("python")
    if python != Path(sys.executable):
        os.execv(python, [str(python), *sys.argv])
    return keep(given.folder.absolute(), given.sonde.absolute(), given.data.resolve())


def keep(folder: Path, sonde: Path, data: Path) -> int:
    """Run every command of the plan in a folder of its own, and write what it answers into `folder`."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="same-answers-") as work, contextlib.chdir(work):
        os.environ |= {"SONDE_CACHE": f"{work}/cache", "HF_HUB_OFFLINE": "1"}
        write_inputs(data)
        for name in LIBRARIES:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        for name, words in plan():
            began = perf_counter()
            child = multiprocessing.get_context("fork").Process(target=act, args=(words, sonde))
            child.start()
            child.join()
            print(f"{perf_counter() - began:6.1f} s  {name}", file=sys.stderr)
            if bool(child.exitcode) != name.startswith("refused-"):
                sys.exit(f"{name} ended with exit code {child.exitcode}: {Path('said').read_text('utf-8')}")
            printed = Path("printed").read_text("utf-8") or f"nothing printed, exit code {child.exitcode}\n"
            (folder / f"{name}.txt").write_text(tidy(printed.replace(work, ".")), "utf-8")
            for path in Path("out").iterdir():
                (folder / path.name).write_text(tidy(as_text(path)), "utf-8")
                path.unlink()
    return 0


def plan() -> Iterator[tuple[str, list[str]]]:
    """Yield each command's name and its words."""
    for line in PLAN.read_text("utf-8").replace("\n ", " ").splitlines():
        if name_and_words := shlex.split(line, comments=True):
            yield name_and_words[0], name_and_words[1:]


def act(words: list[str], sonde: Path) -> None:
    """Be the process of a command, with what it prints and says in files."""
    for stream, path in ((1, "printed"), (2, "said")):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    if words[0] == "python":
        {"fill": fill, "look": look}[words[1]]()
    else:
        sys.argv = [str(sonde), *words]
        runpy.run_path(str(sonde), run_name="__main__")


def tidy(text: str) -> str:
    """Return text without what differs between two runs."""
    return "\n".join(
        json.dumps(lasting(json.loads(line)), ensure_ascii=False) if line[:1] == "{" else IN_WORDS.sub("…", line)
        for line in text.split("\n")
    )


def lasting(value: Any) -> Any:
    """Return JSON values without times and the like, vectors as digests."""
    if isinstance(value, dict):
        return {name: lasting(each) for name, each in value.items() if not LEFT_OUT.fullmatch(name)}
    if isinstance(value, list):
        numbers = len(value) > 100 and all(isinstance(each, float) for each in value)
        return sha256(json.dumps(value).encode()).hexdigest() if numbers else [lasting(each) for each in value]
    return value


def as_text(path: Path) -> str:
    """Return a file's text; that of a Parquet file is its schema, and a JSON line for each row."""
    if path.suffix != ".parquet":
        return path.read_text("utf-8")
    from pyarrow import parquet

    found = parquet.read_table(path)
    rows = (json.dumps(row, default=str, ensure_ascii=False) for row in found.to_pylist())
    return "\n".join([str(found.schema.remove_metadata()), *rows]) + "\n"


def compare(before: Path, after: Path) -> int:
    """Print a line for each file of the two folders; return 1 if one differs, or is in one folder only."""
    names = sorted({path.name for folder in (before, after) for path in folder.iterdir()})
    different = 0
    for name in names:
        paths = (before / name, after / name)
        one, two = (path.read_text("utf-8") if path.exists() else "no such file" for path in paths)
        print(f"{'equal' if one == two else 'DIFFERENT':<10} {name}")
        if one != two:
            different += 1
            print(first_difference(one.split("\n"), two.split("\n")))
    print(f"{different} of {len(names)} files differ")
    return int(different > 0 or not names)


def first_difference(before: list[str], after: list[str]) -> str:
    """Return the first line that differs, from a little before its first difference on."""
    lines = zip_longest(before, after, fillvalue="no such line")
    number, old, new = next((number, old, new) for number, (old, new) in enumerate(lines, 1) if old != new)
    place = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    shown = slice(max(0, place - 60), place + 100)
    return f"  line {number}, character {place + 1}\n  - {old[shown]}\n  + {new[shown]}"


if __name__ == "__main__":
    sys.exit(main())
