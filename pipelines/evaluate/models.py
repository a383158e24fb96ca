"""One model in several forms: what each costs, what it loses in similarity and in search, and the table of both."""

import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ...indexer.document import Document
from ...indexer.encoder import DEFAULT_MODEL, STATIC_MODEL
from ...indexer.errors import SondeError, UsageError
from ...indexer.ingest.chunker import passage_text
from ...indexer.progress import Notify, silent
from ...indexer.readers import read_source
from ...indexer.store.view import normalized
from ...indexer.wording import shown_p, size
from ..similarity.pair_file import PairFile
from ..similarity.similarity import cosines, embed_texts
from .search import check_measures, per_query, randomisation
from .sts import Correlation, check_scores, correlation
from .trec import Qrels, read_qrels, read_queries, relevant
from .variants import (
    BUSY,
    DIMENSIONS,
    EXACT,
    PER_CHANNEL,
    PER_TENSOR,
    PRUNED,
    Cost,
    check_form,
    load_form,
    settled_memory,
    usual_forms,
    watched,
    weights_size,
)

DEPTH = 10
CUTS = (2 / 3, 1 / 2, 1 / 3, 1 / 6)
"""Shares of the dimensions that are tried when nobody chose."""
STORED = 2
"""Bytes of a stored vector's number: collections keep float16."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A set of documents with judged queries.

    Attributes:
        name: The folder's name.
        ids: Of the documents.
        texts: Their texts, title in front.
        queries: The id and the text of each judged query.
        qrels: The judgements of these queries.
    """

    name: str
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    queries: tuple[tuple[str, str], ...]
    qrels: Qrels


@dataclass(frozen=True, slots=True)
class FormQuality:
    """What a form of a model is worth and what it costs; differences are to the first form.

    Attributes:
        form: "float32", "bfloat16", "int8", "int8-tensor", "pruned:0.2", "dims:128", "static" …
        dimension: Of the vectors.
        spearman: On the pairs of sentences, -1 to 1.
        interval: Its 95 % interval.
        ndcg: nDCG@10 of exact search over whole documents, each cut to the model's window; None without a set.
        p: Two-sided p-value of a paired randomisation test of its difference; None for the first form.
        device: Where it ran.
        texts_per_second: Documents where there is a set, else sentences, by the clock; the fastest of the runs.
        texts_per_core_second: The same, by second of work of one core; other programs disturb it least.
        size: Bytes of the weights as this form holds them.
        memory: Bytes by which the process grew at most while encoding, from before the model was loaded.
        vector: Bytes of a stored vector.
        others: Share of the processor that other programs used while it was timed.
    """

    form: str
    dimension: int
    spearman: float
    interval: tuple[float, float]
    ndcg: float | None
    p: float | None
    device: str
    texts_per_second: float
    texts_per_core_second: float
    size: int
    memory: int
    vector: int
    others: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self) | {"interval": list(self.interval)}


@dataclass(frozen=True, slots=True)
class _Vectors:
    """Vectors of one form: of the sentences of each pair, of the documents and of the queries."""

    firsts: np.ndarray
    seconds: np.ndarray
    documents: np.ndarray
    queries: np.ndarray

    def cut(self, dimension: int) -> "_Vectors":
        parts = (self.firsts, self.seconds, self.documents, self.queries)
        return _Vectors(*(normalized(part[:, :dimension]) for part in parts))


def read_retrieval(folder: Path) -> Retrieval:
    """Read a set in BEIR's layout: corpus.jsonl, queries.jsonl (both also .gz) and qrels.tsv or qrels/test.tsv.

    Raises:
        SondeError: A file is missing or cannot be read, or no query has a judgement.
    """
    corpus = _file(folder, "corpus.jsonl.gz", "corpus.jsonl")
    queries = read_queries(_file(folder, "queries.jsonl.gz", "queries.jsonl"))
    qrels = read_qrels(_file(folder, "qrels.tsv", "qrels/test.tsv", "qrels/dev.tsv"))
    documents = [item for item in read_source(corpus) if isinstance(item, Document)]
    ids = tuple(document.key or "" for document in documents)
    asked = tuple((key, text) for key, text in queries if relevant(qrels.get(key, {})))
    if not asked or not {doc for key, _ in asked for doc in qrels[key]} & set(ids):
        raise SondeError(f"no judgement of {folder} names both a query and a document of it: do the ids match?")
    texts = tuple(passage_text(document.title, document.text) for document in documents)
    return Retrieval(folder.name, ids, texts, asked, {key: qrels[key] for key, _ in asked})


def _file(folder: Path, *names: str) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise SondeError(f"{folder} has no {names[0].removesuffix('.gz')}: give a folder in BEIR's layout")


def evaluate_models(
    pairs: PairFile, retrieval: Retrieval | None = None, *, model: str = DEFAULT_MODEL,
    forms: Sequence[str] | None = None, device: str = "auto", repeats: int = 1, notify: Notify = silent,
) -> list[FormQuality]:  # fmt: skip
    """Compare forms of a model on pairs with scores and, if given, on a set with judged queries.

    Args:
        pairs: Scored pairs of sentences.
        retrieval: Documents, queries and judgements.
        model: The bi-encoder.
        forms: See `check_form`; the usual ones, and float32 cut to four lengths, where None.
        device: "auto", "cpu", "cuda" …
        repeats: How often encoding is timed; the fastest counts.
        notify: Receives sentences that the user should read.

    Raises:
        UsageError: A form, the model's name or the device is not valid.
        SondeError: The pairs cannot be correlated with, or the model is not available.
        MissingExtraError: A set was given and ir-measures is not installed, or int8 asked for and ONNX is not.
    """
    check_scores(pairs)
    if repeats < 1:
        raise UsageError(f"repeats is {repeats}: time each form once or more")
    if retrieval is not None:
        check_measures()
    wanted = [check_form(form) for form in (forms or usual_forms(device))]
    sizes = [int(form.partition(":")[2]) for form in wanted if form.startswith(DIMENSIONS)]
    if sizes and EXACT not in wanted:
        raise UsageError(f"{DIMENSIONS}:{sizes[0]} cuts the vectors of {EXACT}: name {EXACT} too")
    found: list[tuple[FormQuality, _Scores]] = []
    for form in [form for form in wanted if not form.startswith(DIMENSIONS)]:
        notify(f"{form} …")
        blank, vectors = _measured(model, form, pairs, retrieval, device, repeats, notify)
        found.append(_judged(blank, vectors, pairs, retrieval))
        if form == EXACT:
            cuts = sizes or ([round(share * blank.dimension) for share in CUTS] if forms is None else [])
            found += [_judged(_shortened(blank, size), vectors.cut(size), pairs, retrieval) for size in cuts]
    return _compared(found)


_Scores = dict[str, float]
"""nDCG@10 of each query."""


def _measured(
    model: str, form: str, pairs: PairFile, retrieval: Retrieval | None, device: str, repeats: int, notify: Notify
) -> tuple[FormQuality, _Vectors]:
    """Load a form, time it, and return what it costs, its quality still blank, beside its vectors."""
    before = settled_memory()
    encoder = load_form(model, form, device, notify, symmetric=retrieval is None)
    texts = list(retrieval.texts) if retrieval else [*pairs.firsts, *pairs.seconds]
    encoder.encode_texts(texts[:8])  # whatever is set up at the first batch is no part of the time
    settled_memory()
    costs: list[Cost] = []
    encoded = np.empty((0, encoder.spec.dimension), np.float32)
    for _ in range(repeats):
        with watched(before, encoder.devices[0]) as cost:
            encoded = embed_texts(encoder, texts, notify)
        costs.append(cost)
    fastest = min(costs, key=lambda cost: cost.seconds)
    dimension = encoder.spec.dimension
    row = FormQuality(
        form=form, dimension=dimension, spearman=0.0, interval=(0.0, 0.0), ndcg=None, p=None,
        device=encoder.devices[0], texts_per_second=len(texts) / max(fastest.seconds, 1e-9),
        texts_per_core_second=len(texts) / max(min(cost.processor for cost in costs), 1e-2), size=weights_size(encoder),
        memory=max(cost.memory for cost in costs), vector=dimension * STORED, others=fastest.others,
    )  # fmt: skip
    if retrieval is None:
        return row, _Vectors(encoded[: len(pairs)], encoded[len(pairs) :], encoded[:0], encoded[:0])
    queries = encoder.encode_texts([text for _, text in retrieval.queries], True)
    if encoder.spec.query_prompt or encoder.spec.document_prompt:
        encoder = load_form(model, form, device, notify)
    return row, _Vectors(encoder.encode_texts(pairs.firsts), encoder.encode_texts(pairs.seconds), encoded, queries)


def _shortened(row: FormQuality, size: int) -> FormQuality:
    if size > row.dimension:
        raise UsageError(f"{DIMENSIONS}:{size} is more than the model's {row.dimension} dimensions: give fewer")
    return replace(row, form=f"{DIMENSIONS}:{size}", dimension=size, vector=size * STORED)


def _judged(
    row: FormQuality, vectors: _Vectors, pairs: PairFile, retrieval: Retrieval | None
) -> tuple[FormQuality, _Scores]:
    found: Correlation = correlation(cosines(vectors.firsts, vectors.seconds), pairs.scores, row.form, pairs.name)
    row = replace(row, spearman=found.spearman, interval=found.interval)
    if retrieval is None:
        return row, {}
    scores = _ndcg(vectors, retrieval)
    return replace(row, ndcg=sum(scores.values()) / len(scores)), scores


def _ndcg(vectors: _Vectors, retrieval: Retrieval) -> _Scores:
    """Return nDCG@10 of each query, over an exact search for the nearest documents."""
    similar = vectors.queries @ vectors.documents.T
    run: dict[str, dict[str, float]] = {}
    for (key, _), row in zip(retrieval.queries, similar, strict=True):
        best = np.argsort(-row, kind="stable")[:DEPTH]
        run[key] = {retrieval.ids[place]: float(row[place]) for place in best.tolist()}
    scores = per_query(run, retrieval.qrels, (f"nDCG@{DEPTH}",))[f"ndcg@{DEPTH}"]
    return dict(zip(retrieval.qrels, scores.tolist(), strict=True))


def _compared(found: list[tuple[FormQuality, _Scores]]) -> list[FormQuality]:
    """Add p-values of the differences of nDCG@10 to the first form."""
    first = found[0][1]
    rows = [found[0][0]]
    for row, scores in found[1:]:
        rows.append(replace(row, p=randomisation([scores[key] - first[key] for key in first])) if first else row)
    return rows


HEADINGS = ("form", "dims", "STS", "nDCG@10", "p", "texts/s", "a core", "speed", "weights", "memory", "a vector")


def cells(rows: Sequence[FormQuality]) -> list[tuple[str, ...]]:
    """Return the table without its heading.

    Texts a second are by the clock, marked with * where other programs used more than a tenth of the processor
    meanwhile; "a core" is texts by second of work of one core. Speed is relative to the first row, by work on a CPU and
    by the clock on other devices.
    """
    return [_cells(row, rows[0]) for row in rows]


def _cells(row: FormQuality, first: FormQuality) -> tuple[str, ...]:
    star = "*" if row.others > BUSY else ""
    cut = row.form.startswith(DIMENSIONS)
    name = "texts_per_core_second" if row.device == first.device == "cpu" else "texts_per_second"
    return (
        title(row.form),
        str(row.dimension),
        f"{row.spearman:.4f}",
        "–" if row.ndcg is None else f"{row.ndcg:.4f}",
        "–" if row.p is None else shown_p(row.p),
        "–" if cut else f"{row.texts_per_second:,.0f}{star}",
        "–" if cut else f"{row.texts_per_core_second:,.0f}",
        "–" if cut else f"{getattr(row, name) / getattr(first, name):.2f}",
        "–" if cut else size(row.size),
        "–" if cut else size(row.memory),
        size(row.vector),
    )


def title(form: str) -> str:
    """Return a form in words."""
    kind, _, number = form.partition(":")
    if kind == PRUNED:
        return f"{float(number):.0%} pruned"
    if kind == DIMENSIONS:
        return f"{EXACT}, {number} dimensions"
    return {PER_CHANNEL: "int8, per channel", PER_TENSOR: "int8, per tensor", STATIC_MODEL: "static, distilled"}.get(
        kind, kind
    )


def table_notes(rows: Sequence[FormQuality]) -> list[str]:
    """Return what the table does not say by itself."""
    found = []
    if any(row.form.startswith(PRUNED) for row in rows):
        found.append(
            "Pruned weights are zeros that are stored and multiplied like all others: without sparse kernels this "
            "saves neither time nor memory nor disk. It shows how much of the weights matters."
        )
    if any(row.form.startswith(DIMENSIONS) for row in rows):
        found.append(
            "Shortened vectors save room in the collection and time in the search, not in embedding: the model runs "
            "as before."
        )
    if any(row.others > BUSY for row in rows):
        most = max(row.others for row in rows)
        found.append(
            f"* Other programs used up to {most:.0%} of the processor meanwhile: these times by the clock are not to "
            "be relied on. What a core does in a second of work, and the speed by that, suffer less."
        )
    return found


def markdown(rows: Sequence[FormQuality], model: str, pairs: str, retrieval: str | None, texts: int) -> str:
    """Return the table as Markdown, with the machine, the sets and the notes."""
    versions = ", ".join(f"{package} {version(package)}" for package in ("sonde", "torch", "transformers"))
    what = f"{texts:,} documents of {retrieval}" if retrieval else f"{texts:,} sentences of {pairs}"
    lines = [
        f"{model}, STS: {pairs}, nDCG@10: {retrieval or 'no set given'}; timed on {what}. {processor()}, {versions}.",
        "",
        f"| {' | '.join(HEADINGS)} |",
        f"|{'---|' * len(HEADINGS)}",
        *(f"| {' | '.join(row)} |" for row in cells(rows)),
        "",
        *(f"{note}\n" for note in table_notes(rows)),
    ]
    return "\n".join(lines).rstrip() + "\n"


def processor() -> str:
    """Return the processor, how many cores may be used, and Python's version."""
    import psutil

    names = [platform.processor() or platform.machine()]
    info = Path("/proc/cpuinfo")
    if info.exists():
        named = [line for line in info.read_text("utf-8", "replace").splitlines() if line.startswith("model name")]
        names = [line.partition(":")[2].strip() for line in named] or names
    return f"{names[0]}, {psutil.cpu_count()} cores, Python {platform.python_version()}"
