"""Train the bundled NLI model and write it as it is shipped: stage 1; stage 2 is what was tried beyond it.

    python benchmarks/bundled/make.py ../shared/data --work work/

The working folder gets the pairs, the checkpoints and the whole model; a killed run goes on. One thread of a CPU with
AMX was used: other hardware rounds otherwise, so the weights come out alike and not equal.
"""

import argparse
import random
import subprocess
import sys
from pathlib import Path

import sets

from sonde.indexer.files import sha256
from sonde.indexer.progress import Progress
from sonde.pipelines.pairs.bundled.bundles import FOLDER, WEIGHTS
from sonde.pipelines.pairs.bundled.loading import write_bundle
from sonde.pipelines.train import TrainSettings, train_nli
from sonde.pipelines.train.nli import base_folder
from sonde.pipelines.train.pairs import LABELS, write_pairs

STAGES = {
    1: TrainSettings(epochs=1, rate=2e-4, max_tokens=128, dtype="bfloat16", seed=7),
    2: TrainSettings(epochs=0.56, rate=1.5e-4, max_tokens=128, dtype="bfloat16", seed=8),
}
BASE = "all-MiniLM-L6-v2"


def main() -> None:
    """Make pairs, train, pack, and print the digest that the loader must know."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--stages", type=int, default=1, choices=sorted(STAGES))
    parser.add_argument("--to", type=Path, default=FOLDER / "nli")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    held, base = arguments.work / "held-out.jsonl", BASE
    write_pairs(held, development(arguments.data))
    for stage in range(1, arguments.stages + 1):
        settings = STAGES[stage]
        pairs, model = arguments.work / f"pairs{stage}.jsonl", arguments.work / f"model{stage}"
        if not pairs.exists():
            script = Path(__file__).with_name("nli_pairs.py")
            subprocess.run([sys.executable, script, arguments.data, pairs, "--stage", str(stage)], check=True)
        if not model.exists():
            print(train_nli(pairs, model, base=base, settings=settings, held_out=held, device="cpu", notify=show))
        base = str(model)
    arguments.to.mkdir(parents=True, exist_ok=True)
    write_bundle(loaded(Path(base)), base_folder(BASE), arguments.to / WEIGHTS)
    print((arguments.to / WEIGHTS).stat().st_size, "bytes, SHA-256", sha256(arguments.to / WEIGHTS))


def development(data: Path, size: int = 1000) -> list[tuple[str, str, str]]:
    """Return pairs of LingNLI's validation part: measured on, never trained on."""
    rows = [
        row for row in sets.lines(data / "nli/lingnli.jsonl.gz") if row["split"] == "val" and row["label"] in LABELS
    ]
    return [(row["premise"], row["hypothesis"], row["label"]) for row in random.Random(7).sample(rows, size)]


def loaded(folder: Path):
    """Return the trained model."""
    from transformers import AutoModelForSequenceClassification

    return AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True)


def show(event: Progress | str) -> None:
    """Print a line now and then."""
    if isinstance(event, str) or event.done % 50 == 0:
        print(event, flush=True)


if __name__ == "__main__":
    main()
