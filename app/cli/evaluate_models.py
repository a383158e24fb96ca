"""`sonde evaluate sts`, `models` and `bitext`: how good models are, on files of texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...indexer.errors import UsageError
from ...indexer.files import check_different, check_target
from ...indexer.wording import counted, size
from .output import Device, Json, print_json, progress, say, say_notes, snippet
from .texts import BitextModel, Dtype, Neighbours, Prompt

if TYPE_CHECKING:
    from ...pipelines.evaluate.sts import StsQuality

NAME = 32
Columns = Annotated[
    str | None, typer.Option("--columns", metavar="A,B,SCORE", help="The columns, by name or by number from 1.")
]
Scale = Annotated[str, typer.Option("--scale", metavar="LOW,HIGH", help="Lowest and highest score allowed.")]


def evaluate_sts(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="File of sentence pairs with scores; one or several.")
    ],
    models: Annotated[
        list[str] | None, typer.Option("--model", metavar="M", help="A bi-encoder; repeat it to compare several.")
    ] = None,
    columns: Columns = None,
    scale: Scale = "0,5",
    prompt: Prompt = None,
    truncate_dim: Annotated[
        int | None, typer.Option("--truncate-dim", metavar="N", help="Matryoshka: keep N dimensions.")
    ] = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    json: Json = False,
) -> None:
    """Compare bi-encoders on sentence pairs scored by people: Spearman's and Pearson's correlation.

    Files have STS-B's layout (sentence, sentence, score, no header) or named columns, as CSV, TSV, JSONL or
    Parquet. Pearson's correlation is reported for the cosine and for the angular similarity; Spearman's is the same for
    both. "a core" is the number of sentences per second of CPU time, which other programs affect least.

    \b
    Examples:
      sonde evaluate sts sts.csv
      sonde evaluate sts sts.csv --model all-MiniLM-L6-v2 --model static --model ./my-model
      sonde evaluate sts sick.tsv --columns sentence_A,sentence_B,relatedness_score --scale 1,5
    """
    from ...indexer.encoder import DEFAULT_MODEL
    from ..api.models import evaluate_sts as run

    pairs = _read_scored(files, columns, scale)
    options: dict[str, Any] = {"device": device, "dtype": dtype, "truncate_dim": truncate_dim}
    with progress(quiet=json) as notify:
        found = run(pairs, models or [DEFAULT_MODEL], prompt=prompt, notify=notify, **options)
    if json:
        for quality in found:
            print_json(quality.to_dict())
        return
    _print_table(found)


def _read_scored(files: Sequence[Path], columns: str | None, scale: str) -> list[Any]:
    """Read files of scored pairs.

    Raises:
        UsageError: The scale is none, or columns are not clear.
        SondeError: A file cannot be read.
    """
    from ..api.models import read_pair_file

    limits = _read_scale(scale)
    return [read_pair_file(file, scored=True, columns=columns, scale=limits) for file in files]


def _read_scale(text: str) -> tuple[float, float]:
    """Return the least and the greatest score of "0,5".

    Raises:
        UsageError: These are not two numbers, the first below the second.
    """
    try:
        least, greatest = (float(part) for part in text.split(","))
    except ValueError:
        least, greatest = 0.0, 0.0
    if not least < greatest:
        raise UsageError(f"--scale {text!r} is not a valid range: give the lowest and the highest score, such as 0,5")
    return least, greatest


def _print_table(found: "Sequence[StsQuality]") -> None:
    """Print a table for each file."""
    from ...pipelines.evaluate.variants import BUSY

    for file in dict.fromkeys(quality.file for quality in found):
        rows = [quality for quality in found if quality.file == file]
        print(f"{file}: {counted(rows[0].pairs, 'pair')}, {counted(rows[0].sentences, 'sentence')}")
        print(
            f"{'model':<{NAME}} {'Spearman':>8} {'95 % interval':>15} {'Pearson':>7} {'angular':>7} "
            f"{'sentences/s':>11} {'a core':>7} {'weights':>8} {'memory':>8} {'dims':>5}"
        )
        for quality in rows:
            print(_row(quality))
    most = max(quality.others for quality in found)
    if most > BUSY:
        say(f"note: other programs used up to {most:.0%} of the processor: do not rely on sentences/s")


def _row(quality: "StsQuality") -> str:
    low, high = quality.interval
    name = _model_name(quality.model) + ("" if quality.dtype == "float32" else f" {quality.dtype}")
    return (
        f"{name:<{NAME}} {quality.spearman:>8.4f} {f'{low:.3f} to {high:.3f}':>15} {quality.pearson:>7.4f} "
        f"{quality.pearson_angular:>7.4f} {quality.sentences / max(quality.seconds, 1e-9):>11,.0f} "
        f"{quality.sentences / max(quality.processor_seconds, 1e-2):>7,.0f} "
        f"{size(quality.size):>8} {size(quality.memory):>8} {quality.dimension:>5}"
    )


def _model_name(model: str) -> str:
    """Return a model's name as it fits into a table: of a folder its last two parts, at most 32 characters."""
    path = Path(model)
    name = "/".join(path.parts[-2:]) if path.is_absolute() else model
    return name if len(name) <= NAME else "…" + name[1 - NAME :]


def evaluate_models(
    on: Annotated[
        Path, typer.Option("--on", metavar="FILE", help="Pairs of sentences with scores, as for `evaluate sts`.")
    ],
    retrieval: Annotated[
        Path | None,
        typer.Option("--retrieval", metavar="FOLDER", help="A test collection in BEIR's layout, for search quality."),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", metavar="M", help="The bi-encoder.")] = None,
    forms: Annotated[
        str | None, typer.Option("--forms", metavar="A,B", help="float32, int8, int8-tensor, pruned:0.2, dims:128 …")
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", help="Time each form N times and report the fastest.")
    ] = 1,
    to: Annotated[Path | None, typer.Option("--to", metavar="FILE.md", help="Write the table as Markdown.")] = None,
    columns: Columns = None,
    scale: Scale = "0,5",
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Compare forms of one model: float32, bfloat16, int8, pruned, fewer dimensions, static.

    For each form: Spearman's correlation on the pairs, nDCG@10 of a dense search with the p-value of the difference
    from the first form, texts per second of wall time and of CPU time, size of the weights, memory, and bytes per
    stored embedding.

    \b
    Examples:
      sonde evaluate models --on sts.csv --forms float32,dims:64
      sonde evaluate models --on sts.csv --retrieval cacm/ --model ./my-model --to efficiency.md
    """
    from ...indexer.encoder import DEFAULT_MODEL
    from ...pipelines.evaluate.models import HEADINGS
    from ..api.models import evaluate_models as run
    from ..api.models import quality_cells, quality_notes, quality_page, read_retrieval

    if to is not None:
        check_target(to, (".md", ".markdown"), "write the table to")
    [pairs] = _read_scored([on], columns, scale)
    name = model or DEFAULT_MODEL
    with progress(quiet=json) as notify:
        given = read_retrieval(retrieval) if retrieval else None
        chosen = forms.split(",") if forms is not None else None
        found = run(pairs, given, model=name, forms=chosen, device=device, repeats=repeats, notify=notify)
    if to is not None:
        texts = len(given.texts) if given else 2 * len(pairs)
        to.write_text(quality_page(found, name, pairs.name, given.name if given else None, texts), "utf-8")
        say(f"wrote {to}")
    if json:
        for row in found:
            print_json(row.to_dict())
        return
    table = [HEADINGS, *quality_cells(found)]
    widths = [max(len(row[place]) for row in table) for place in range(len(HEADINGS))]
    for row in table:
        rest = (f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        print("  ".join((f"{row[0]:<{widths[0]}}", *rest)))
    say_notes(quality_notes(found))


def evaluate_bitext(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="File of sentences with their translations; one or several.")
    ],
    model: BitextModel = None,
    k: Neighbours = 4,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="A,B", help="The columns, by name or by number from 1.")
    ] = None,
    histogram: Annotated[
        Path | None,
        typer.Option("--histogram", metavar="FILE", help="Draw a histogram of the similarities: .png or .html."),
    ] = None,
    map: Annotated[
        Path | None, typer.Option("--map", metavar="FILE", help="Draw both languages in one map: .png or .html.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Random seed for the map and the random pairs.")] = 0,
    prompt: Prompt = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    json: Json = False,
) -> None:
    """Measure how well a model finds translations, on files that pair each sentence with its translation.

    Accuracy is the share of sentences whose nearest neighbour is their translation, in both directions, by cosine and
    by margin. Mining reports precision, recall and F1 at the best threshold, which is chosen on the same pairs.

    \b
    Examples:
      sonde evaluate bitext german-english.tsv
      sonde evaluate bitext german-english.tsv --histogram similarities.png --map languages.html
      sonde evaluate bitext deu.tsv fra.tsv --model ./multilingual --json
    """
    from ...indexer.encoder import DEFAULT_MODEL
    from ..api.models import check_bitext, read_pair_file
    from ..api.models import evaluate_bitext as run

    check_different(histogram=histogram, map=map)
    check_bitext(len(files), histogram, map, seed)
    pairs = [read_pair_file(file, columns=columns) for file in files]
    with progress(quiet=json) as notify:
        found = run(
            pairs, model or DEFAULT_MODEL, k=k, histogram=histogram, map=map, seed=seed, prompt=prompt, device=device,
            dtype=dtype, progress=notify,
        )  # fmt: skip
    if json:
        for quality in found:
            print_json(quality.to_dict())
        return
    print(f"{_model_name(found[0].model)}, margin over {k} neighbours")
    print(
        f"{'file':<24} {'pairs':>6} {'there':>6} {'margin':>6} {'back':>6} {'margin':>6} "
        f"{'F1':>6} {'prec.':>6} {'recall':>6} {'at':>6} {'F1 cos':>6}"
    )
    for quality in found:
        shares = (quality.forward, quality.forward_margin, quality.backward, quality.backward_margin, quality.f1)
        rest = (*shares, quality.precision, quality.recall, quality.threshold, quality.cosine_f1)
        print(f"{snippet(quality.file, 24):<24} {quality.pairs:>6,} " + " ".join(f"{value:>6.3f}" for value in rest))
    for target in (histogram, map):
        if target is not None:
            say(f"wrote {target}")
