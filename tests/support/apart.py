"""Commands over a table of notes, in a process of their own in which some libraries are hidden."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

SCRIPT = Path(__file__).with_name("without_torch.py")
SUBJECTS = {"sport": "The team won the match after extra time", "food": "The soup needs more salt and garlic"}
SUBJECTS |= {"travel": "The train to the coast left late", "money": "The bank raised the interest rate again"}
LABELS = ",".join(SUBJECTS)


def write_notes(path: Path) -> None:
    """Write 24 notes on four subjects."""
    days = ("on Monday", "on Friday", "in May", "last year", "this week", "today")
    rows = [f"{kind}{day},{kind},{text} {days[day]}." for kind, text in SUBJECTS.items() for day in range(len(days))]
    path.write_text("id,kind,text\n" + "\n".join(rows) + "\n")


def sonde(folder: Path, commands: Sequence[Sequence[str]], mode: str) -> tuple[list[str], str]:
    """Run commands in one process; return what each printed, without times, and the libraries that were loaded."""
    lines = "\n".join(json.dumps(each) for each in commands)
    done = subprocess.run(
        [sys.executable, str(SCRIPT), mode], input=lines, capture_output=True, text=True, cwd=folder, timeout=300,
        check=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    *parts, loaded = re.split(r"(?<=exit code \d)\n", done.stdout)
    assert len(parts) == len(commands), done.stderr
    timed = re.compile(r"\d+(\.\d+)? m?s\b|(?<=\"seconds\": )[\d.e-]+")
    return [timed.sub("TIME", part) for part in parts], loaded.strip()


def asks(collection: str) -> list[list[str]]:
    """The commands that the light installation has, on a collection of the notes."""
    return [
        ["search", collection, "who won the game", "--json", "-k", "5"],
        ["search", collection, "spices", "--rerank", "--json", "-k", "5"],
        ["search", collection, "railway", "--where", "id = 'travel0' OR id = 'food1'", "--json"],
        ["similar", collection, "money1", "--json", "-k", "3"],
        ["ask", collection, "When did the train leave?"],
        ["label", collection, "--labels", LABELS, "--name", "by-similarity"],
        ["label", collection, "--labels", LABELS, "--engine", "nli", "--name", "by-nli"],
        ["label", collection, "--labels", LABELS, "--engine", "reranker", "--name", "by-tokens"],
        ["cluster", collection, "-k", "4", "--name", "groups"],
        ["duplicates", collection, "--json"],
        ["compare", collection, "--where", "kind = 'food'", "--where", "kind = 'money'"],
        ["evaluate", "labels", collection, "--run", "by-nli", "--truth", "kind", "--json"],
        ["evaluate", "clusters", collection, "--run", "groups", "--truth", "kind", "--json"],
        ["verify", collection],
    ]
