"""What the stages share: their options, made-up passages of 128 tokens, and results as lines of JSON."""

import argparse
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

TOKENS = 128
THEMES, OWN_WORDS, OWN_SHARE = 200, 80, 0.6
"""Passages have themes, whose own words make up this share, so that searches and groups find something."""


@dataclass(frozen=True)
class Stage:
    """Where a stage runs and what it writes.

    Attributes:
        name: Of the stage.
        device: "cuda" or "cpu".
        tiny: Whether to try the code on little data instead of measuring.
        folder: Of the results and of what later stages need.
        passages: How many to index.
    """

    name: str
    device: str
    tiny: bool
    folder: Path
    passages: int

    @classmethod
    def of(cls, name: str) -> "Stage":
        """Read the options."""
        parser = argparse.ArgumentParser()
        parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
        parser.add_argument("--size", default="full", choices=("full", "tiny"))
        parser.add_argument("--passages", type=int, default=100_000)
        parser.add_argument("--to", type=Path, required=True)
        given = parser.parse_args()
        given.to.mkdir(parents=True, exist_ok=True)
        tiny = given.size == "tiny"
        (given.to / f"{name}.jsonl").unlink(missing_ok=True)
        return cls(name, given.device, tiny, given.to, 60 if tiny else given.passages)

    @property
    def source(self) -> Path:
        """The passages as JSON lines, written when they are first needed."""
        path = self.folder / f"passages-{self.passages}.jsonl"
        if not path.exists():
            lines = (json.dumps({"id": str(place), "text": text}) for place, text in enumerate(passages(self.passages)))
            path.write_text("\n".join(lines) + "\n", "utf-8")
        return path

    @property
    def collection(self) -> Path:
        """What the stage `index` makes."""
        return self.folder / "passages.sonde"

    def row(self, work: str, sonde: str, *, beside: str = "", faster: float | None = None, goal: str = "") -> None:
        """Write one row of the table and print it."""
        found = {"stage": self.name, "work": work, "sonde": sonde, "beside": beside, "faster": faster, "goal": goal}
        with (self.folder / f"{self.name}.jsonl").open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(found) + "\n")
        print(f"{work}: {sonde}{f'; {beside}' if beside else ''}", flush=True)


def passages(count: int) -> list[str]:
    """Return texts of 128 tokens for the default model, two of them special; the same ones every time."""
    from sonde.indexer.encoder.models import locate

    content = json.loads((locate("all-MiniLM-L6-v2", print).folder / "tokenizer.json").read_text("utf-8"))
    words = sorted(word for word in content["model"]["vocab"] if word.isascii() and word.isalpha() and len(word) > 2)
    draw = random.Random(7)
    themes = [draw.sample(words, OWN_WORDS) for _ in range(THEMES)]
    own = int(OWN_SHARE * (TOKENS - 2))
    texts = []
    for _ in range(count):
        chosen = draw.choices(draw.choice(themes), k=own) + draw.choices(words, k=TOKENS - 2 - own)
        draw.shuffle(chosen)
        texts.append(" ".join(chosen))
    return texts


def seconds(work: Callable[[], Any], runs: int = 3) -> float:
    """Return the least time of several runs after one that does not count."""
    work()
    times = []
    for _ in range(runs):
        began = perf_counter()
        work()
        times.append(perf_counter() - began)
    return min(times)
