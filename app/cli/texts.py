"""`sonde texts`: commands that compare texts and need no collection."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...indexer.errors import UsageError
from ...indexer.files import check_target, write_output
from ...indexer.wording import counted
from .commands import Named
from .output import Device, Json, print_json, progress, say, say_notes, snippet

if TYPE_CHECKING:
    from ...pipelines.similarity.bitext import Translation
    from ...pipelines.similarity.similarity import Comparison, Similarity

WIDTH, PAIR_WIDTH = 60, 70
"""Characters of a text in a table of compared texts, and of a sentence in a list of translations."""
BitextModel = Annotated[str | None, typer.Option("--model", metavar="M", help="A multilingual bi-encoder.")]
Neighbours = Annotated[int, typer.Option("-k", metavar="K", help="Number of neighbours used for the margin.")]
Prompt = Annotated[str | None, typer.Option("--prompt", help="Text to put before every sentence.")]
Dtype = Annotated[str, typer.Option("--dtype", help="auto, float32, bfloat16, float16, int8.")]


def register(app: typer.Typer) -> None:
    """Add the group, and the old names of its commands."""
    group = typer.Typer(cls=Named, no_args_is_help=True, rich_markup_mode=None)
    group.callback()(_keep_group)
    lines = {
        similarity: "Compare two texts, or pairs in a file.",
        entail: "Check whether one sentence follows from another.",
        bitext: "Find translations among the sentences of two files.",
    }
    for command, line in lines.items():
        group.command(command.__name__, short_help=line)(command)
        app.command(command.__name__, hidden=True)(command)
    app.add_typer(group, name="texts")


def _keep_group() -> None:
    """Compare texts that are not in a collection.

    \b
    Examples:
      sonde texts similarity "He bought a car from her." "She sold him a car." --nli none
      sonde texts entail "A man is playing a guitar." "Somebody makes music."
      sonde texts bitext german.txt english.txt
    """


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


def entail(
    premise: Annotated[str, typer.Argument(metavar="PREMISE", help="The first text; - is standard input.")],
    hypothesis: Annotated[str, typer.Argument(metavar="HYPOTHESIS", help="The statement that may follow from it.")],
    model: Annotated[
        str | None, typer.Option("--model", metavar="M", help="bundled, a model's folder or a hub name.")
    ] = None,
    device: Device = "auto",
    dtype: Annotated[
        str, typer.Option("--dtype", help="Precision of the model: auto, float32, bfloat16, float16.")
    ] = "auto",
    json: Json = False,
) -> None:
    """Check whether one sentence follows from another: entailment, neutral or contradiction, with probabilities.

    \b
    Examples:
      sonde texts entail "A man is playing a guitar." "Somebody makes music."
    """
    from ..api import entail as judge
    from .search import standard_input

    known = standard_input() if premise == "-" else premise
    with progress(quiet=json) as notify:
        tell = {} if json else {"progress": notify}
        found = judge(known, hypothesis, model=model, device=device, dtype=dtype, **tell)
    if json:
        print_json(found.to_dict())
        return
    for name in ("entailment", "neutral", "contradiction"):
        print(f"{'*' if name == found.label else ' '} {getattr(found, name):.3f}  {name}")
    say(f"{found.label} · {found.model}")


def bitext(
    first: Annotated[Path, typer.Argument(metavar="FILE", help="Sentences in one language: one per line, or a table.")],
    second: Annotated[Path, typer.Argument(metavar="FILE", help="Sentences in the other language.")],
    model: BitextModel = None,
    threshold: Annotated[
        float | None, typer.Option("--threshold", metavar="T", help="Minimum margin; all pairs by default.")
    ] = None,
    k: Neighbours = 4,
    to: Annotated[Path | None, typer.Option("--to", metavar="FILE.tsv", help="Write the pairs to this file.")] = None,
    prompt: Prompt = None,
    device: Device = "auto",
    dtype: Dtype = "auto",
    json: Json = False,
) -> None:
    """Find which sentences of two files are translations of each other, best matches first.

    Each sentence is used once.

    The score is the ratio margin of Artetxe and Schwenk (ACL 2019): how much closer two sentences are to each other
    than to their nearest neighbours. To find a good threshold for a model, run `sonde evaluate bitext`.

    \b
    Examples:
      sonde texts bitext german.txt english.txt
      sonde texts bitext german.txt english.txt --model ./multilingual --threshold 1.05 --to pairs.tsv
    """
    from ...indexer.encoder import DEFAULT_MODEL
    from ..api.models import mine_bitext, read_sentences

    _check_bitext(threshold, to)
    sides = read_sentences(first), read_sentences(second)
    options: dict[str, Any] = {"model": model or DEFAULT_MODEL, "prompt": prompt, "device": device, "dtype": dtype}
    with progress(quiet=json) as notify:
        found = mine_bitext(*sides, threshold=threshold, k=k, notify=notify, **options)
    if to is not None:
        _write_pairs(to, found)
    if json:
        for pair in found:
            print_json(pair.to_dict())
    elif to is None:
        print(f"{'margin':>6} {'cosine':>6} texts")
        for pair in found:
            texts = f"{snippet(pair.first, PAIR_WIDTH)} | {snippet(pair.second, PAIR_WIDTH)}"
            print(f"{pair.margin:>6.3f} {pair.cosine:>6.3f} {texts}")
    say(
        f"{counted(len(found), 'pair')} of {len(sides[0]):,} and {len(sides[1]):,} sentences"
        + (f" · {to}" if to else "")
    )


def _check_bitext(threshold: float | None, to: Path | None) -> None:
    from math import isfinite

    if threshold is not None and not isfinite(threshold):
        raise UsageError(f"--threshold {threshold} is not a valid margin: give a number, such as 1.05")
    if to is not None:
        check_target(to, (".tsv", ".tab"), "write pairs to")


def _write_pairs(path: Path, found: "list[Translation]") -> None:
    """Write the pairs as `sonde evaluate bitext` and `sonde texts similarity --pairs` read them."""
    lines = [
        f"{' '.join(p.first.split())}\t{' '.join(p.second.split())}\t{p.margin:.4f}\t{p.cosine:.4f}\n" for p in found
    ]
    page = "source\ttarget\tmargin\tcosine\n" + "".join(lines)
    write_output(path, lambda stream: stream.write(page.encode()))
