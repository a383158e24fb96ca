"""`sonde evaluate`: how good searches, labels and clusters are; its commands about models are in `evaluate_models`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...indexer.errors import SondeError, UsageError
from ...indexer.files import check_different
from ...indexer.wording import counted, shown_p
from .commands import Named
from .evaluate_models import evaluate_bitext, evaluate_models, evaluate_sts
from .output import CollectionPath, Device, Json, print_json, quoted, say, say_notes, snippet

if TYPE_CHECKING:
    from ...pipelines.evaluate.labels import LabelQuality
    from ...pipelines.evaluate.search import SearchQuality
    from ...pipelines.evaluate.trec import Qrels, Query
    from ..api import Collection


def evaluate_clusters(
    collection: CollectionPath,
    run: Annotated[
        str | None, typer.Option("--run", metavar="NAME", help="Cluster, topic or taxonomy run; default: the newest.")
    ] = None,
    truth: Annotated[
        str | None, typer.Option("--truth", metavar="COLUMN", help="Metadata column with each document's class.")
    ] = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure a clustering: silhouette, stability and coherence; with --truth also NMI, ARI, V-measure and purity.

    All outliers together count as one cluster.

    \b
    Examples:
      sonde evaluate clusters themes.sonde --run kmeans --truth stars
      sonde evaluate clusters themes.sonde --run kmeans --json
    """
    from ..api import open as open_collection

    found = open_collection(collection, device=device).evaluate_clusters(run, truth)
    if json:
        print_json(found.to_dict())
        return
    for name, value in found.to_dict().items():
        if value is not None:
            print(f"{name.replace('_', ' '):<14} {value if isinstance(value, str) else format(value, ',.4g')}")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(cls=Named, no_args_is_help=True, rich_markup_mode=None)
    group.callback()(_keep_group)
    group.command("search", short_help="Compare search modes on judged queries.")(evaluate_search)
    group.command("labels", short_help="Compare a label run with the true labels.")(evaluate_labels)
    group.command("clusters", short_help="Measure a clustering.")(evaluate_clusters)
    group.command("sts", short_help="Compare bi-encoders on pairs scored by people.")(evaluate_sts)
    group.command("models", short_help="Compare int8, pruned and other forms of one model.")(evaluate_models)
    group.command("bitext", short_help="Measure how well a model finds translations.")(evaluate_bitext)
    app.add_typer(group, name="evaluate")


def _keep_group() -> None:
    """Measure quality on judged data.

    \b
    Examples:
      sonde evaluate search judged.sonde
      sonde evaluate labels tickets.sonde --truth status
    """


def evaluate_search(
    collection: CollectionPath,
    queries: Annotated[
        Path | None, typer.Option("--queries", metavar="Q.jsonl", help="Queries: JSONL with _id and text, also .gz.")
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option("--qrels", metavar="QRELS", help="Judgements: TREC qrels or BEIR's TSV.")
    ] = None,
    modes: Annotated[
        str, typer.Option("--modes", help="Modes to compare with the first: dense, lexical, hybrid, rerank.")
    ] = "dense,lexical,hybrid",
    fusion: Annotated[
        str, typer.Option("--fusion", help="How hybrid combines both result lists: convex or rrf.")
    ] = "convex",
    rerank_model: Annotated[
        str | None, typer.Option("--rerank-model", metavar="NAME", help="Second-stage model for rerank mode.")
    ] = None,
    rerank_depth: Annotated[
        int | None, typer.Option("--rerank-depth", metavar="N", help="Number of documents to rerank; 50 by default.")
    ] = None,
    per_query: Annotated[
        Path | None,
        typer.Option("--per-query", metavar="FILE", help="Also write the measures of each query: .csv or .jsonl."),
    ] = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Compare search modes on queries with judgements: nDCG@10, recall@100, MRR@10, MAP@100.

    The interval is a 95 % bootstrap interval of nDCG@10. p comes from a paired randomisation test against the first
    mode. Both need at least five queries. Without --queries and --qrels, the judgements stored in the collection are
    used (`sonde judge`). "judged" is the share of the first ten hits that have a judgement. A hit without a judgement
    counts as not relevant. Queries without a relevant document are left out.

    \b
    Examples:
      sonde evaluate search cacm.sonde --queries queries.jsonl.gz --qrels qrels.tsv
      sonde evaluate search cacm.sonde --queries queries.jsonl.gz --qrels qrels.tsv --modes hybrid,rerank
      sonde evaluate search judged.sonde
    """
    from ...pipelines.search.rerank import LATE
    from ...pipelines.search.settings import SearchSettings
    from ..api import open as open_collection
    from ..api.evaluate import check_modes, has_late_index
    from ..api.functions import check_per_query, write_per_query

    if per_query is not None:
        check_per_query(per_query)
        check_different(queries=queries, qrels=qrels, per_query=per_query)
    if (queries is None) != (qrels is None):
        raise UsageError("give both --queries and --qrels, or neither to use the collection's own judgements")
    settings = SearchSettings(
        fusion=fusion,  # type: ignore[arg-type]
        rerank="rerank" in modes.split(","),
        rerank_model=rerank_model,
        rerank_depth=rerank_depth,
    )
    chosen = modes.split(",")
    check_modes(chosen, settings)
    opened = open_collection(collection, device=device)
    judged = _judged(opened, queries, qrels)
    found = opened.evaluate_search(*judged, modes=chosen, settings=settings, progress=lambda event: say(str(event)))
    if per_query is not None:
        write_per_query(found, per_query, lambda event: say(str(event)))
        say(f"wrote {per_query}")
    for quality in found:
        if quality.second_stage:
            say(f"{quality.mode}: {quality.second_stage}")
    if settings.rerank and rerank_model in (None, LATE) and not has_late_index(opened):
        said = f"`sonde late {quoted(collection)}` builds one, and `sonde index --late` while it indexes"
        say(f"note: there is no late index, so reranking embeds passages for every query; {said}")
    if json:
        for quality in found:
            print_json(quality.to_dict())
        return
    _print_qualities(found)


def _print_qualities(found: "list[SearchQuality]") -> None:
    """Print a table of the modes with their measures."""
    heads = f"{'mode':<10} {'nDCG@10':>8} {'95 % interval':>15} {'recall@100':>11}"
    print(f"{heads} {'MRR@10':>7} {'MAP@100':>8} {'p':>6} {'judged':>7}")
    for quality in found:
        values = quality.measures
        interval = "{:.3f} to {:.3f}".format(*quality.interval) if quality.interval else "–"
        p = shown_p(quality.p) if quality.p is not None else "–"
        shown = f"{quality.mode:<10} {values['ndcg@10']:>8.3f} {interval:>15}"
        shown += f" {values['recall@100']:>11.3f} {values['mrr@10']:>7.3f} {values['map@100']:>8.3f}"
        print(f"{shown} {p:>6} {values['judged@10']:>7.0%}")
    if found and found[0].interval is None:
        many = counted(found[0].queries, "query", "queries")
        say(f"note: only {many} with a relevant document; an interval and a p-value need at least 5")


def _judged(
    collection: "Collection", queries: Path | None, qrels: Path | None
) -> "tuple[Path | list[Query], Path | Qrels]":
    """Return two files of queries and judgements or, without them, what the collection keeps of both."""
    if queries and qrels:
        return queries, qrels
    kept = collection.judgements()
    if not kept.answered:
        raise SondeError("no hit has been judged relevant here: use `sonde judge`, or give --queries and --qrels")
    return kept.queries, kept.qrels


def evaluate_labels(
    collection: CollectionPath,
    truth: Annotated[
        str,
        typer.Option(
            "--truth", metavar="COLUMN|FILE", help="True labels: a column, or a table with the columns id and label."
        ),
    ],
    run: Annotated[
        str | None,
        typer.Option("--name", "--run", metavar="RUN", help="The label run; by default the one that matches best."),
    ] = None,
    json: Json = False,
) -> None:
    """Compare a label run with the true labels: accuracy, kappa, macro F1, quality per class and frequent confusions.

    Names are compared case-insensitively. Kappa is the agreement beyond chance. With several labels per text, each
    label has a kappa, and exact match is the share of texts whose labels are exactly the true ones; a cell such as
    "late; broken" names several labels. A table may be CSV, JSONL, Parquet or XLSX; documents without a row in it are
    left out.

    \b
    Examples:
      sonde evaluate labels tickets.sonde --truth status
      sonde evaluate labels tickets.sonde --truth truth.csv
    """
    from ..api import open as open_collection

    opened = open_collection(collection)
    file = truth not in opened.fields() and bool(Path(truth).suffix or Path(truth).is_file())
    found = opened.evaluate_labels(run, Path(truth) if file else truth)
    if json:
        print_json(found.to_dict())
        return
    print(f"run {found.run}")
    width = min(40, max(len(quality.label) for quality in found.classes))
    print(f"{'class':<{width}} {'precision':>9} {'recall':>7} {'F1':>6} {'documents':>9}" + _kappa("kappa", found))
    for quality in found.classes:
        shown = f"{snippet(quality.label, width):<{width}} {quality.precision:>9.3f} {quality.recall:>7.3f}"
        print(f"{shown} {quality.f1:>6.3f} {quality.support:>9,}" + _kappa(quality.kappa, found))
    over = counted(found.documents, "document")
    print(f"{found.measure} {found.accuracy:.3f}, macro F1 {found.macro_f1:.3f} over {over}")
    kappa = "" if found.kappa is None else f"; kappa {found.kappa:.3f}"
    of = "; exact match: the share of documents whose labels are exactly the true ones" if found.several else kappa
    print(f"{found.margin}{of}")
    for one, two, count in [row for row in found.confusion if row[0] != row[1]][:CONFUSED]:
        print(f"  {snippet(one, 40)} taken for {snippet(two, 40)}: {count:,}")
    say_notes(found.notes)


def _kappa(value: float | str | None, found: "LabelQuality") -> str:
    """Return the cell of kappa, which a table has if a text may have several labels."""
    shown = "–" if value is None else value if isinstance(value, str) else f"{value:.3f}"
    return f" {shown:>7}" if found.several else ""


CONFUSED = 5
"""Confusions that are printed, the most frequent first; `--json` has all."""
