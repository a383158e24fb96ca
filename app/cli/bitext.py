"""`sonde texts bitext` and `sonde evaluate bitext`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...indexer.wording import counted
from .output import Device, Json, print_json, progress, say, snippet
from .similarity import model_name

if TYPE_CHECKING:
    from ...pipelines.similarity.bitext import Translation

WIDTH = 70
Model = Annotated[str | None, typer.Option("--model", metavar="M", help="A multilingual bi-encoder.")]
Neighbours = Annotated[int, typer.Option("-k", metavar="K", help="Number of neighbours used for the margin.")]
Prompt = Annotated[str | None, typer.Option("--prompt", help="Text to put before every sentence.")]
Dtype = Annotated[str, typer.Option("--dtype", help="auto, float32, bfloat16, float16, int8.")]


def bitext(
    first: Annotated[Path, typer.Argument(metavar="FILE", help="Sentences in one language: one per line, or a table.")],
    second: Annotated[Path, typer.Argument(metavar="FILE", help="Sentences in the other language.")],
    model: Model = None,
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

    _check(threshold, to)
    sides = read_sentences(first), read_sentences(second)
    options: dict[str, Any] = {"model": model or DEFAULT_MODEL, "prompt": prompt, "device": device, "dtype": dtype}
    with progress(quiet=json) as notify:
        found = mine_bitext(*sides, threshold=threshold, k=k, notify=notify, **options)
    if to is not None:
        _write(to, found)
    if json:
        for pair in found:
            print_json(pair.to_dict())
    elif to is None:
        print(f"{'margin':>6} {'cosine':>6} texts")
        for pair in found:
            print(
                f"{pair.margin:>6.3f} {pair.cosine:>6.3f} {snippet(pair.first, WIDTH)} | {snippet(pair.second, WIDTH)}"
            )
    say(
        f"{counted(len(found), 'pair')} of {len(sides[0]):,} and {len(sides[1]):,} sentences"
        + (f" · {to}" if to else "")
    )


def _check(threshold: float | None, to: Path | None) -> None:
    from math import isfinite

    from ...indexer.errors import UsageError
    from ...indexer.files import check_target

    if threshold is not None and not isfinite(threshold):
        raise UsageError(f"--threshold {threshold} is not a valid margin: give a number, such as 1.05")
    if to is not None:
        check_target(to, (".tsv", ".tab"), "write pairs to")


def _write(path: Path, found: "list[Translation]") -> None:
    """Write the pairs as `sonde evaluate bitext` and `sonde texts similarity --pairs` read them."""
    from ...indexer.files import write_output

    lines = [
        f"{' '.join(p.first.split())}\t{' '.join(p.second.split())}\t{p.margin:.4f}\t{p.cosine:.4f}\n" for p in found
    ]
    page = "source\ttarget\tmargin\tcosine\n" + "".join(lines)
    write_output(path, lambda stream: stream.write(page.encode()))


def evaluate_bitext(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="File of sentences with their translations; one or several.")
    ],
    model: Model = None,
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
    from ...indexer.files import check_different
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
    print(f"{model_name(found[0].model)}, margin over {k} neighbours")
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
