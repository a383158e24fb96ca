"""`sonde train`: NLI models, rerankers and bi-encoders."""

from pathlib import Path
from typing import Annotated

import typer

from ...indexer.wording import counted
from .commands import Named
from .output import Device, Json, print_json, progress, say, say_notes

To = Annotated[Path, typer.Option("--to", metavar="FOLDER", help="The new model's folder.")]
Base = Annotated[str, typer.Option("--base", metavar="MODEL", help="Bi-encoder to start from: a folder or org/name.")]
HeldOut = Annotated[
    Path | None, typer.Option("--held-out", metavar="FILE", help="Data to measure on; by default a share of the file.")
]
Share = Annotated[float, typer.Option("--share", help="Share to hold out without --held-out, at most 0.5.")]
Epochs = Annotated[float, typer.Option("--epochs", help="Passes over the data.")]
Seed = Annotated[
    int, typer.Option("--seed", help="Random seed; the same seed and data give the same model on one machine.")
]
DEFAULT = "all-MiniLM-L6-v2"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(cls=Named, no_args_is_help=True, rich_markup_mode=None)
    group.callback()(_keep_group)
    group.command("nli", short_help="Train an NLI model.")(train_nli)
    group.command("reranker", short_help="Train a cross-encoder for --rerank.")(train_reranker)
    group.command("biencoder", short_help="Tune a bi-encoder on your own examples.")(train_biencoder)
    app.add_typer(group, name="train")


def _keep_group() -> None:
    """Train your own models.

    \b
    Examples:
      sonde train reranker answers.jsonl --to my-reranker
      sonde train biencoder answers.jsonl --to tuned
    """


def train_nli(
    pairs: Annotated[
        Path, typer.Argument(metavar="PAIRS.jsonl", help="Lines with premise, hypothesis and label; can be .gz.")
    ],
    to: To,
    base: Base = DEFAULT,
    held_out: HeldOut = None,
    share: Share = 0.05,
    epochs: Epochs = 3.0,
    rate: Annotated[float, typer.Option("--rate", help="Highest learning rate.")] = 1e-4,
    batch_tokens: Annotated[int, typer.Option("--batch-tokens", help="Tokens per batch.")] = 2048,
    max_tokens: Annotated[int, typer.Option("--max-tokens", help="Maximum tokens per pair.")] = 160,
    seed: Seed = 7,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Train a model that decides whether one text follows from another: entailment, neutral or contradiction.

    Give the new folder as --model to commands that use an NLI model. If the run is killed, run the same command again
    to continue from the last checkpoint. Hypotheses of one premise on consecutive lines are also compared with each
    other, because labels are chosen in the same way.

    \b
    Examples:
      sonde train nli pairs.jsonl --to my-nli
      sonde train nli pairs.jsonl --to my-nli --epochs 5 --rate 5e-5 --json
    """
    from ...pipelines.train.settings import TrainSettings
    from ..api.functions import train_nli as run

    settings = TrainSettings(epochs=epochs, rate=rate, batch_tokens=batch_tokens, max_tokens=max_tokens, seed=seed)
    with progress() as notify:
        made = run(
            pairs, to, base=base, settings=settings, held_out=held_out, share=share, device=device, notify=notify
        )
    if json:
        print_json(made.to_dict())
        return
    _say_steps(made.report.steps, made.report.resumed, made.report.seconds)
    print(f"held out: {counted(made.after.pairs, 'pair')}; the most frequent label alone: {made.after.majority:.3f}")
    print(f"accuracy before {made.before.accuracy:.3f}, after {made.after.accuracy:.3f}")
    for label, share_right in made.after.per_label.items():
        print(f"  {label:<14} {share_right:.3f}")
    print(f"wrote {made.folder}")


def train_reranker(
    data: Annotated[
        Path,
        typer.Argument(metavar="QUERIES.jsonl", help="Lines with query, passage and optionally negatives; can be .gz."),
    ],
    to: To,
    base: Base = DEFAULT,
    negatives: Annotated[int, typer.Option("--negatives", help="Number of wrong passages per query, 1 to 30.")] = 5,
    held_out: HeldOut = None,
    share: Share = 0.05,
    epochs: Epochs = 1.0,
    rate: Annotated[float, typer.Option("--rate", help="Highest learning rate.")] = 1e-4,
    batch_tokens: Annotated[int, typer.Option("--batch-tokens", help="Tokens per batch.")] = 4096,
    max_tokens: Annotated[int, typer.Option("--max-tokens", help="Maximum tokens per pair.")] = 256,
    seed: Seed = 7,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Train a cross-encoder that ranks passages by how well they answer a query.

    Wrong passages come from the file, and then from dense and lexical search over all passages of the file. Passages
    that look like unmarked answers are left out. Give the new folder as --rerank-model. If the run is killed, run the
    same command again to continue from the last checkpoint.

    \b
    Examples:
      sonde train reranker answers.jsonl --to my-reranker
      sonde train reranker answers.jsonl --to my-reranker --negatives 8 --epochs 2 --json
    """
    from ...pipelines.train.settings import TrainSettings
    from ..api.functions import train_reranker as run

    settings = TrainSettings(epochs=epochs, rate=rate, batch_tokens=batch_tokens, max_tokens=max_tokens, seed=seed)
    with progress() as notify:
        made = run(
            data, to, base=base, settings=settings, negatives=negatives, held_out=held_out, share=share,
            device=device, notify=notify,
        )  # fmt: skip
    if json:
        print_json(made.to_dict())
        return
    _say_steps(made.report.steps, made.report.resumed, made.report.seconds)
    queries = counted(made.after.queries, "query", "queries")
    print(f"held out: {queries}, each among its own passages and the wrong ones mined for it")
    print(f"mean reciprocal rank: bi-encoder {made.before.mrr:.3f}, trained {made.after.mrr:.3f}")
    print(f"right passage first: bi-encoder {made.before.first:.3f}, trained {made.after.first:.3f}")
    print(f"wrote {made.folder}")


def train_biencoder(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="A file of examples, or a collection to make pairs from.")
    ],
    to: To,
    base: Base = DEFAULT,
    kind: Annotated[
        str | None, typer.Option("--kind", help="pairs, scores or labels, if the column names do not show it.")
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
        str, typer.Option("--pairs", help="How to make pairs from a collection: titles, neighbours or both.")
    ] = "both",
    held_out: Annotated[
        Path | None,
        typer.Option("--held-out", metavar="FILE", help="Examples to measure on; by default a share of the data."),
    ] = None,
    share: Share = 0.1,
    epochs: Epochs = 1.0,
    rate: Annotated[
        float | None, typer.Option("--rate", help="Highest learning rate; default 5e-5, or 1e-3 with --lora.")
    ] = None,
    batch: Annotated[int, typer.Option("--batch", help="Examples per batch.")] = 64,
    cached: Annotated[
        int, typer.Option("--cached", help="Process each batch in parts of this size to save memory; 0: all at once.")
    ] = 0,
    max_tokens: Annotated[int, typer.Option("--max-tokens", help="Maximum tokens per text while training.")] = 128,
    negatives: Annotated[
        int, typer.Option("--negatives", help="Number of mined wrong passages per pair, 0 to 10.")
    ] = 1,
    lora: Annotated[
        int,
        typer.Option(
            "--lora",
            metavar="RANK",
            help="Train low-rank adapters of this rank instead of all weights; 0: all weights.",
        ),
    ] = 0,
    corpus: Annotated[
        int, typer.Option("--corpus", help="Number of passages to search with the held-out queries.")
    ] = 5_000,
    logs: Annotated[Path | None, typer.Option("--logs", metavar="FOLDER", help="Write TensorBoard logs.")] = None,
    seed: Seed = 7,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Tune a bi-encoder, the model for `sonde index --model`, on your own examples.

    Each row of a file holds a query and a passage that answers it, optionally with wrong passages; or two texts and a
    score; or a text and a label. From a collection, pairs are made of titles and neighbouring passages. Wrong passages
    are mined with the model itself; those that look like answers are left out. A share of the examples is held out to
    measure the model before and after training. If the run is killed, run the same command again to continue.

    \b
    Examples:
      sonde train biencoder answers.jsonl --to tuned
      sonde train biencoder articles.sonde --to tuned --pairs titles --lora 8
      sonde train biencoder labelled.csv --to tuned --epochs 2 --json
    """
    from ...pipelines.train.biencoder import BiencoderSettings
    from ..api.functions import train_biencoder as run

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
    _say_steps(made.fit.steps, made.fit.resumed, made.fit.seconds)
    print(f"trained on {counted(made.trained, 'example')} ({made.kind}), measured on {made.measured_on} held out")
    for each in made.gains:
        print(each)
    say_notes(made.notes)
    print(f"wrote {made.folder}")


def _say_steps(steps: int, resumed: int, seconds: float) -> None:
    begun = f", from step {resumed:,}" if resumed else ""
    say(f"{counted(steps, 'step')}{begun} in {seconds:,.0f} s")
