"""Labels from 8 examples a class, on the stored vectors and on those of a model tuned on them, beside zero-shot.

Examples are drawn from the training part by seed; accuracy is that of all other texts of the collection.

    python benchmarks/few_shot.py --data ../shared/data --sets trec6 banking77 --folder runs
"""

import argparse
import csv
import gzip
import json
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from _side_by_side import DATA, machine

import sonde
from sonde.pipelines.label import LabelSettings
from sonde.pipelines.train.few_shot import LabelledExample, label_by_examples

SPELLED = {"ABBR": "abbreviation", "DESC": "description", "ENTY": "entity", "HUM": "human", "LOC": "location",
           "NUM": "number"}  # fmt: skip
"""What zero-shot reads in place of trec6's short names."""


def rows_of(data: Path, name: str) -> list[dict[str, str]]:
    """Return the texts of a set with their class and part."""
    if name == "trec6":
        with gzip.open(data / "topics" / "trec6.jsonl.gz", "rt") as lines:
            found = [json.loads(line) for line in lines]
        return [{"text": row["text"], "truth": row["coarse"], "part": row["split"]} for row in found]
    rows = []
    for part in ("train", "test"):
        with (data / "topics" / f"banking77_{part}.csv").open(newline="") as file:
            rows += [{"text": r["text"], "truth": r["category"], "part": part} for r in csv.DictReader(file)]
    return rows


def main() -> None:
    """Label, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", nargs="+", default=["trec6", "banking77"])
    parser.add_argument("--folder", type=Path, default=Path("build/few-shot"))
    parser.add_argument("--examples", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=1, help="so many draws of the examples")
    parser.add_argument("--no-tuning", action="store_true")
    given = parser.parse_args()
    print(machine("sentence-transformers", "torch"))
    given.folder.mkdir(parents=True, exist_ok=True)
    for name in given.sets:
        known = {row["text"]: row for row in rows_of(given.data, name)}
        path = given.folder / f"{name}.sonde"
        opened = sonde.open(path) if path.exists() else sonde.index(list(known.values()), path, text="text")
        with opened.stored.view() as view:
            stored = view.catalog.connection.execute("SELECT key, text FROM documents ORDER BY doc").fetchall()
        rows = [{"id": key, **known[text]} for key, text in stored if text in known]
        labels = sorted({str(row["truth"]) for row in rows})
        said = {SPELLED.get(label, label.replace("_", " ")): label for label in labels}
        opened.label(list(said), settings=LabelSettings(name="zero", replace=True))
        found: dict[str, list[float]] = defaultdict(list)
        for seed in range(given.seeds):
            taught = drawn(rows, given.examples, seed)
            others = {row["id"]: row["truth"] for row in rows if row["id"] not in {one.id for one in taught}}
            settings = LabelSettings(name="few", replace=True, seed=seed)
            label_by_examples(opened.stored, taught, settings)
            found["linear model on the stored vectors"].append(accuracy(opened, "few", others))
            found["zero-shot"].append(accuracy(opened, "zero", others, said))
            if not given.no_tuning:
                folder = given.folder / f"{name}-{seed}-tuned"
                shutil.rmtree(folder, ignore_errors=True)
                label_by_examples(opened.stored, taught, settings, fine_tune=folder)
                found["the same after tuning on them"].append(accuracy(opened, "few", others))
            print(name, seed, {key: round(values[-1], 4) for key, values in found.items()}, flush=True)
        for key, values in found.items():
            print(f"{name}: {key}: {np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})", flush=True)


def drawn(rows: list[dict[str, str]], count: int, seed: int) -> list[LabelledExample]:
    """Return so many examples of each class from the training part."""
    by_class = defaultdict(list)
    for row in rows:
        if row["part"] == "train":
            by_class[row["truth"]].append(row["id"])
    chance = np.random.default_rng(seed)
    return [
        LabelledExample(label, id=str(key))
        for label in sorted(by_class)
        for key in chance.choice(by_class[label], min(count, len(by_class[label])), replace=False)
    ]


def accuracy(opened: Any, run: str, truth: dict[str, str], said: dict[str, str] | None = None) -> float:
    """Return the share of right labels among the texts of `truth`."""
    with opened.view() as view:
        sql = "SELECT d.key, i.name FROM runs JOIN run_documents r USING(run) JOIN documents d USING(doc)"
        sql += " JOIN run_items i ON i.run = r.run AND i.item = r.item WHERE runs.kind = 'label' AND runs.name = ?"
        found = dict(view.catalog.connection.execute(sql, (run,)))
    return float(np.mean([(said or {}).get(found[key], found[key]) == label for key, label in truth.items()]))


if __name__ == "__main__":
    main()
