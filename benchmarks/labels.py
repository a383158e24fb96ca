"""Labels from names: the accuracy of every engine, and of judging a sample against judging everything.

    python benchmarks/labels.py --sets bbc                               every engine, the bundled NLI model
    python benchmarks/labels.py --sets bbc --budgets 0.05,0.1 --model facebook/bart-large-mnli --device cuda

Full NLI judges every text against every label. A budget is a share of those calls. What was judged is kept in --folder,
beside the collections, so that budgets repeat no call; the calls reported are those that a budget took.
"""

import argparse
import csv
import gzip
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from _side_by_side import DATA, machine

import sonde
from sonde.indexer.store.kinds import LABEL
from sonde.indexer.store.runs import assignments_of, find_run
from sonde.pipelines.evaluate.labels import evaluate_labels
from sonde.pipelines.label import Label, LabelReport, NliJudge, label_collection, load_nli
from sonde.pipelines.label.labels import BUNDLED_TEMPLATE, TEMPLATE

NEWSGROUPS = {
    "alt.atheism": "atheism", "comp.graphics": "computer graphics", "comp.os.ms-windows.misc": "Microsoft Windows",
    "comp.sys.ibm.pc.hardware": "IBM PC hardware", "comp.sys.mac.hardware": "Mac hardware",
    "comp.windows.x": "X Window System", "misc.forsale": "for sale", "rec.autos": "autos",
    "rec.motorcycles": "motorcycles", "rec.sport.baseball": "baseball", "rec.sport.hockey": "hockey",
    "sci.crypt": "cryptography", "sci.electronics": "electronics", "sci.med": "medicine", "sci.space": "space",
    "soc.religion.christian": "Christianity", "talk.politics.guns": "guns", "talk.politics.mideast": "Middle East",
    "talk.politics.misc": "politics", "talk.religion.misc": "religion",
}  # fmt: skip
"""What the groups' names stand for, in words."""
TREC = {
    "ABBR": "abbreviation", "ENTY": "entity", "DESC": "description", "HUM": "human", "LOC": "location", "NUM": "number"
}  # fmt: skip


def main() -> None:
    """Index what is not indexed yet, label, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "sonde-labels")
    parser.add_argument("--sets", default="bbc,newsgroups20,banking77,stackoverflow")
    parser.add_argument("--budgets", default="0.05,0.1")
    parser.add_argument("--engines", default="nli,ensemble", help="those that a budget is tried with")
    parser.add_argument("--model", default=None)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="auto", help="of the NLI model and of the collections' vectors")
    parser.add_argument("--most", type=int, default=500, help="texts of a set, spread over it; 0 for all")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    print(f"{machine('sonde', 'torch', 'transformers', 'scikit-learn')}, NLI in {arguments.dtype}\n")
    print("| set | texts | engine | calls | of full | accuracy | macro F1 | agreement with full NLI |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name in arguments.sets.split(","):
        collection, labels = opened(name, arguments.folder, arguments.most, arguments.dtype)
        pairs = load_nli(arguments.model, device=arguments.device, dtype=arguments.dtype, notify=print)
        kept = arguments.folder / f"{name}{arguments.most or ''}-{pairs.name.replace('/', '-')}-{pairs.dtype}.npz"
        judge = Remembering(NliJudge(pairs, BUNDLED_TEMPLATE if pairs.name == "bundled" else TEMPLATE), kept)
        rows(name, collection, labels, judge, arguments)


def rows(
    name: str, collection: sonde.Collection, labels: list[str], judge: "Remembering", arguments: argparse.Namespace
) -> None:
    """Label in every way and print a line for each."""
    full = label(collection, labels, judge, "full", "nli", shortlist=0)
    truth = chosen(collection, "full")
    line(name, "nli, every label", full, collection, truth)
    line(name, "nli, shortlist of 10", label(collection, labels, judge, "short", "nli"), collection, truth)
    line(name, "similarity", label(collection, labels, None, "similar", "similarity"), collection, truth)
    line(name, "ensemble", label(collection, labels, judge, "both", "ensemble"), collection, truth)
    for engine in arguments.engines.split(","):
        for share in map(float, arguments.budgets.split(",")):
            budget = round(share * len(collection) * len(labels))
            found = label(collection, labels, judge, "budget", engine, budget=budget)
            line(name, f"{engine}, budget of {share:.0%}", found, collection, truth)


def label(
    collection: sonde.Collection, labels: list[str], judge: "Remembering | None", name: str, engine: str, **options: Any
) -> LabelReport:
    """Make a run."""
    settings = sonde.LabelSettings(engine=engine, name=name, replace=True, **options)
    return label_collection(collection.stored, labels, settings, judge=judge)


def line(name: str, what: str, report: LabelReport, collection: sonde.Collection, full: dict[int, int]) -> None:
    """Print a run's quality beside full NLI's."""
    quality, own = evaluate_labels(collection.stored, report.name, "truth"), chosen(collection, report.name)
    agreement = np.mean([own.get(doc) == number for doc, number in full.items()])
    print(
        f"| {name} | {report.documents:,} | {what} | {report.calls:,} | {report.calls / report.full_calls:.1%}"
        f" | {quality.accuracy:.3f} | {quality.macro_f1:.3f} | {agreement:.3f} |",
        flush=True,
    )


def chosen(collection: sonde.Collection, name: str) -> dict[int, int]:
    """Return the label's number of each document."""
    with collection.stored.view() as view:
        run = find_run(view.catalog, LABEL, name)
        docs, numbers, _ = assignments_of(view.catalog, run)
    return dict(zip(docs.tolist(), numbers.tolist(), strict=True))


class Remembering:
    """A judge that reads no text twice: every text is judged against every label and kept in a file."""

    name = "nli"

    def __init__(self, judge: NliJudge, path: Path) -> None:
        self.judge, self.path = judge, path
        self.model, self.template = judge.model, judge.template
        self.known: dict[str, np.ndarray] = {}
        if path.exists():
            stored = np.load(path)
            self.known = dict(zip(stored["keys"].tolist(), stored["margins"], strict=True))

    def margins(
        self, texts: Sequence[str], labels: Sequence[Label], multi_label: bool,
        chosen: np.ndarray | None = None, on_batch: Callable[[int], object] | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Return float32 [texts, labels], NaN where `chosen` is False."""
        keys = [sha256(text.encode()).hexdigest() for text in texts]
        if new := [place for place, key in enumerate(keys) if key not in self.known]:
            found = self.judge.margins([texts[place] for place in new], labels, multi_label)
            self.known |= {keys[place]: row for place, row in zip(new, found, strict=True)}
            if len(self.known) % 20 == 0 or len(new) < len(keys):
                np.savez(self.path, keys=np.array(list(self.known)), margins=np.stack(list(self.known.values())))
        margins = np.stack([self.known[key] for key in keys])
        return margins if chosen is None else np.where(chosen, margins, np.nan).astype(np.float32)


def opened(name: str, folder: Path, most: int | None, dtype: str) -> tuple[sonde.Collection, list[str]]:
    """The collection of a set, with the truth in words in the column "truth"."""
    rows = list(documents(name))
    rows = rows[:: max(1, len(rows) // most)] if most else rows
    path = folder / f"{name}{most or ''}.sonde"
    if not path.exists():
        sonde.index(rows, path, text="text", title="title", id="id", settings=sonde.BuildSettings(dtype=dtype))
    return sonde.open(path), sorted({row["truth"] for row in rows})


def documents(name: str) -> Iterator[dict[str, Any]]:
    """Texts of a set; of those with a test split, that alone."""
    topics = DATA / "topics"
    if name == "banking77":
        with (topics / "banking77_test.csv").open(encoding="utf-8") as stream:
            for number, each in enumerate(csv.DictReader(stream)):
                yield {
                    "id": str(number),
                    "title": "",
                    "text": each["text"],
                    "truth": each["category"].replace("_", " "),
                }
        return
    with gzip.open(topics / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            each = json.loads(line)
            if name == "newsgroups20" and each["split"] != "test":
                continue
            truth = each.get("coarse") or each["label"]
            truth = {**NEWSGROUPS, **TREC}.get(truth, truth.replace("-", " "))
            title = each.get("title") or each.get("subject") or ""
            yield {"id": str(number), "title": title, "text": each["text"], "truth": truth}


if __name__ == "__main__":
    main()
