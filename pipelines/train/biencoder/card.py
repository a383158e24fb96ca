"""The model card of a tuned bi-encoder: data, recipe, seed, figures."""

from importlib import metadata
from typing import Any

from ...evaluate.paired import Gain

LIBRARIES = ("sentence-transformers", "transformers", "torch")
_KINDS = {
    "pairs": "pairs of a query and a passage that answers it (multiple negatives ranking loss)",
    "scores": "pairs of texts with a score (CoSENT loss)",
    "labels": "texts with labels, as pairs of the same label and of two (CoSENT loss)",
}


def model_card(facts: dict[str, Any], found: tuple[Gain, ...]) -> str:
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
        + f"{facts['held_out']:,} others were held back; no text of theirs was trained on.",
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
        "On the examples held back; the interval is of the difference (95 %, paired bootstrap).",
        "",
        "| measure | before | after | interval of the difference |",
        "|---|---|---|---|",
        *rows,
        "",
    ]  # fmt: skip
    return "\n".join(lines)
