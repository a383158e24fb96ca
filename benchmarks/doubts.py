"""Doubtful labels: average precision on labels that were changed at random, beside cleanlab on the same embeddings.

    python -m venv /tmp/peer && /tmp/peer/bin/pip install cleanlab scikit-learn
    python benchmarks/doubts.py --peer /tmp/peer/bin/python

cleanlab (AGPL-3.0) is no dependency: it runs in an environment of its own, on embeddings and labels that this script
writes. It gets out-of-fold probabilities of a logistic regression in five folds, as its documentation shows, and ranks
by its default score, self-confidence. A share of the labels is replaced by another label at random.
"""

import argparse
import csv
import gzip
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _side_by_side import DATA, machine

import sonde
from sonde.pipelines.check.embeddings import doubts

SHARE, SEEDS = 0.05, 3
HEADS = ("set", "texts", "labels", "cleanlab", "Sonde", "reported", "precision", "recall", "suggested right", "s")
FORMATS = (".3f", ".3f", ".0f", ".2f", ".2f", ".2f", ".1f")
PEER = """
import sys, numpy as np
from cleanlab.rank import get_label_quality_scores
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
given = np.load(sys.argv[1])
model = LogisticRegression(max_iter=300)
chances = cross_val_predict(model, given["vectors"], given["labels"], cv=5, method="predict_proba")
np.save(sys.argv[2], get_label_quality_scores(given["labels"], chances))
"""


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default=sys.executable, help="a Python with cleanlab and scikit-learn")
    parser.add_argument("--sets", default="bbc,trec6,banking77,stackoverflow")
    parser.add_argument("--sizes", default="500,6000", help="texts of a set, drawn at random")
    arguments = parser.parse_args()
    print(f"{machine('sonde', 'scikit-learn')}; {SHARE:.0%} of the labels changed, {SEEDS} draws\n")
    print("| " + " | ".join(HEADS) + " |\n" + "|---" * len(HEADS) + "|", flush=True)
    for name in arguments.sets.split(","):
        texts, labels = _read(name)
        for size in map(int, arguments.sizes.split(",")):
            chosen = np.sort(np.random.default_rng(0).permutation(len(texts))[:size])
            truth = np.unique(labels[chosen], return_inverse=True)[1]
            _row(name, [texts[place] for place in chosen], truth, arguments.peer)


def _row(name: str, texts: list[str], truth: np.ndarray, peer: str) -> None:
    vectors = sonde.load_encoder("all-MiniLM-L6-v2").encode_texts(texts)
    found = np.array([_measured(vectors, truth, seed, peer) for seed in range(SEEDS)]).mean(axis=0)
    cells = " | ".join(format(value, form) for value, form in zip(found, FORMATS, strict=True))
    print(f"| {name} | {len(texts):,} | {truth.max() + 1} | {cells} |", flush=True)


def _measured(vectors: np.ndarray, truth: np.ndarray, seed: int, peer: str) -> list[float]:
    chance = np.random.default_rng(seed)
    changed = chance.permutation(len(truth))[: int(SHARE * len(truth))]
    labels, count = truth.copy(), int(truth.max()) + 1
    labels[changed] = (labels[changed] + chance.integers(1, count, len(changed))) % count
    wrong = np.zeros(len(truth), bool)
    wrong[changed] = True
    began = time.perf_counter()
    found = doubts(vectors, labels)
    taken = time.perf_counter() - began
    flagged, judged = found.flagged(), ~np.isnan(found.doubt)
    theirs = _peer(vectors, labels, peer)
    return [
        _average_precision(wrong[judged], theirs[judged]), _average_precision(wrong[judged], found.doubt[judged]),
        len(flagged), wrong[flagged].mean(), wrong[flagged].sum() / wrong.sum(),
        (found.suggested[changed] == truth[changed]).mean(), taken,
    ]  # fmt: skip


def _peer(vectors: np.ndarray, labels: np.ndarray, peer: str) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder) / "given.npz", Path(folder) / "out.npy"
        np.savez(given, vectors=vectors, labels=labels)
        subprocess.run([peer, "-W", "ignore", "-c", PEER, given, out], check=True, env={"OMP_NUM_THREADS": "1"})
        return -np.load(out)


def _average_precision(wrong: np.ndarray, doubt: np.ndarray) -> float:
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(wrong, doubt))


def _read(name: str) -> tuple[list[str], np.ndarray]:
    """Return the texts of a set and their labels."""
    folder = DATA / "topics"
    if name == "banking77":
        with (folder / "banking77_train.csv").open(newline="") as stream:
            rows = [(row["text"], row["category"]) for row in csv.DictReader(stream)]
    else:
        with gzip.open(folder / f"{name}.jsonl.gz", "rt") as stream:
            rows = [_text_and_label(json.loads(line)) for line in stream]
    return [text for text, _ in rows], np.array([label for _, label in rows])


def _text_and_label(row: dict[str, str]) -> tuple[str, str]:
    text = row.get("text") or row.get("title") or row["question"]
    return text[:2_000], row.get("label") or row["coarse"]


if __name__ == "__main__":
    main()
