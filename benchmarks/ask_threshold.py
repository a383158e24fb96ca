"""Asking banking77's questions of a collection that knows 57 of its 77 intents: what the threshold is worth.

The collection holds the training questions of 57 intents. The test questions of these have an answer, and a hit is
right if it has their intent; the test questions of the other 20 intents have none.

    python benchmarks/ask_threshold.py --data ../shared/data --to curve.png
"""

import argparse
import csv
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
from _side_by_side import DATA, machine

import sonde
from sonde.pipelines.plots.file import write_plot
from sonde.pipelines.tune.threshold import Question, ThresholdPlot, find_threshold

LEFT_OUT = 20


def main() -> None:
    """Index, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--to", type=Path, help="where the curve is drawn")
    parser.add_argument("--every", type=int, default=3, help="ask each third of the test questions")
    given = parser.parse_args()
    print(machine("sentence-transformers", "torch"))
    train, test = (rows_of(given.data / "topics" / f"banking77_{part}.csv") for part in ("train", "test"))
    test = test[:: given.every]
    intents = sorted({intent for _, intent in train})
    unknown = set(np.random.default_rng(0).choice(intents, LEFT_OUT, replace=False).tolist())
    known = [(text, intent) for text, intent in train if intent not in unknown]
    by_intent = defaultdict(list)
    for number, (_, intent) in enumerate(known):
        by_intent[intent].append(str(number))
    with tempfile.TemporaryDirectory() as folder:
        rows = [{"id": number, "question": text, "answer": intent} for number, (text, intent) in enumerate(known)]
        faq = sonde.index(rows, Path(folder) / "faq.sonde", text="question", id="id")
        answered = [Question(text, tuple(by_intent[intent])) for text, intent in test if intent not in unknown]
        unanswerable = [Question(text) for text, intent in test if intent in unknown]
        found = find_threshold(faq.stored, answered, unanswerable)
    print(f"{len(known):,} questions of {len(by_intent)} intents; {len(answered):,} and {len(unanswerable):,} asked")
    for name, point in (("threshold", found.checked), ("none", found.curve[0])):
        print(
            f"{name} {point.threshold:.3f}: precision {point.precision:.3f}, recall {point.recall:.3f}, "
            f"F1 {point.f1:.3f}, answers to unanswerable questions {point.false_answers:.3f}"
        )
    for point in found.curve[:: max(1, len(found.curve) // 12)]:
        print(
            f"  {point.threshold:.2f} {point.precision:.3f} {point.recall:.3f} {point.f1:.3f} {point.false_answers:.3f}"
        )
    if given.to:
        write_plot(ThresholdPlot("banking77, 20 of 77 intents unknown", found.curve, found.threshold), given.to)


def rows_of(path: Path) -> list[tuple[str, str]]:
    """Return the texts of a part with their intents."""
    with path.open(newline="") as file:
        return [(row["text"], row["category"]) for row in csv.DictReader(file)]


if __name__ == "__main__":
    main()
