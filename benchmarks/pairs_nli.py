"""NLI labels: Sonde against transformers' zero-shot pipeline at its default and at batch size 32, the same model.

    python benchmarks/pairs_nli.py                                    the bundled model, 60 questions, 8 labels
    python benchmarks/pairs_nli.py --model facebook/bart-large-mnli --device cuda --texts 500

Texts of 10 to 60 words in no order of length, with 8 labels, in turn; the outputs are compared first.
"""

import argparse
import gzip
import json
import random
from pathlib import Path
from typing import Any

from _side_by_side import DATA, beside, in_turn, machine, seconds, spread, times_as_fast
from transformers import pipeline

from sonde.pipelines.label import NliJudge, load_nli, make_labels
from sonde.pipelines.label.solvers import softmax
from sonde.pipelines.pairs.bundled.loading import load_bundled
from sonde.pipelines.pairs.loading import locate_pair_model

LABELS = ["business", "sport", "politics", "technology", "entertainment", "science", "health", "travel"]


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA / "topics/bbc.jsonl.gz")
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--texts", type=int, default=60)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    judge = NliJudge(load_nli(arguments.model, device=arguments.device, dtype=arguments.dtype, notify=print))
    peer: Any = pipeline(
        "zero-shot-classification",
        model=plain_model(arguments),
        tokenizer=judge.pairs.tokenizer.tokenizer,
        device=arguments.device,
    )
    texts, labels = read_texts(arguments.data, arguments.texts), make_labels(LABELS)
    ours = softmax(judge.margins(texts, labels, False))
    theirs = [dict(zip(found["labels"], found["scores"], strict=True)) for found in peer(texts, LABELS)]
    apart = max(
        abs(ours[n][place] - found[name]) for n, found in enumerate(theirs) for place, name in enumerate(LABELS)
    )
    print(f"{arguments.model}, {machine('torch', 'transformers')}")
    print(f"{len(texts)} texts of 10 to 60 words, {len(LABELS)} labels; largest difference of a score {apart:.1e}\n")
    print("| transformers' pipeline | Sonde, pairs/s | pipeline, pairs/s | times as fast (median, range) |")
    print("|---|---|---|---|")
    for name, options in (("default", {}), ("batch_size=32", {"batch_size": 32})):
        pairs = in_turn(
            arguments.runs,
            lambda: seconds(lambda: judge.margins(texts, labels, False)),
            lambda options=options: seconds(lambda: peer(texts, LABELS, **options)),
        )
        rates = [len(texts) * len(LABELS) / min(pair[side] for pair in pairs) for side in (0, 1)]
        print(f"| {name} | {rates[0]:.0f} | {rates[1]:.0f} | {spread(times_as_fast(pairs))} |", flush=True)
        outputs = f"largest difference of a score {apart:.1e}"
        beside("label by NLI", f"transformers' pipeline, {name}", times_as_fast(pairs), outputs)


def plain_model(arguments: argparse.Namespace) -> Any:
    """Return the same weights as transformers itself loads them."""
    import torch
    from transformers import AutoModelForSequenceClassification

    if arguments.model == "bundled":
        return load_bundled("nli")[0].to(getattr(torch, arguments.dtype)).to(arguments.device)
    folder = locate_pair_model(arguments.model, print).folder
    return AutoModelForSequenceClassification.from_pretrained(
        folder, dtype=getattr(torch, arguments.dtype), local_files_only=True
    ).to(arguments.device)


def read_texts(path: Path, count: int) -> list[str]:
    """Read the beginnings of texts, of 10 to 60 words each, evenly spread over those lengths, shuffled."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        words = [json.loads(line)["text"].split() for line in lines]
    words = [each for each in words if len(each) >= 60]
    step = max(1, len(words) // count)
    texts = [" ".join(each[: 10 + 50 * n // count]) for n, each in enumerate(words[::step][:count])]
    random.Random(0).shuffle(texts)  # texts do not come sorted by length, which would spare the pipeline its padding
    return texts


if __name__ == "__main__":
    main()
