"""How good a tuned bi-encoder is on held-out examples, and its model card."""

from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from ....indexer.document import Document
from ....indexer.encoder import Encoder
from ....indexer.ingest.index import index_documents
from ....indexer.progress import Notify, Progress, silent
from ....indexer.store.collection import StoredCollection
from ...evaluate.search import Gain, gain, per_query, run_of
from ...evaluate.sts import spearman
from ...evaluate.trec import run_queries
from ...search.results import Mode
from ...search.settings import SearchSettings
from .examples import Examples, HeldOut

CORPUS = 5_000
"""Passages among which held-out queries look for theirs, unless told otherwise."""
Outcome = dict[str, np.ndarray]
"""What each example came to, by the measure's name."""


def outcome(
    held: Examples, taught: Examples, encoder: Encoder, corpus: int, folder: Path, notify: Notify = silent
) -> Outcome:
    """Return what a bi-encoder makes of held-out examples.

    Pairs: each query's nDCG@10 and MRR@10, dense and hybrid, in an ordinary collection of all held-out passages and of
    as many others as fit into `corpus`. Scores: the cosine of each pair beside its score. Labels: whether the nearest
    text of those trained on has the same label.

    Args:
        held: What to measure on.
        taught: What was trained on.
        encoder: The bi-encoder.
        corpus: Passages to search, at most, unless more are held out.
        folder: Where the collection is made; one that was begun there is gone on with.
        notify: Receives progress.
    """
    if held.kind == "pairs":
        return _retrieval(held, taught, encoder, corpus, folder, notify)
    first = encoder.encode_texts(list(held.first))
    if held.kind == "scores":
        second = encoder.encode_texts(list(held.second))
        cosines = (first * second).sum(1) / np.maximum(
            1e-12, np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        )
        return {"spearman": np.stack([cosines, np.array(held.scores)], 1)}
    nearest = (first @ encoder.encode_texts(list(taught.first)).T).argmax(1)
    right = [taught.labels[place] == label for place, label in zip(nearest.tolist(), held.labels, strict=True)]
    return {"accuracy": np.array(right, np.float64)}


def gains(before: Outcome, after: Outcome) -> tuple[Gain, ...]:
    """Return each measure before and after, the most telling first."""
    return tuple(
        gain(name, before[name], after[name], statistic=_rank_correlation if name == "spearman" else None)
        for name in before
    )


def _rank_correlation(pairs: np.ndarray) -> float:
    return spearman(pairs[:, 0], pairs[:, 1])  # NaN where a resample has equal scores only: it says nothing


def _retrieval(
    held: Examples, taught: Examples, encoder: Encoder, corpus: int, folder: Path, notify: Notify
) -> Outcome:
    texts = corpus_of(held, taught, corpus)
    places = {text: str(place) for place, text in enumerate(texts)}
    queries = list(dict.fromkeys(held.first))
    numbers = {query: str(number) for number, query in enumerate(queries)}
    truth: dict[str, dict[str, float]] = {number: {} for number in numbers.values()}
    for query, passage in zip(held.first, held.second, strict=True):
        truth[numbers[query]][places[passage]] = 1
    path = folder / "passages.sonde"
    folder.mkdir(parents=True, exist_ok=True)
    documents = (Document(text, key=place) for text, place in places.items())
    index_documents(documents, path, encoder=encoder, notify=_progress_only(notify))
    collection = StoredCollection.open(path, encoder=encoder)
    found: Outcome = {}
    modes: tuple[tuple[Mode, str], ...] = (("dense", ""), ("hybrid", "hybrid "))
    for mode, prefix in modes:
        asked = [(number, query) for query, number in numbers.items()]
        run = run_of(run_queries(collection, asked, SearchSettings(k=10, mode=mode, collapse=False), excerpts=False))
        found |= {prefix + name: values for name, values in per_query(run, truth).items()}
    collection.close()
    return found


def corpus_of(held: Examples, taught: Examples, most: int) -> list[str]:
    """Return the passages that are searched: all held-out ones, then others spread over those trained on."""
    own = list(dict.fromkeys(held.second))
    others = [text for text in dict.fromkeys(taught.second) if text not in set(own)]
    some = max(0, most - len(own))
    if len(others) > some:
        others = [others[place] for place in np.linspace(0, len(others) - 1, some).astype(int).tolist()] if some else []
    return own + others


def _progress_only(notify: Notify) -> Notify:
    return lambda event: (
        notify(Progress("measure", event.done, event.total, event.unit)) if isinstance(event, Progress) else None
    )


LIBRARIES = ("sentence-transformers", "transformers", "torch")
_KINDS = {
    "pairs": "pairs of a query and a passage that answers it (multiple negatives ranking loss)",
    "scores": "pairs of texts with a score (CoSENT loss)",
    "labels": "texts with labels, as pairs of the same label and of two (CoSENT loss)",
}


def model_card(facts: dict[str, Any], held: HeldOut, found: tuple[Gain, ...]) -> str:
    """Return the card in Markdown, with the metadata that the model hub reads."""
    settings = facts["settings"]
    kind = "a low-rank change (LoRA, rank {lora}), merged" if settings["lora"] else "all weights but word embeddings"
    rows = [f"| {g.measure} | {g.before:.4f} | {g.after:.4f} | {g.low:+.4f} to {g.high:+.4f} |" for g in found]
    mined = f"{facts['with_wrong_passages']:,} of them have wrong passages beside the right one. "
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in LIBRARIES)
    lines = [
        "---",
        "library_name: sentence-transformers",
        "pipeline_tag: sentence-similarity",
        "tags: [sentence-transformers, sentence-similarity]",
        "---",
        "",
        f"# A bi-encoder tuned from {facts['base']}",
        "",
        "Made by `sonde train biencoder`; `sonde index --model FOLDER` uses it.",
        "",
        "## Data",
        "",
        f"{facts['trained']:,} examples of {facts['data']}: {_KINDS[facts['kind']]}. "
        + (mined if facts["kind"] == "pairs" else "")
        + f"{held} were held out; {held.overlap}.",
        "",
        "## Recipe",
        "",
        f"- trained: {kind.format(lora=settings['lora'])}",
        f"- steps: {facts['steps']:,} with {settings['batch']} examples each; epochs: {settings['epochs']:g}",
        f"- highest rate: {settings['rate']:g}, after {settings['warmup']:.0%} of the steps; then it falls in a line",
        f"- texts cut at {settings['max_tokens']} tokens while training",
        f"- seed: {settings['seed']}",
        f"- versions: {versions}",
        "",
        "## Figures",
        "",
        "On the held-out examples; the interval is of the difference (95 %, paired bootstrap).",
        "",
        "| measure | before | after | interval of the difference |",
        "|---|---|---|---|",
        *rows,
        "",
    ]  # fmt: skip
    return "\n".join(lines)
