"""`sonde train biencoder`."""

from pathlib import Path
from typing import Annotated

import typer

from .options import Device, Json
from .output import print_json, say
from .progress import progress


def train_biencoder(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="A file of examples, or a collection whose own texts make pairs.")
    ],
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="The new model's folder.")],
    base: Annotated[
        str, typer.Option("--base", metavar="MODEL", help="Bi-encoder to begin with: a folder or org/name.")
    ] = "all-MiniLM-L6-v2",
    kind: Annotated[
        str | None, typer.Option("--kind", help="pairs, scores or labels, where the columns' names leave it open.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            metavar="A,B[,C]",
            help="query,passage[,wrong …] · first,second,score (--kind scores) · text,label (--kind labels)",
        ),
    ] = None,
    made_of: Annotated[
        str, typer.Option("--pairs", help="What pairs of a collection are made of: titles, neighbours or both.")
    ] = "both",
    held_out: Annotated[
        Path | None, typer.Option("--held-out", metavar="FILE", help="Examples to measure on; otherwise a share.")
    ] = None,
    share: Annotated[float, typer.Option("--share", help="Share held out without --held-out, at most 0.5.")] = 0.1,
    epochs: Annotated[float, typer.Option("--epochs", help="Passes over the data.")] = 1.0,
    rate: Annotated[
        float | None, typer.Option("--rate", help="Highest learning rate: 5e-5, or 1e-3 with --lora, unless given.")
    ] = None,
    batch: Annotated[int, typer.Option("--batch", help="Examples of a batch.")] = 64,
    cached: Annotated[
        int, typer.Option("--cached", help="Work through a batch in parts of this many, which saves memory; 0: whole.")
    ] = 0,
    max_tokens: Annotated[int, typer.Option("--max-tokens", help="Longer texts are cut while training.")] = 128,
    negatives: Annotated[int, typer.Option("--negatives", help="Mined wrong passages of each pair, 0 to 10.")] = 1,
    lora: Annotated[
        int, typer.Option("--lora", metavar="RANK", help="Train a low-rank change in place of all weights; 0: all.")
    ] = 0,
    corpus: Annotated[
        int, typer.Option("--corpus", help="Passages among which held-out queries are searched.")
    ] = 5_000,
    logs: Annotated[Path | None, typer.Option("--logs", metavar="FOLDER", help="Write TensorBoard's events.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed and data make the same model.")] = 7,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Tune a bi-encoder, the model that `sonde index --model` takes, on examples of your own.

    A file has a query and a passage that answers it in each row, perhaps with wrong passages; or two texts and a
    score; or a text and a label. Of a collection, titles and neighbouring passages make pairs. Wrong passages are
    mined with the model itself; those that look like answers are left out. A share of the examples is held out, and
    measured before and after. A killed run goes on when the same command is given again.

    \b
    Examples:
      sonde train biencoder answers.jsonl --to tuned
      sonde train biencoder articles.sonde --to tuned --pairs titles --lora 8
      sonde train biencoder labelled.csv --to tuned --epochs 2 --json
    """
    from ...pipelines.train.biencoder import BiencoderSettings
    from ...pipelines.train.biencoder import train_biencoder as run

    settings = BiencoderSettings(
        epochs=epochs, rate=rate, batch=batch, max_tokens=max_tokens, negatives=negatives, lora=lora, cached=cached,
        seed=seed,
    )  # fmt: skip
    with progress() as notify:
        made = run(
            data, to, base=base, settings=settings, kind=kind, columns=columns, made_of=made_of, held_out=held_out,
            share=share, corpus=corpus, logs=logs, device=device, notify=notify,
        )  # fmt: skip
    if json:
        print_json(made.to_dict())
        return
    begun = f", from step {made.fit.resumed:,}" if made.fit.resumed else ""
    say(f"{made.fit.steps:,} steps{begun} in {made.fit.seconds:,.0f} s")
    print(f"trained on {made.trained:,} examples ({made.kind}), measured on {made.held:,} held out")
    for each in made.gains:
        print(each)
    if not made.gains[0].sure:
        say(f"note: the interval of {made.gains[0].measure} reaches 0 or below: the gain may be chance")
    print(f"wrote {made.folder}")
