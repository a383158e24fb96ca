"""Runs every script and writes one page: Sonde beside its peers, then all figures, the machine, the versions.

A script that compares Sonde with a peer says so in lines of its own (`_side_by_side.beside`) and is run several times;
the others are run once. A line of a script's output is a figure if it says the same words in each run; of its numbers
the table has the median, with the least and the greatest where they differ. A script that fails stands in the table
with its last words.

    python benchmarks/report.py --runs 5 --to build/benchmarks.md
    python benchmarks/report.py --only pairs_nli lexical --runs 3
"""

import argparse
import re
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from _side_by_side import BESIDE, machine

PACKAGES = ("sentence-transformers", "transformers", "torch", "faiss-cpu", "tantivy")
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*\.?\d*(?![\w])")
OWN = Path(__file__)
PEERS = ("| work | peer | times as fast: median (least to greatest) | outputs | |", "|---|---|---|---|---|")
FIGURES = ("| script | figure: median (least to greatest) |", "|---|---|")


def main() -> None:
    """Run, gather, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", nargs="+", help="names of scripts; all of them unless given")
    parser.add_argument("--to", type=Path, default=Path("build/benchmarks.md"))
    parser.add_argument("--hours", type=float, default=2.0, help="that one run of a script may take")
    given = parser.parse_args()
    known = sorted(path for path in OWN.parent.glob("[!_]*.py") if path != OWN)
    if unknown := set(given.only or ()) - {path.stem for path in known}:
        sys.exit(f"there is no benchmark {', '.join(sorted(unknown))}: {', '.join(path.stem for path in known)}")
    given.to.parent.mkdir(parents=True, exist_ok=True)
    head = f"Measured {datetime.now(UTC):%Y-%m-%d} on {machine(*PACKAGES)}; runs of what has a peer: {given.runs}."
    peers: list[str] = []
    figures: list[str] = []
    for script in [path for path in known if not given.only or path.stem in given.only]:
        outputs = runs_of(script, given.runs, given.hours * 3600)
        peers += peer_rows(outputs)
        figures += table_rows(script.stem, outputs)
        given.to.write_text("\n".join([head, "", *PEERS, *peers, "", *FIGURES, *figures]) + "\n", "utf-8")
    print(given.to.read_text("utf-8"))


def peer_rows(outputs: Sequence[str] | str) -> list[str]:
    """Return a row for each comparison with a peer."""
    runs = [] if isinstance(outputs, str) else [_compared(output) for output in outputs]
    common = [key for key in (runs[0] if runs else {}) if all(key in run for run in runs)]
    return [_peer_row(*key, [run[key] for run in runs]) for key in common]


def _compared(output: str) -> dict[tuple[str, str], tuple[float, str]]:
    lines = [line.removeprefix(BESIDE).split(" | ") for line in output.splitlines() if line.startswith(BESIDE)]
    return {(work, peer): (float(faster), same) for work, peer, faster, same in lines}


def _peer_row(work: str, peer: str, runs: Sequence[tuple[float, str]]) -> str:
    times = [faster for faster, _ in runs]
    outputs = " · ".join(summed_up([same for _, same in runs])) or runs[0][1]
    loses = "**Sonde is slower**" if statistics.median(times) < 1 else ""
    return f"| {work} | {peer} | {_spread(times)} | {outputs} | {loses} |"


def runs_of(script: Path, count: int, limit: float) -> list[str] | str:
    """Return the output of every run, or why one failed; of a script without a peer there is one run."""
    outputs = []
    for number in range(1, count + 1):
        began = monotonic()
        try:
            ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return f"not done after {limit:,.0f} s"
        print(f"{script.stem}: run {number} of {count}, {monotonic() - began:,.0f} s", file=sys.stderr, flush=True)
        if ran.returncode:
            said = (ran.stderr.strip() or ran.stdout.strip() or f"exit code {ran.returncode}").splitlines()
            return f"failed: {said[-1]}"
        outputs.append(ran.stdout)
        if BESIDE not in ran.stdout:
            break
    return outputs


def table_rows(name: str, outputs: Sequence[str] | str) -> list[str]:
    """Return the rows of one script."""
    figures = [outputs] if isinstance(outputs, str) else [f for f in summed_up(outputs) if not f.startswith(BESIDE)]
    return [f"| `{name}` | {figure.replace('|', '·')} |" for figure in figures or ["printed no figure"]]


def summed_up(outputs: Sequence[str]) -> list[str]:
    """Return the lines that all runs have in the same words, each number as its median over the runs."""
    found: dict[str, list[list[float]]] = defaultdict(list)
    order: list[str] = []
    for output in outputs:
        seen: dict[str, int] = defaultdict(int)
        for line in output.splitlines():
            words = NUMBER.sub("#", line.strip())
            seen[words] += 1
            key = f"{seen[words]} {words}"  # a line may come several times, such as the rows of a table
            found[key].append([float(number.replace(",", "")) for number in NUMBER.findall(line)])
            order += [key] if key not in order else []
    return [
        _line(key.split(" ", 1)[1], found[key]) for key in order if len(found[key]) == len(outputs) and found[key][0]
    ]


def _line(words: str, runs: list[list[float]]) -> str:
    """Put the numbers back into the words."""
    parts = words.split("#")
    shown = [_spread([run[place] for run in runs]) for place in range(len(runs[0]))]
    return "".join(part + number for part, number in zip(parts, [*shown, ""], strict=True)).strip()


def _spread(values: list[float]) -> str:
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:g}" if low == high else f"{middle:.4g} ({low:.4g} to {high:.4g})"


if __name__ == "__main__":
    main()
