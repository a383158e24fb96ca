"""`sonde texts similarity` and `sonde evaluate sts`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...indexer.wording import counted, size
from .output import Device, Json, print_json, progress, say, say_notes, snippet

if TYPE_CHECKING:
    from ...pipelines.evaluate.sts import StsQuality
    from ...pipelines.similarity.similarity import Comparison, Similarity

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
    prompt: Annotated[str | None, typer.Option("--prompt", help="Text to put before every sentence.")] = None,
    truncate_dim: Annotated[
        int | None, typer.Option("--truncate-dim", metavar="N", help="Matryoshka: keep N dimensions.")
    ] = None,
    device: Device = "auto",
    dtype: Annotated[str, typer.Option("--dtype", help="auto, float32, bfloat16, float16, int8.")] = "auto",
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

    pairs = read_scored(files, columns, scale)
    options: dict[str, Any] = {"device": device, "dtype": dtype, "truncate_dim": truncate_dim}
    with progress(quiet=json) as notify:
        found = run(pairs, models or [DEFAULT_MODEL], prompt=prompt, notify=notify, **options)
    if json:
        for quality in found:
            print_json(quality.to_dict())
        return
    print_table(found)


def read_scored(files: Sequence[Path], columns: str | None, scale: str) -> list[Any]:
    """Read files of scored pairs.

    Raises:
        UsageError: The scale is none, or columns are not clear.
        SondeError: A file cannot be read.
    """
    from ..api.models import read_pair_file

    limits = read_scale(scale)
    return [read_pair_file(file, scored=True, columns=columns, scale=limits) for file in files]


def read_scale(text: str) -> tuple[float, float]:
    """Return the least and the greatest score of "0,5".

    Raises:
        UsageError: These are not two numbers, the first below the second.
    """
    from ...indexer.errors import UsageError

    try:
        least, greatest = (float(part) for part in text.split(","))
    except ValueError:
        least, greatest = 0.0, 0.0
    if not least < greatest:
        raise UsageError(f"--scale {text!r} is not a valid range: give the lowest and the highest score, such as 0,5")
    return least, greatest


def print_table(found: "Sequence[StsQuality]") -> None:
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
    name = model_name(quality.model) + ("" if quality.dtype == "float32" else f" {quality.dtype}")
    return (
        f"{name:<{NAME}} {quality.spearman:>8.4f} {f'{low:.3f} to {high:.3f}':>15} {quality.pearson:>7.4f} "
        f"{quality.pearson_angular:>7.4f} {quality.sentences / max(quality.seconds, 1e-9):>11,.0f} "
        f"{quality.sentences / max(quality.processor_seconds, 1e-2):>7,.0f} "
        f"{size(quality.size):>8} {size(quality.memory):>8} {quality.dimension:>5}"
    )


def model_name(model: str) -> str:
    """Return a model's name as it fits into a table: of a folder its last two parts, at most 32 characters."""
    path = Path(model)
    name = "/".join(path.parts[-2:]) if path.is_absolute() else model
    return name if len(name) <= NAME else "…" + name[1 - NAME :]


WIDTH = 60


def similarity(
    first: Annotated[str | None, typer.Argument(metavar="TEXT", help="The first text.")] = None,
    second: Annotated[str | None, typer.Argument(metavar="TEXT", help="The second text.")] = None,
    pairs: Annotated[
        Path | None, typer.Option("--pairs", metavar="FILE", help="Compare the pairs of a file: CSV, TSV, JSONL …")
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="A,B", help="Columns of the file, by name or by number from 1.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="M", help="The bi-encoder, as in `sonde index`.")
    ] = None,
    second_stage: Annotated[
        str, typer.Option("--rerank-model", metavar="R", help="late, a cross-encoder's folder or hub name, or none.")
    ] = "late",
    nli: Annotated[
        str | None, typer.Option("--nli", metavar="N", help="bundled, an NLI model's folder or hub name, or none.")
    ] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", help="Text to put before each text for the bi-encoder.")
    ] = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Compare two texts, or each pair in a file, with a bi-encoder, a second stage and an NLI model side by side.

    The cosine shows whether two texts are about the same things. It hardly reflects who does what, negation or numbers.
    NLI checks both directions: whether the second text follows from the first, and the first from the second.

    \b
    Examples:
      sonde texts similarity "An elephant is bigger than a lion." "A lion is bigger than an elephant."
      sonde texts similarity "He bought a car from her." "She sold him a car." --nli none
      sonde texts similarity --pairs pairs.jsonl --columns premise,hypothesis --json
    """
    from ...indexer.encoder import DEFAULT_MODEL
    from ...indexer.errors import UsageError
    from ..api.models import check_pairs, load_comparison, read_pair_file

    if pairs is not None and first is not None:
        raise UsageError("give two texts, or a file with --pairs, not both")
    if pairs is None and (first is None or second is None):
        raise UsageError("give two texts, or a file of pairs with --pairs FILE")
    if columns is not None and pairs is None:
        raise UsageError("--columns names columns of a file: give the file with --pairs")
    texts = [(first or "", second or "")]
    if pairs is not None:
        file = read_pair_file(pairs, columns=columns)
        texts = list(zip(file.firsts, file.seconds, strict=True))
    check_pairs(texts)
    with progress(quiet=json) as notify:
        comparison = load_comparison(model or DEFAULT_MODEL, second_stage, nli, device, prompt, notify)
        found = list(comparison(texts, notify))
    if json:
        encoder, stage, _ = comparison.names
        for each in found:
            print_json(each.to_dict() | {"model": encoder, "rerank_model": stage})
    elif pairs is None:
        _print_one(found[0], comparison)
    else:
        _print_table(found, comparison)


def _print_one(found: "Similarity", comparison: "Comparison") -> None:
    encoder, stage, judge = comparison.names
    print(f"cosine        {found.cosine:.3f}  angular {found.angular:.3f}  {encoder}")
    if found.second_stage is not None:
        print(f"second stage  {found.second_stage:.3f}  {stage}")
    for arrow, verdict in (("1 → 2", found.forward), ("2 → 1", found.backward)):
        if verdict is not None:
            shares = f"entailment {verdict.entailment:.2f}, neutral {verdict.neutral:.2f}"
            print(f"{arrow}         {verdict.label}  ({shares}, contradiction {verdict.contradiction:.2f})  {judge}")
    say_notes(found.notes)


def _print_table(found: "list[Similarity]", comparison: "Comparison") -> None:
    encoder, stage, judge = comparison.names
    print(f"{'cosine':>6} {'stage':>6} {'1 → 2':<13} {'2 → 1':<13} texts")
    for each in found:
        score = "–" if each.second_stage is None else f"{each.second_stage:.3f}"
        verdicts = [verdict.label if verdict else "–" for verdict in (each.forward, each.backward)]
        texts = f"{snippet(each.first, WIDTH)} | {snippet(each.second, WIDTH)}"
        print(f"{each.cosine:>6.3f} {score:>6} {verdicts[0]:<13} {verdicts[1]:<13} {texts}")
    noted = sum(bool(each.notes) for each in found)
    models = ", ".join(name for name in (encoder, stage, judge) if name)
    say(f"{counted(len(found), 'pair')} · {models}" + (f" · {noted:,} with a note (--json)" if noted else ""))
