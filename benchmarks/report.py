"""Runs every script and writes one page: Sonde beside its peers, then what each script printed, machine, versions.

A script that compares Sonde with a peer runs both several times in turn and says how many times as fast Sonde was in
each run, in lines of its own (`_side_by_side.beside`): those make the table, with the median, the least and the
greatest. Such scripts come first, so that the machine need be quiet for the first part only. A script that fails
stands on the page with its last words.

    python benchmarks/report.py --to build/benchmarks.md
    python benchmarks/report.py --only pairs_nli lexical
"""

import argparse
import re
import statistics
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from _side_by_side import BESIDE, machine, spread

PACKAGES = ("sentence-transformers", "transformers", "torch", "faiss-cpu", "tantivy", "bertopic", "txtai")
OWN = Path(__file__)
TOOLS = ("failing_disk", "power_cuts", "report", "same_answers", "soak", "structure")
"""Scripts here that measure nothing, or that take an hour."""
TABLE = ("| work | peer | times as fast: median (least to greatest) | runs | outputs | |", "|---|---|---|---|---|---|")


def main() -> None:
    """Run, gather, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", help="names of scripts; all of them unless given")
    parser.add_argument("--to", type=Path, default=Path("build/benchmarks.md"))
    parser.add_argument("--hours", type=float, default=2.0, help="that a script may take")
    given = parser.parse_args()
    known = {path.stem: path for path in sorted(OWN.parent.glob("[!_]*.py"), key=_peers_first)}
    known = {name: path for name, path in known.items() if name not in TOOLS}
    if unknown := set(given.only or ()) - set(known):
        sys.exit(f"there is no benchmark {', '.join(sorted(unknown))}: {', '.join(known)}")
    given.to.parent.mkdir(parents=True, exist_ok=True)
    head = f"# Benchmarks\n\nMeasured {datetime.now(UTC):%Y-%m-%d} on {machine(*PACKAGES)}."
    outputs: dict[str, str] = {}
    for name in [name for name in known if not given.only or name in given.only]:
        outputs[name] = output_of(known[name], given.hours * 3600)
        given.to.write_text(page(head, outputs), "utf-8")
    print(given.to.read_text("utf-8"))


def _peers_first(script: Path) -> tuple[bool, str]:
    return re.search(r"\bbeside\(", script.read_text("utf-8")) is None, script.stem


def output_of(script: Path, limit: float) -> str:
    """Return what a script printed, or why it failed."""
    began = monotonic()
    try:
        ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"Not done after {limit:,.0f} s."
    print(f"{script.stem}: {monotonic() - began:,.0f} s", file=sys.stderr, flush=True)
    if ran.returncode:
        said = (ran.stderr.strip() or ran.stdout.strip() or f"exit code {ran.returncode}").splitlines()
        return f"Failed: {said[-1]}"
    return ran.stdout.strip() or "Printed nothing."


def page(head: str, outputs: dict[str, str]) -> str:
    """Return the whole page as Markdown."""
    lines = [line for output in outputs.values() for line in output.splitlines() if line.startswith(BESIDE)]
    parts = [head, "\n".join([*TABLE, *map(peer_row, lines)])]
    for name, output in outputs.items():
        kept = [line for line in output.splitlines() if not line.startswith(BESIDE)]
        parts.append(f"## {name}\n\n" + "\n".join(kept).strip())
    return "\n\n".join(parts) + "\n"


def peer_row(line: str) -> str:
    """Return the row of one comparison; a loss is said."""
    work, peer, runs, outputs = line.removeprefix(BESIDE).split(" | ")
    faster = [float(one) for one in runs.split()]
    loses = "**Sonde is slower**" if statistics.median(faster) < 1 else ""
    return f"| {work} | {peer} | {spread(faster)} | {len(faster)} | {outputs} | {loses} |"


if __name__ == "__main__":
    main()
