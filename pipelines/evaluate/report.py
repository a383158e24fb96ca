"""The table of a model's forms as Markdown, with what one must know to read it."""

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from ...indexer.encoder import STATIC_MODEL
from ...indexer.wording import shown_p, size
from .models import FormQuality
from .variants import BUSY, DIMENSIONS, EXACT, PER_CHANNEL, PER_TENSOR, PRUNED

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
