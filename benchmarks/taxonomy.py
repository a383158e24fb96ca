"""Taxonomies: what an update and a refit keep after 20 % of the texts were deleted and others came.

    python benchmarks/taxonomy.py bbc stackoverflow banking77

A class is hidden, and a fifth of the other texts comes later. A taxonomy is made of the rest: of clusters, of topics
with three levels, or of the true classes. Then a person's work is imitated: a hundred documents are moved to other
groups at random and so locked, two groups are merged, one is split, one is renamed and locked. Then a fifth of the
known texts is deleted, the later texts and the hidden class are added, and the taxonomy is updated, and refitted.

"locked" is the share of the locked documents that are still there and in their groups; "ids" that of the groups
that had documents and still have most of them. "found" is how much of the hidden class is in one proposed group, "pure"
how much of that group is of the class, "others" how many more groups were proposed. "NMI" compares groups with classes.
"""

import argparse
import csv
import gzip
import json
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from _side_by_side import DATA, machine
from sklearn.metrics import normalized_mutual_info_score

import sonde

LOCKED, SHARE = 100, 0.2
HEAD = "| set | made of | hidden class | groups | step | locked | ids | found | pure | others | NMI | s |"


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", choices=("bbc", "stackoverflow", "banking77", "newsgroups20"))
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--texts", type=int, default=3_000, help="texts of each set, drawn at random")
    parser.add_argument("--draws", type=int, default=2, help="hidden classes of each set")
    parser.add_argument("--of", nargs="+", default=["clusters", "topics", "classes"])
    parser.add_argument("--cache", type=Path, help="folder with collections SET.sonde of the same texts")
    arguments = parser.parse_args()
    print(f"{machine('sonde')}; {arguments.model}, {arguments.texts:,} texts of each set at most\n")
    print(HEAD + "\n" + "|---" * (HEAD.count("|") - 1) + "|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.sets:
            base, classes = _collection(Path(folder), name, arguments)
            hidden = np.random.default_rng(0).permutation(np.unique(list(classes.values())))[: arguments.draws]
            for seed, one in enumerate(hidden.tolist()):
                for source in arguments.of:
                    _Life(Path(folder) / "work.sonde", base, classes, one, seed).live(name, source)


def _read(name: str) -> list[tuple[str, str]]:
    if name == "banking77":
        with (DATA / "topics" / "banking77_train.csv").open(newline="") as stream:
            return [(row["text"], row["category"]) for row in csv.DictReader(stream)]
    with gzip.open(DATA / "topics" / f"{name}.jsonl.gz", "rt") as stream:
        rows = [json.loads(line) for line in stream]
    parts = [(row.get("subject", ""), row.get("title", ""), row.get("text", ""), row["label"]) for row in rows]
    return [("\n".join(part for part in texts if part), str(label)) for *texts, label in parts]


def _collection(folder: Path, name: str, arguments: argparse.Namespace) -> tuple[Path, dict[str, str]]:
    """Return a collection of a set, and the class of each id."""
    rows = [row for row in dict(_read(name)).items() if row[0].strip()]
    chosen = np.random.default_rng(0).permutation(len(rows))[: arguments.texts]
    texts = {str(place): rows[row] for place, row in enumerate(chosen.tolist())}
    kept = arguments.cache / f"{name}.sonde" if arguments.cache else folder / f"{name}.sonde"
    if not kept.exists():
        sonde.index([{"id": id, "text": text} for id, (text, _) in texts.items()], kept, id="id", model=arguments.model)
    return kept, {id: label for id, (_, label) in texts.items()}


class _Life:
    """The life of one taxonomy. Texts that come back get their old embeddings."""

    def __init__(self, path: Path, base: Path, classes: dict[str, str], hidden: str, seed: int) -> None:
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(base, path)
        self.shop, self.classes, self.hidden = sonde.open(path), classes, hidden
        self.chance = np.random.default_rng(seed)
        self.texts = {row["id"]: row["text"] for row in self.shop.rows()}
        ids = np.array(sorted(self.texts))
        away = np.array([classes[id] == hidden for id in ids])
        later = self.chance.random(len(ids)) < SHARE
        self.known, self.coming = ids[~away & ~later].tolist(), ids[away | later].tolist()
        self.shop.delete(self.coming)

    def live(self, name: str, source: str) -> None:
        """Make the taxonomy, edit it, change the texts, and print a row for the update and one for the refit."""
        self._make(source)
        groups = len(self.shop.taxonomy().groups)
        locked = self._edit()
        gone = self.chance.permutation(self.known)[: int(SHARE * len(self.known))].tolist()
        self.shop.delete(gone)
        self.shop.put([{"id": id, "text": self.texts[id]} for id in self.coming])
        for step in ("update", "refit"):
            began = time.perf_counter()
            found = self.shop.update_taxonomy() if step == "update" else self.shop.refit_taxonomy()
            taken = time.perf_counter() - began
            cells = [name, source, self.hidden, groups, step, *self._measured(locked, found), f"{taken:.1f}"]
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)

    def _make(self, source: str) -> None:
        if source == "classes":
            names = sorted({self.classes[id] for id in self.known})
            rows = "\n".join(f"{id},{self.classes[id]}" for id in self.known)
            groups = "\n".join(["name", *names])
            self.shop.import_taxonomy(groups, "csv", documents=f"id,group\n{rows}\n")
        elif source == "clusters":
            self.shop.cluster("before", k=len({self.classes[id] for id in self.known}))
            self.shop.make_taxonomy("before")
        else:
            self.shop.topics("before")
            self.shop.make_taxonomy("before")

    def _edit(self) -> dict[str, int]:
        """Imitate a person's work; return the group of each locked document."""
        edit, groups = self.shop.edit_taxonomy, self.shop.taxonomy().groups
        parents = {group.parent for group in groups}
        leaves = [group for group in groups if group.number not in parents and group.documents >= 10]
        largest = max(leaves, key=lambda group: group.documents).number
        some = [group.number for group in leaves if group.number != largest]
        edit("split", groups=[largest], k=2)
        edit("merge", groups=some[:2])
        edit("rename", groups=[some[2]], name="A group of a person")
        edit("lock", groups=[some[2]])
        free = [one.id for one in self.shop.assignments("taxonomy") if one.number != some[2]]
        left = [some[0], *some[3:]]
        for place, id in enumerate(self.chance.permutation(free)[:LOCKED].tolist()):
            edit("move", ids=[id], to=left[place % len(left)])
        held = {one.id: one.number for one in self.shop.assignments("taxonomy")}
        documents = self.shop.export_taxonomy("documents").splitlines()
        locked = {row["id"] for row in csv.DictReader(documents) if row["locked"]}
        return {id: number for id, number in held.items() if id in locked or number == some[2]}

    def _measured(self, locked: dict[str, int], found: object) -> list[str]:
        now = {one.id: one.number for one in self.shop.assignments("taxonomy")}
        there = [id for id in locked if id in self.texts and id in now]
        kept = np.mean([now[id] == locked[id] for id in there])
        groups = [group for group in self.shop.taxonomy().groups if group.proposed]
        of_class = {group.number: [id for id, number in now.items() if number == group.number] for group in groups}
        right = {number: sum(self.classes[id] == self.hidden for id in ids) for number, ids in of_class.items()}
        best = max(right, key=lambda number: right[number], default=None)
        total = sum(self.classes[id] == self.hidden for id in now)
        share = 0.0 if best is None else right[best] / total
        pure = 0.0 if best is None else right[best] / len(of_class[best])
        nmi = normalized_mutual_info_score([self.classes[id] for id in now], list(now.values()))
        ids = found.kept  # type: ignore[attr-defined]
        return [
            f"{kept:.1%} of {len(there)}", f"{ids[0]} of {ids[1]}", f"{share:.0%}", f"{pure:.0%}",
            str(len(groups) - (best is not None)), f"{nmi:.3f}",
        ]  # fmt: skip


if __name__ == "__main__":
    main()
