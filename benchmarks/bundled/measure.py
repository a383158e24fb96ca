"""What an NLI model reaches on the development sets: inference on LingNLI, zero-shot labels on bbc and 20 Newsgroups.

    python benchmarks/bundled/measure.py ../shared/data [--model FOLDER] [--sample 600]

Zero-shot: one label of several by the entailment logit, by the bi-encoder's similarity to the label, and by the sum of
both, each standardised per label over the texts. Without --model it is the bundled one.
"""

import argparse
import random
from pathlib import Path

import numpy as np
import sets

import sonde

TEMPLATE = "This example is about {}."
PLAIN = {
    "bbc": {
        "business": "business", "sport": "sport", "politics": "politics", "tech": "technology",
        "entertainment": "entertainment",
    },
    "newsgroups20": {
        "alt.atheism": "atheism", "comp.graphics": "computer graphics", "comp.os.ms-windows.misc": "Microsoft Windows",
        "comp.sys.ibm.pc.hardware": "IBM PC hardware", "comp.sys.mac.hardware": "Mac hardware",
        "comp.windows.x": "X Window System", "misc.forsale": "items for sale", "rec.autos": "cars",
        "rec.motorcycles": "motorcycles", "rec.sport.baseball": "baseball", "rec.sport.hockey": "hockey",
        "sci.crypt": "cryptography", "sci.electronics": "electronics", "sci.med": "medicine", "sci.space": "space",
        "soc.religion.christian": "Christianity", "talk.politics.guns": "guns",
        "talk.politics.mideast": "the Middle East", "talk.politics.misc": "politics", "talk.religion.misc": "religion",
    },
}  # fmt: skip


def main() -> None:
    """Print accuracies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", default=None)
    parser.add_argument("--sample", type=int, default=600, help="texts of each set; 0 for all")
    parser.add_argument("--template", default=TEMPLATE)
    parser.add_argument("--tokens", type=int, default=160)
    arguments = parser.parse_args()
    judge = Judge(arguments.model, arguments.tokens)
    size = arguments.sample
    rows = [row for row in sets.lines(arguments.data / "nli/lingnli.jsonl.gz") if row["split"] == "val"]
    rows = sample(rows, 3 * size)
    logits = judge([(row["premise"], row["hypothesis"]) for row in rows])
    right = [judge.names[place] == row["label"] for place, row in zip(logits.argmax(1), rows, strict=True)]
    print(f"lingnli val, {len(rows)} pairs: {np.mean(right):.4f}", flush=True)
    encoder = sonde.load_encoder()
    for name, plain in PLAIN.items():
        rows = [row for row in sets.lines(arguments.data / f"topics/{name}.jsonl.gz") if row.get("split") != "train"]
        rows = sample(rows, size)
        texts = [f"{row.get('title') or row.get('subject') or ''}\n{row['text']}"[:3000] for row in rows]
        truth = np.array([list(plain).index(row["label"]) for row in rows])
        vectors = encoder.encode_texts(texts)
        bare, hypotheses = list(plain.values()), [arguments.template.format(label) for label in plain.values()]
        similar = {
            "label": vectors @ encoder.encode_texts(bare).T,
            "sentence": vectors @ encoder.encode_texts(hypotheses).T,
        }
        pairs = judge([(text, hypothesis) for text in texts for hypothesis in hypotheses])
        pairs = pairs.reshape(len(texts), len(plain), -1)
        entailed = pairs[:, :, judge.entailment]
        odds = entailed - pairs[:, :, judge.contradiction]
        found = {f"similarity, {kind}": scores for kind, scores in similar.items()}
        found |= {
            "nli": entailed,
            "nli odds": odds,
            "nli standardised": standard(entailed),
            "similarity standardised": standard(similar["label"]),
        }
        for kind, scores in similar.items():
            found[f"sum, {kind}"] = standard(entailed) + standard(scores)
            found[f"sum of odds, {kind}"] = standard(odds) + standard(scores)
        print(
            f"{name}, {len(rows)} texts: "
            + ", ".join(f"{key} {np.mean(value.argmax(1) == truth):.4f}" for key, value in found.items()),
            flush=True,
        )


def standard(scores: np.ndarray) -> np.ndarray:
    """Return the scores of each label with mean 0 and deviation 1 over the texts."""
    return (scores - scores.mean(0)) / (scores.std(0) + 1e-9)


def sample(rows: list, size: int) -> list:
    """Return some rows, always the same ones; all for 0 or for more than there are."""
    return random.Random(7).sample(rows, size) if 0 < size < len(rows) else rows


class Judge:
    """Logits of pairs."""

    def __init__(self, folder: str | None, most: int) -> None:
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        if folder:
            model = AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True)
            self.tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        else:
            from sonde.pipelines.pairs.bundled.loading import load_bundled

            model, self.tokenizer, _ = load_bundled("nli")
        self.model = model.to(torch.bfloat16).eval()
        self.names = {int(place): name for place, name in model.config.id2label.items()}
        self.entailment, self.contradiction = (
            next(p for p, n in self.names.items() if n.startswith(s)) for s in ("entail", "contra")
        )
        self.most = most

    def __call__(self, pairs: list[tuple[str, str]]) -> np.ndarray:
        """Return float32 [n, 3]."""
        import torch

        from sonde.pipelines.train.nli import pad

        made = self.tokenizer(
            [a for a, _ in pairs],
            [b for _, b in pairs],
            truncation="only_first",
            max_length=self.most,
            return_token_type_ids=True,
        )
        rows = [(np.array(i), np.array(k)) for i, k in zip(made["input_ids"], made["token_type_ids"], strict=True)]
        order = np.argsort([len(ids) for ids, _ in rows], kind="stable")[::-1]
        found, start = np.zeros((len(rows), 3), np.float32), 0
        with torch.inference_mode():
            while start < len(order):
                size = max(1, 4096 // len(rows[order[start]][0]))
                part = order[start : start + size]
                found[part] = (
                    self.model(**pad([rows[p] for p in part], self.tokenizer.pad_token_id, "cpu"))
                    .logits.float()
                    .numpy()
                )
                start += size
        return found


if __name__ == "__main__":
    main()
