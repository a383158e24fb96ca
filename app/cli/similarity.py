"""`sonde similarity`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...indexer.wording import counted
from .options import Device, Json
from .output import print_json, say, snippet
from .progress import progress

if TYPE_CHECKING:
    from ...pipelines.similarity import Comparison, Similarity

WIDTH = 60


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("similarity")(similarity)


def similarity(
    first: Annotated[str | None, typer.Argument(metavar="TEXT", help="A text.")] = None,
    second: Annotated[str | None, typer.Argument(metavar="TEXT", help="Another.")] = None,
    pairs: Annotated[
        Path | None, typer.Option("--pairs", metavar="FILE", help="Compare the pairs of a file: CSV, TSV, JSONL …")
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="A,B", help="Its columns, by name or by number from 1.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="M", help="The bi-encoder, as in sonde index.")
    ] = None,
    second_stage: Annotated[
        str, typer.Option("--rerank-model", metavar="R", help="late, a cross-encoder's folder or hub name, or none.")
    ] = "late",
    nli: Annotated[
        str | None, typer.Option("--nli", metavar="N", help="bundled, an NLI model's folder or hub name, or none.")
    ] = None,
    prompt: Annotated[str | None, typer.Option("--prompt", help="For the bi-encoder, in front of each text.")] = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Compare two texts, or each pair of a file, by a bi-encoder, a second stage and an NLI model, side by side.

    The cosine says whether two texts speak of the same things; it hardly sees who does what, negation or numbers. NLI
    is asked both ways: does the second text follow from the first, and the first from the second?

    \b
    Examples:
      sonde similarity "An elephant is bigger than a lion." "A lion is bigger than an elephant."
      sonde similarity "He bought a car from her." "She sold him a car." --nli none
      sonde similarity --pairs pairs.jsonl --columns premise,hypothesis --json
    """
    from ...indexer.encoder import DEFAULT_MODEL
    from ...indexer.errors import UsageError
    from ...pipelines.pair_file import read_pair_file
    from ...pipelines.similarity import check_pairs, load_comparison

    if pairs is not None and first is not None:
        raise UsageError("give two texts, or a file with --pairs, not both")
    if pairs is None and (first is None or second is None):
        raise UsageError("give two texts, or a file of pairs with --pairs FILE")
    if columns is not None and pairs is None:
        raise UsageError("--columns says which columns of a file to take: give the file with --pairs")
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
    for note in found.notes:
        say(f"note: {note}")


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
