"""`sonde evaluate models`."""

from pathlib import Path
from typing import Annotated

import typer

from .evaluate_sts import Columns, Scale, read_scored
from .options import Device, Json
from .output import print_json, say
from .progress import progress


def evaluate_models(
    on: Annotated[Path, typer.Option("--on", metavar="FILE", help="Pairs of sentences with scores, as for sts.")],
    retrieval: Annotated[
        Path | None, typer.Option("--retrieval", metavar="FOLDER", help="A set in BEIR's layout, to search in.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", metavar="M", help="The bi-encoder.")] = None,
    forms: Annotated[
        str | None, typer.Option("--forms", metavar="A,B", help="float32, int8, int8-tensor, pruned:0.2, dims:128 …")
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", help="Time each form N times; the fastest counts.")
    ] = 1,
    to: Annotated[Path | None, typer.Option("--to", metavar="FILE.md", help="Write the table as Markdown.")] = None,
    columns: Columns = None,
    scale: Scale = "0,5",
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Compare forms of one model: float32, bfloat16, int8, pruned, shortened vectors, static.

    Of each: Spearman's correlation on the pairs, nDCG@10 of a dense search with the p-value of its difference to the
    first form, texts a second by the clock and by a core's work, the size of the weights, memory, and bytes of a stored
    vector.

    \b
    Examples:
      sonde evaluate models --on sts.csv --forms float32,dims:64
      sonde evaluate models --on sts.csv --retrieval cacm/ --model ./my-model --to efficiency.md
    """
    from ...indexer.encoder import DEFAULT_MODEL
    from ...pipelines.evaluate.models import evaluate_models as run
    from ...pipelines.evaluate.models import read_retrieval
    from ...pipelines.evaluate.report import HEADINGS, cells, markdown, notes

    if to is not None:
        _check_target(to)
    [pairs] = read_scored([on], columns, scale)
    name = model or DEFAULT_MODEL
    with progress(quiet=json) as notify:
        given = read_retrieval(retrieval) if retrieval else None
        chosen = forms.split(",") if forms is not None else None
        found = run(pairs, given, model=name, forms=chosen, device=device, repeats=repeats, notify=notify)
    if to is not None:
        texts = len(given.texts) if given else 2 * len(pairs)
        to.write_text(markdown(found, name, pairs.name, given.name if given else None, texts), "utf-8")
        say(f"wrote {to}")
    if json:
        for row in found:
            print_json(row.to_dict())
        return
    table = [HEADINGS, *cells(found)]
    widths = [max(len(row[place]) for row in table) for place in range(len(HEADINGS))]
    for row in table:
        rest = (f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        print("  ".join((f"{row[0]:<{widths[0]}}", *rest)))
    for note in notes(found):
        say(f"note: {note}")


def _check_target(path: Path) -> None:
    from ...indexer.errors import SondeError, UsageError

    if path.suffix.lower() not in (".md", ".markdown"):
        raise UsageError(f"cannot write {path.name!r}: the name must end in .md; for other programs use --json")
    if not path.absolute().parent.is_dir():
        raise SondeError(f"cannot write {path}: the folder {path.absolute().parent} does not exist")
