"""A small file of scored pairs of sentences."""

from pathlib import Path
from typing import Any

PAIRS = [
    ("The battery died after a week.", "The battery died in a week.", 4.6),
    ("How do I reset my password?", "password reset", 4.0),
    ("Basil likes sun and water", "Basil does not like frost, at all", 2.5),
    ("Profits rose by eleven per cent", "How do I reset it?", 0.0),
    ("refund", "refund", 5.0),
    ("neither do tomatoes", "Quarterly profits, well above", 0.4),
]


def stsb(folder: Path, rows: Any = PAIRS, name: str = "sts.csv") -> Path:
    path = folder / name
    path.write_text("".join(f'"{one}","{two}",{score}\n' for one, two, score in rows))
    return path
