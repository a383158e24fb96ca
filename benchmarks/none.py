"""None of these: how well foreign texts are told, how right the chances are, and what confirmations add.

    python benchmarks/none.py                         AUROC, calibration and the promised rate on five sets
    python benchmarks/none.py --fit                   the weights of pipelines/label/none.py, from three other sets
    python benchmarks/none.py --confirm --sets trec6  accuracy after 50 confirmations

A quarter of the classes is left out of the labels, in five draws; their texts are foreign. No set that is measured is
used to fit, but banking77, where the measured texts are others (the test part) with the same classes.
"""

import argparse
import gzip
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _judged_sets import SAME_ROWS, SETS, collection_of
from _side_by_side import DATA, machine
from labels import NEWSGROUPS, TREC, documents

import sonde
from sonde.indexer.encoder import load_encoder
from sonde.indexer.store.run_writing import Snapshot
from sonde.indexer.store.view import document_vectors, normalized
from sonde.pipelines.label import make_labels
from sonde.pipelines.label.carry import adjusted
from sonde.pipelines.label.margins import LabelTexts, Margins, label_corpus
from sonde.pipelines.label.none import CONFORMAL, chances, evidence, recalibrated, refusal, refused
from sonde.pipelines.label.review import UNCERTAIN
from sonde.pipelines.label.scores import adapted_margins, label_vectors
from sonde.pipelines.label.settings import LabelSettings
from sonde.pipelines.label.solvers import probabilities

DRAWS = 5
FITTED = ("opentrivia", "banking77", "arxiv")
ARXIV = {
    "cs.LG": "machine learning", "cs.CV": "computer vision", "cs.CL": "natural language processing",
    "cs.RO": "robotics", "cs.CR": "security and cryptography", "cs.AI": "artificial intelligence",
    "cs.SE": "software engineering", "cs.HC": "human-computer interaction", "cs.IR": "information retrieval",
    "cs.DC": "distributed computing", "cs.SD": "sound and audio", "cs.NI": "networking",
    "cs.DS": "data structures and algorithms", "cs.IT": "information theory", "cs.CY": "computers and society",
    "cs.GR": "graphics", "cs.DB": "databases", "cs.SI": "social networks", "cs.AR": "hardware architecture",
    "cs.GT": "game theory",
}  # fmt: skip
Loaded = tuple[np.ndarray, np.ndarray, np.ndarray]
"""float32 [n, d] texts, int64 [n] classes, float32 [classes, d] names."""


def main() -> None:
    """Read the sets, and print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "sonde-none")
    parser.add_argument("--sets", default="bbc,stackoverflow,newsgroups20,banking77_test,trec6")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--confirm", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    print(f"{machine('sonde', 'scikit-learn')}\n", flush=True)
    if given.fit:
        fit({name: loaded(name, given.folder) for name in FITTED})
        return
    for name in given.sets.split(","):
        measure = confirm if given.confirm else tell
        print(name, json.dumps(measure(*loaded(name, given.folder))), flush=True)


def loaded(name: str, folder: Path) -> Loaded:
    """Return a set's texts, classes and names of classes; what was embedded is kept in the folder."""
    kept = folder / f"{name}.npz"
    if not kept.exists():
        ids, vectors, own = _read(name, folder)
        truth = [own[key] for key in ids]
        classes = sorted(set(truth))
        names = label_vectors(load_encoder(), make_labels(classes))
        np.savez(kept, vectors=normalized(vectors), truth=[classes.index(each) for each in truth], names=names)
    found = np.load(kept)
    return found["vectors"], found["truth"], found["names"]


def _read(name: str, folder: Path) -> tuple[list[str], np.ndarray, dict[str, str]]:
    asked = {"trec6": "trec6_coarse"}.get(name, name)
    if asked in SETS:
        judged = SETS[asked]()
        own = {key: c for truth, c in zip(judged.truth, judged.classes, strict=True) for key in truth}
        own = {key: TREC.get(c, c.replace("_", " ").replace("-", " ")) for key, c in own.items()}
        opened = collection_of(SAME_ROWS.get(asked, asked), folder)
    else:
        sources = {"arxiv": _titles, "banking77_test": lambda: documents("banking77"), "newsgroups20": _newsgroups}
        rows = list(sources[name]())
        own = {row["id"]: row["truth"] for row in rows}
        path = folder / f"{name}.sonde"
        if not path.exists():
            sonde.index(rows, path, text="text", title="title", id="id")
        opened = sonde.open(path)
    with opened.stored.view() as view:
        docs = Snapshot.of(view).docs
        vectors, found = document_vectors(view, docs), view.documents(docs.tolist())
    keys = [found[doc].id for doc in docs.tolist()]
    here = [place for place, key in enumerate(keys) if key in own]
    return [keys[place] for place in here], vectors[here], own


def _titles() -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as parquet

    table = parquet.read_table(DATA / "titles" / "arxiv_cs.parquet", columns=["title", "categories"]).to_pylist()
    for place, row in enumerate(table[::9]):
        if row["categories"][0] in ARXIV:
            yield {"id": str(place), "title": "", "text": row["title"], "truth": ARXIV[row["categories"][0]]}


def _newsgroups() -> Iterator[dict[str, Any]]:
    with gzip.open(DATA / "topics" / "newsgroups20.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in list(map(json.loads, lines))[::3]:
            truth = NEWSGROUPS[row["label"]]
            yield {"id": str(row["id"]), "title": row["subject"], "text": row["text"][:1200], "truth": truth}


def left_out(classes: int, share: float = 0.25, seed: int = 0) -> list[np.ndarray]:
    """Return the classes that each draw leaves out; all draws differ."""
    rng, found = np.random.default_rng(seed), dict[tuple[int, ...], np.ndarray]()
    while len(found) < DRAWS:
        drawn = np.sort(rng.choice(classes, max(1, round(share * classes)), replace=False))
        found.setdefault(tuple(drawn.tolist()), drawn)
    return list(found.values())


def tell(vectors: np.ndarray, truth: np.ndarray, names: np.ndarray) -> dict[str, Any]:
    """Return the means over the draws, and what refusing costs where nothing is foreign."""
    from sklearn.metrics import roc_auc_score

    rows: list[dict[str, float]] = []
    for draw, out in enumerate(left_out(len(names))):
        rest = np.setdiff1d(np.arange(len(names)), out)
        foreign, cosines = np.isin(truth, out), vectors @ names[rest].T
        none = chances(vectors, names[rest])
        row = {"cosine": roc_auc_score(foreign, -cosines.max(axis=1)), "none": roc_auc_score(foreign, none)}
        row |= {"error": calibration(none, foreign), "said": none.mean(), "foreign": foreign.mean()}
        row |= of_labels(vectors, truth, names, rest, none)
        row["promise 0.1"] = promised(none, foreign, np.empty(0, np.int64))
        known = [np.random.default_rng((draw, n)).choice(len(truth), CONFORMAL, replace=False) for n in range(20)]
        again = [recalibrated(none, each, ~foreign[each][:, None]) for each in known]
        row["error, 50 corrections"] = np.mean([calibration(each, foreign) for each in again])
        row["promise, 50 corrections"] = np.mean([promised(none, foreign, each) for each in known])
        rows.append(row)
    given, whole = adapted_margins(vectors, names).argmax(axis=1), chances(vectors, names)
    right = given == truth
    all_labels = of_labels(vectors, truth, names, np.arange(len(names)), whole)
    few = np.sort(np.random.default_rng(0).choice(len(names), min(8, len(names) // 3), replace=False))
    found = {f"{key}, few labels": value for key, value in of_labels(vectors, truth, names, few).items()}
    found = {key: round(float(value), 3) for key, value in found.items()}
    quarter = np.setdiff1d(np.arange(len(names)), left_out(len(names))[0])
    for what, kept in (("all labels", np.arange(len(names))), ("a quarter left out", quarter), ("few labels", few)):
        for count in (10, 20, 40):
            errors = [after_corrections(vectors, truth, names, kept, count, seed) for seed in range(DRAWS)]
            found[f"error, {what}, {count} random corrections"] = round(float(np.mean(errors)), 3)
    found |= {f"{key}, all labels": round(float(value), 3) for key, value in all_labels.items()}
    found |= {key: round(float(np.nanmean([row[key] for row in rows])), 3) for key in rows[0]}
    return found | {
        "accuracy": round(float(right.mean()), 3), "with --none": round(float((right & (whole < 0.5)).mean()), 3),
        "refused of whole": round(float((whole >= 0.5).mean()), 3),
    }  # fmt: skip


def of_labels(
    vectors: np.ndarray, truth: np.ndarray, names: np.ndarray, kept: np.ndarray, none: np.ndarray | None = None
) -> dict[str, float]:
    """Return how right the probabilities of the given labels are: the softmax alone, and what a run stores."""
    none = chances(vectors, names[kept]) if none is None else none
    margins = Margins(adapted_margins(vectors, names[kept]), adapted=True)
    right = kept[margins.margins.argmax(axis=1)] == truth
    softmax, stored = (
        each.max(axis=1) for each in (probabilities(margins.margins, False), margins.probabilities(False, none))
    )
    sure = {
        f"right above 0.9, {what}": right[best > 0.9].mean() if best.max() > 0.9 else np.nan
        for what, best in (("softmax", softmax), ("stored", stored))
    }
    return {"error, softmax": calibration(softmax, right), "error, stored": calibration(stored, right), **sure}


def after_corrections(
    vectors: np.ndarray, truth: np.ndarray, names: np.ndarray, kept: np.ndarray, count: int, seed: int
) -> float:
    """Return the calibration error of the other texts when some, drawn at random, have been corrected."""
    known = np.sort(np.random.default_rng(seed).choice(len(truth), count, replace=False))
    own = (truth[known][:, None] == kept[None]).astype(float)
    corpus = LabelTexts(vectors, [str(place) for place in range(len(vectors))], lambda _: [], known, own)
    settings = LabelSettings()
    margins = label_corpus(corpus, (), names[kept], "similarity", None, settings)
    none, _ = refusal(corpus, names[kept], settings)
    right = kept[margins.margins.argmax(axis=1)] == truth
    others = np.setdiff1d(np.arange(len(truth)), known)
    return calibration(margins.probabilities(False, none).max(axis=1)[others], right[others])


def promised(none: np.ndarray, foreign: np.ndarray, known: np.ndarray) -> float:
    """Return the share of texts with a label that a promised tenth refuses."""
    return float(refused(none, 0.1, known, ~foreign[known][:, None])[~foreign].mean())


def calibration(chance: np.ndarray, truth: np.ndarray) -> float:
    """Return the expected calibration error over ten bins of equal width, 0 to 1."""
    places = np.minimum((chance * 10).astype(int), 9)
    parts = [places == place for place in range(10) if (places == place).any()]
    return float(sum(part.mean() * abs(chance[part].mean() - truth[part].mean()) for part in parts))


def fit(sets: dict[str, Loaded]) -> None:
    """Print the weights: a logistic regression, every draw with the same weight.

    For few texts, foreign are also texts of the other sets: a thousand for each draw.
    """
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(3)
    corpus, few = list[tuple[np.ndarray, np.ndarray]](), list[tuple[np.ndarray, np.ndarray]]()
    for name, (vectors, truth, names) in sets.items():
        others = np.concatenate([each[0][rng.choice(len(each[0]), 500)] for key, each in sets.items() if key != name])
        some = rng.choice(len(vectors), min(3_000, len(vectors)), replace=False)
        whole = [(np.arange(len(names)), out) for out in [*left_out(len(names)), np.empty(0, np.int64)]]
        for share in (0.1, 0.5, 0.0, 0.25) * 2:
            kept = rng.choice(len(names), min(len(names), int(rng.integers(4, 25))), replace=False)
            whole.append((kept, kept[: round(share * len(kept))]))
        for kept, out in whole:
            texts, own = vectors[some], truth[some]
            here, rest = np.isin(own, kept), np.setdiff1d(kept, out)
            texts, own = texts[here], own[here]
            foreign = np.isin(own, out)
            corpus.append((evidence(texts, names[rest]), foreign))
            best = (np.concatenate([texts, others]) @ names[rest].T).max(axis=1)
            few.append((best[:, None], np.concatenate([foreign, np.ones(len(others), bool)])))
    for what, parts in (("corpus", corpus), ("few texts", few)):
        values, foreign = (np.concatenate(side) for side in zip(*parts, strict=True))
        weights = np.concatenate([np.full(len(each[1]), 1_000 / len(each[1])) for each in parts])
        scale = values.std(axis=0)
        model = LogisticRegression(C=1e3).fit(values / scale, foreign, sample_weight=weights)
        print(what, (model.coef_[0] / scale).round(3).tolist(), round(float(model.intercept_[0]), 3), flush=True)


def confirm(vectors: np.ndarray, truth: np.ndarray, names: np.ndarray) -> dict[str, float]:
    """Return the accuracy over all texts after five rounds of ten confirmations, chosen in three ways."""
    from sonde.pipelines.label.carry import spread

    start, found = adapted_margins(vectors, names), dict[str, float]()
    found["none"] = float((start.argmax(axis=1) == truth).mean())
    for way in ("least certain", "uncertain and varied", "random"):
        rows, margins, rng = np.empty(0, np.int64), start, np.random.default_rng(0)
        for _ in range(5):
            best = np.sort(probabilities(margins, False), axis=1)
            free = np.setdiff1d(np.arange(len(truth)), rows)
            order = free[np.argsort((best[:, -1] - best[:, -2])[free], kind="stable")]
            pool = np.sort(order[: int(UNCERTAIN * len(order))])
            varied = pool[spread(vectors[pool], 10, np.random.default_rng(0), np.empty(0, np.int64))]
            new = {"least certain": order[:10], "random": rng.choice(free, 10, replace=False)}.get(way, varied)
            rows = np.concatenate([rows, new])
            margins = adjusted(start, vectors, rows, np.eye(len(names))[truth[rows]], False)
        own = margins.argmax(axis=1)
        own[rows] = truth[rows]
        found[way] = float((own == truth).mean())
    return {key: round(value, 3) for key, value in found.items()}


if __name__ == "__main__":
    main()
