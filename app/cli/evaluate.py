"""`sonde evaluate`: of search and labels; the other subjects have files of their own."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...indexer.wording import counted
from .bitext import evaluate_bitext
from .evaluate_clusters import evaluate_clusters
from .evaluate_models import evaluate_models
from .evaluate_sts import evaluate_sts
from .options import CollectionPath, Device, Json
from .output import print_json, say, snippet

if TYPE_CHECKING:
    from ...pipelines.evaluate.search import Qrels
    from ...pipelines.trec import Query
    from ..api import Collection


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Measure quality on judged data.", no_args_is_help=True, rich_markup_mode=None)
    group.callback()(_keep_group)
    group.command("search")(evaluate_search)
    group.command("labels")(evaluate_labels)
    group.command("clusters")(evaluate_clusters)
    group.command("sts")(evaluate_sts)
    group.command("models")(evaluate_models)
    group.command("bitext")(evaluate_bitext)
    app.add_typer(group, name="evaluate")


def _keep_group() -> None:
    """Measure quality on judged data."""  # with a callback, Typer keeps a group of one command a group


def evaluate_search(
    collection: CollectionPath,
    queries: Annotated[
        Path | None, typer.Option("--queries", metavar="Q.jsonl", help="Queries: JSONL with _id and text, also .gz.")
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option("--qrels", metavar="QRELS", help="Judgements: TREC qrels or BEIR's TSV.")
    ] = None,
    modes: Annotated[
        str, typer.Option("--modes", help="Modes to compare, also rerank; differences are to the first.")
    ] = "dense,lexical,hybrid",
    fusion: Annotated[str, typer.Option("--fusion", help="How hybrid joins both lists: convex or rrf.")] = "convex",
    rerank_model: Annotated[
        str | None, typer.Option("--rerank-model", metavar="NAME", help="The second stage of the mode rerank.")
    ] = None,
    rerank_depth: Annotated[
        int | None, typer.Option("--rerank-depth", metavar="N", help="Documents that it reads: 50 unless given.")
    ] = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Compare search modes on queries with judgements: nDCG@10, recall@100, MRR@10, MAP@100.

    The interval is a 95 % bootstrap interval of nDCG@10, p a paired randomisation test against the first mode. Without
    --queries and --qrels, the judgements that the collection keeps are taken (`sonde judge`). "judged" is the share of
    the first ten hits that have a judgement: what has none counts as not relevant.

    \b
    Examples:
      sonde evaluate search cacm.sonde --queries queries.jsonl.gz --qrels qrels.tsv
      sonde evaluate search cacm.sonde --queries queries.jsonl.gz --qrels qrels.tsv --modes hybrid,rerank
      sonde evaluate search judged.sonde
    """
    from ...indexer.errors import UsageError
    from ...pipelines.evaluate.search import evaluate_search as run
    from ...pipelines.evaluate.search import modes as variants
    from ...pipelines.search import SearchSettings
    from ..api import open as open_collection

    if (queries is None) != (qrels is None):
        raise UsageError("--queries and --qrels belong together; without both, the collection's judgements are taken")
    settings = SearchSettings(
        fusion=fusion,  # type: ignore[arg-type]
        rerank="rerank" in modes.split(","),
        rerank_model=rerank_model,
        rerank_depth=rerank_depth,
    )
    settings.check()
    chosen = variants(modes.split(","), settings)
    for _, settings in chosen:
        settings.check()
    opened = open_collection(collection, device=device)
    found = run(opened, *_judged(opened, queries, qrels), chosen)
    for quality in found:
        if quality.second_stage:
            say(f"{quality.mode}: {quality.second_stage}")
    if json:
        for quality in found:
            print_json(quality.to_dict())
        return
    heads = f"{'mode':<10} {'nDCG@10':>8} {'95 % interval':>15} {'recall@100':>11}"
    print(f"{heads} {'MRR@10':>7} {'MAP@100':>8} {'p':>6} {'judged':>7}")
    for quality in found:
        values, (low, high) = quality.measures, quality.interval
        p = f"{quality.p:.3f}" if quality.p is not None else "–"
        shown = f"{quality.mode:<10} {values['ndcg@10']:>8.3f} {f'{low:.3f} to {high:.3f}':>15}"
        shown += f" {values['recall@100']:>11.3f} {values['mrr@10']:>7.3f} {values['map@100']:>8.3f}"
        print(f"{shown} {p:>6} {values['judged@10']:>7.0%}")


def _judged(collection: "Collection", queries: Path | None, qrels: Path | None) -> "tuple[list[Query], Qrels]":
    """Return the queries and judgements of two files or, without them, those that the collection keeps."""
    from ...indexer.errors import SondeError
    from ...pipelines.evaluate.search import read_qrels
    from ...pipelines.trec import read_queries

    if queries and qrels:
        return read_queries(queries), read_qrels(qrels)
    kept = collection.judgements()
    if not kept.answered:
        raise SondeError("no hit has been judged relevant here: use `sonde judge`, or give --queries and --qrels")
    without = len(kept.queries) - len(kept.answered)
    if without:
        say(f"note: {counted(without, 'query', 'queries')} without a relevant document left out")
    return kept.answered, kept.qrels


def evaluate_labels(
    collection: CollectionPath,
    truth: Annotated[str, typer.Option("--truth", metavar="COLUMN", help="The column that holds the true labels.")],
    run: Annotated[
        str | None, typer.Option("--name", "--run", metavar="RUN", help="The run of labels; the newest by default.")
    ] = None,
    json: Json = False,
) -> None:
    """Compare a run of labels with the truth: accuracy, macro F1, per class, and what is taken for what.

    Names are compared without regard to case. With several labels per text, accuracy counts those that are all right.

    \b
    Examples:
      sonde evaluate labels tickets.sonde --truth status
    """
    from ...pipelines.evaluate.labels import evaluate_labels as measure
    from ..api import open as open_collection

    found = measure(open_collection(collection), run, truth)
    if json:
        print_json(found.to_dict())
        return
    width = min(40, max(len(quality.label) for quality in found.classes))
    print(f"{'class':<{width}} {'precision':>9} {'recall':>7} {'F1':>6} {'documents':>9}")
    for quality in found.classes:
        shown = f"{snippet(quality.label, width):<{width}} {quality.precision:>9.3f} {quality.recall:>7.3f}"
        print(f"{shown} {quality.f1:>6.3f} {quality.support:>9,}")
    print(f"accuracy {found.accuracy:.3f}, macro F1 {found.macro_f1:.3f} over {counted(found.documents, 'document')}")
    for one, two, count in [row for row in found.confusion if row[0] != row[1]][:CONFUSED]:
        print(f"  {snippet(one, 40)} taken for {snippet(two, 40)}: {count:,}")
    for note in found.notes:
        say(f"note: {note}")


CONFUSED = 5
"""Confusions that are printed, the most frequent first; `--json` has all."""
