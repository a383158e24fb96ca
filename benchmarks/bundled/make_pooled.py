"""Train an NLI model with the pooled head and pack it like the bundled one (figures: benchmarks/README.md).

    python benchmarks/bundled/make_pooled.py ../shared/data --work work/ --to packed/

The working folder gets the pairs, the checkpoint and the whole model; a killed run goes on. One thread of a CPU with
AMX was used: other hardware rounds otherwise, so the weights come out alike and not equal.
"""

import argparse
import random
import subprocess
import sys
import time
from pathlib import Path

import sets
from pooled_pairs import PASSES
from train import Recipe, train

from sonde.indexer.files import sha256
from sonde.pipelines.pairs.bundled.bundles import WEIGHTS
from sonde.pipelines.pairs.bundled.loading import write_bundle
from sonde.pipelines.train.nli import base_folder, evaluate_pairs
from sonde.pipelines.train.pairs import LABELS, digest_of, read_pairs, write_pairs

BASE = "all-MiniLM-L6-v2"


def main() -> None:
    """Make pairs, train, pack, and print the digest that the loader must know."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--passes", type=int, default=PASSES)
    parser.add_argument("--to", type=Path, required=True)
    arguments = parser.parse_args()
    pairs, held = arguments.work / "pairs", arguments.work / "held-out.jsonl"
    if not held.exists():
        script = Path(__file__).with_name("pooled_pairs.py")
        subprocess.run([sys.executable, script, arguments.data, pairs, "--passes", str(arguments.passes)], check=True)
        write_pairs(held, development(arguments.data))
    epochs = [read_pairs(pairs / f"pass{number + 1}.jsonl") for number in range(arguments.passes)]
    base, recipe = base_folder(BASE), Recipe()
    model, tokenizer = train(epochs, base, arguments.work, recipe, digest_of(recipe, epochs), show)
    print(evaluate_pairs(model, tokenizer, read_pairs(held), recipe.max_tokens))
    arguments.to.mkdir(parents=True, exist_ok=True)
    write_bundle(model, base, arguments.to / WEIGHTS)
    print((arguments.to / WEIGHTS).stat().st_size, "bytes, SHA-256", sha256(arguments.to / WEIGHTS))


def development(data: Path, size: int = 1000) -> list[tuple[str, str, str]]:
    """Return pairs of LingNLI's validation part: measured on, never trained on."""
    rows = [
        row for row in sets.lines(data / "nli/lingnli.jsonl.gz") if row["split"] == "val" and row["label"] in LABELS
    ]
    return [(row["premise"], row["hypothesis"], row["label"]) for row in random.Random(7).sample(rows, size)]


_recent: list[float] = []


def show(step: int, steps: int, loss: float) -> None:
    """Print a line now and then."""
    _recent.append(loss)
    if step % 50 == 0:
        mean = sum(_recent[-50:]) / len(_recent[-50:])
        print(f"step {step:,} of {steps:,}, loss {mean:.3f}, {time.process_time():,.0f} s of CPU", flush=True)


if __name__ == "__main__":
    main()
