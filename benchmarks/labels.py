"""Labels from names: the accuracy of every engine, and of judging a sample against judging everything.

    python benchmarks/labels.py --sets bbc                               every engine, the bundled NLI model
    python benchmarks/labels.py --sets bbc --budgets 0.05,0.1 --model facebook/bart-large-mnli --device cuda

Collections are kept in --folder. A budget is a share of the calls that judging every text against every label takes.
"""

import argparse
import csv
import gzip
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from _side_by_side import DATA, machine

import sonde
from sonde.pipelines.evaluate.labels import evaluate_labels

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
    """Index what is not indexed yet, label, and print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "sonde-labels")
    parser.add_argument("--sets", default="bbc,newsgroups20,trec6,banking77,stackoverflow")
    parser.add_argument("--engines", default="similarity,nli,ensemble")
    parser.add_argument("--budgets", default="0.05,0.1")
    parser.add_argument("--model", default=None)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--most", type=int, default=None, help="texts of a set, for a trial")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    print(f"{machine('sonde', 'torch', 'transformers', 'scikit-learn')}\n")
    print("| set | engine | budget | calls | of full | accuracy | macro F1 | agreement with the judge |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name in arguments.sets.split(","):
        collection, labels = opened(name, arguments.folder, arguments.most)
        full = len(collection) * len(labels)
        for engine in arguments.engines.split(","):
            shares = [None, *map(float, arguments.budgets.split(","))] if engine != "similarity" else [None]
            for share in shares:
                row(name, collection, labels, engine, share and round(share * full), arguments)


def row(
    name: str, collection: sonde.Collection, labels: list[str], engine: str, budget: int | None,
    arguments: argparse.Namespace,
) -> None:  # fmt: skip
    """Label once and print a line."""
    judged = {"model": arguments.model, "dtype": arguments.dtype} if engine != "similarity" else {}
    report = collection.label(
        labels, engine=engine, budget=budget, name=engine, replace=True, device=arguments.device, **judged
    )
    quality = evaluate_labels(collection, engine, "truth")
    agreement = f"{report.agreement:.3f} of {report.held_back}" if report.agreement is not None else ""
    print(
        f"| {name} | {engine}, {report.model} | {budget or ''} | {report.calls}"
        f" | {report.calls / report.full_calls:.1%}"
        f" | {quality.accuracy:.3f} | {quality.macro_f1:.3f} | {agreement} |",
        flush=True,
    )


def opened(name: str, folder: Path, most: int | None) -> tuple[sonde.Collection, list[str]]:
    """The collection of a set, with the truth in words in the column "truth"."""
    rows = list(documents(name))
    rows = rows[:: max(1, len(rows) // most)] if most else rows
    path = folder / f"{name}{most or ''}.sonde"
    if not path.exists():
        sonde.index(rows, path, text="text", title="title", id="id")
    return sonde.open(path), sorted({row["truth"] for row in rows})


def documents(name: str) -> Iterator[dict[str, str]]:
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
