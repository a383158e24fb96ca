"""Medical questions and answers: does a bi-encoder tuned on a CPU in 20 minutes beat the default on held-out questions?

The questions are divided so that no held-out question, and no answer of one, is among those trained on. The corpus is
an ordinary collection of answers. The time is that of mining and training, without the measuring before and after.

    python benchmarks/train_medquad.py --limit 0 [--to medquad-model]
"""

import argparse
import gzip
import json
import sys
import tempfile
import time
from pathlib import Path

import torch
from _side_by_side import DATA, machine

from sonde.pipelines.train.biencoder import BiencoderSettings, pairs, train_biencoder
from sonde.pipelines.train.biencoder.examples import divided


def main() -> None:
    """Train, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--to", type=Path, help="folder of the model; a temporary one unless given")
    parser.add_argument("--corpus", type=int, default=6_000)
    parser.add_argument("--held-out", type=int, default=600)
    parser.add_argument("--limit", type=int, default=5_000, help="so many of the pairs, spread over all; 0 for all")
    parser.add_argument("--max-tokens", type=int, default=96)
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--negatives", type=int, default=1)
    parser.add_argument("--save-every", type=float, default=60.0)
    given = parser.parse_args()
    print(machine("sentence-transformers", "torch"))
    given.to = given.to or Path(tempfile.mkdtemp()) / "model"
    given.to.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(given.data / "qa" / "medquad.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    rows = rows[:: max(1, len(rows) // given.limit)][: given.limit] if given.limit else rows
    examples = pairs([row["question"].strip() for row in rows], [row["answer"].strip() for row in rows])
    taught, held = divided(examples, min(0.2, given.held_out / len(examples)), seed=7)
    print(f"{len(taught):,} pairs to learn, {len(held):,} held out; {torch.get_num_threads()} thread(s)", flush=True)
    settings = BiencoderSettings(
        max_tokens=given.max_tokens, epochs=given.epochs, negatives=given.negatives,
        save_every=given.save_every,
    )  # fmt: skip
    times: dict[str, list[float]] = {}
    last: list[tuple[str, float, float]] = []

    def watch(event: object) -> None:
        """Add up the processor's time by stage."""
        now, stage = time.process_time(), getattr(event, "stage", None)
        if last and stage:
            spent = times.setdefault(stage, [0.0, 0.0])
            spent[0] += now - last[0][1]
            spent[1] += time.monotonic() - last[0][2]
        last[:] = [(str(stage), now, time.monotonic())]
        done, total = getattr(event, "done", 0), getattr(event, "total", 0)
        if stage is None or done % 10 == 0:
            print(event if stage is None else f"{stage} {done} of {total}", file=sys.stderr, flush=True)

    made = train_biencoder(
        taught, given.to, settings=settings, held_out=held, corpus=given.corpus, logs=given.to.with_name("logs"),
        notify=watch,
    )  # fmt: skip
    for stage, (processor, wall) in times.items():
        print(f"{stage}: {processor:,.0f} s of one processor, {wall:,.0f} s by the clock")
    print(f"{made.fit.steps} steps")
    for each in made.gains:
        print(each)


if __name__ == "__main__":
    main()
