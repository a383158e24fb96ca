"""How fast a cross-encoder reranks, beside `CrossEncoder.predict`: the same model, the same scores, in turn.

    python benchmarks/pairs_rerank.py [MODEL] [--queries 20] [--depth 50] [--runs 3]

MODEL is the folder of a cross-encoder, or a hub name that is cached; without one, the default bi-encoder's layers with
an untrained head, which cost the same and score nothing worth knowing. The pairs are questions and passages of SQuAD.
"""

import argparse
import gzip
import json
import random
import tempfile

import numpy as np
from _side_by_side import DATA, beside, in_turn, machine, seconds, spread, times_as_fast

from sonde.pipelines.search.rerank.models import load_reranker


def main() -> None:
    """Score the same pairs with both and print the ratio of their times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--queries", type=int, default=5)
    parser.add_argument("--depth", type=int, default=50)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    from sentence_transformers import CrossEncoder

    arguments.model = arguments.model or untrained()
    work = candidates(arguments.queries, arguments.depth)
    ours = load_reranker(arguments.model, arguments.device)
    peer = CrossEncoder(arguments.model, device=arguments.device, local_files_only=True)

    def score() -> np.ndarray:
        return np.concatenate([ours.score(query, texts) for query, texts in work])

    def predict() -> np.ndarray:
        return np.concatenate([peer.predict([(query, text) for text in texts]) for query, texts in work])

    print(f"{machine('sonde', 'sentence-transformers', 'torch')}, {arguments.device}, {arguments.model}")
    apart = float(np.abs(score() - predict()).max())
    print(f"{len(work)} queries of {arguments.depth} passages; scores differ by {apart:.1e}")
    pairs = in_turn(arguments.runs, lambda: seconds(score), lambda: seconds(predict))
    rate = len(work) * arguments.depth / min(one for one, _ in pairs)
    print(f"{spread(times_as_fast(pairs))} times as fast as CrossEncoder.predict, {rate:,.0f} pairs a second")
    outputs = f"largest difference of a score {apart:.1e}"
    beside("rerank by a cross-encoder", "CrossEncoder.predict", times_as_fast(pairs), outputs)


def untrained() -> str:
    """Save the default bi-encoder's layers with a head of one logit, the same every time."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    import sonde
    from sonde.indexer.encoder.models import locate

    torch.manual_seed(0)
    source, target = locate(sonde.load_encoder().spec.name, print).folder, tempfile.mkdtemp()
    AutoModelForSequenceClassification.from_pretrained(source, num_labels=1).save_pretrained(target)
    AutoTokenizer.from_pretrained(source).save_pretrained(target)
    return target


def candidates(queries: int, depth: int) -> list[tuple[str, list[str]]]:
    """Questions with passages drawn at random, the same ones every time."""
    with gzip.open(DATA / "qa" / "squad_dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        articles = [json.loads(line) for line in lines]
    chance = random.Random(0)
    passages = [article["passage"] for article in articles]
    chosen = chance.sample(articles, queries)
    return [(article["questions"][0]["question"], chance.sample(passages, depth)) for article in chosen]


if __name__ == "__main__":
    main()
