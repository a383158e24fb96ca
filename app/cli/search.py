"""`sonde search` and `sonde similar`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ...indexer.errors import SondeError, UsageError
from ...indexer.wording import counted, existing
from .output import CollectionPath, Device, Json, print_json, say, say_notes, snippet

if TYPE_CHECKING:
    from ...indexer.progress import Progress
    from ...pipelines.search.results import Hit, Mode, Results
    from ...pipelines.search.settings import Fusion
    from ..api import Collection

LENGTH = 400
"""Characters of an excerpt that are printed; it has no more than 300."""
SLOW = 1.0
"""Seconds of loading above which the command line reports them."""
Where = Annotated[str | None, typer.Option("--where", help="Filter on metadata: \"year >= 2020 AND lang = 'en'\".")]
Threshold = Annotated[
    float | None, typer.Option("--threshold", metavar="T", help="Minimum score: cosine, or BM25 with --mode lexical.")
]
K = Annotated[int, typer.Option("-k", help="Number of documents to return.")]
Offset = Annotated[int, typer.Option("--offset", help="Number of top documents to skip, for paging.")]
Show = Annotated[
    str | None,
    typer.Option("--show", metavar="A,B", help="Metadata fields to print; by default, those in which the hits differ."),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("search")(search)
    app.command("similar")(similar)


def search(
    collection: CollectionPath,
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="What to search for, in your own words.")] = None,
    k: K = 10,
    offset: Offset = 0,
    mode: Annotated[str, typer.Option("--mode", help="hybrid, dense or lexical.")] = "hybrid",
    fusion: Annotated[
        str, typer.Option("--fusion", help="How hybrid combines both result lists: convex or rrf.")
    ] = "convex",
    weight: Annotated[
        float | None,
        typer.Option("--weight", help="Weight of the dense score in hybrid, 0 to 1; by default chosen for each query."),
    ] = None,
    where: Where = None,
    threshold: Threshold = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show why each hit matched: weights, terms and closest sentences.")
    ] = False,
    collapse: Annotated[
        bool, typer.Option("--collapse/--no-collapse", help="Show documents with the same text as one hit.")
    ] = True,
    show: Show = None,
    rerank: Annotated[bool, typer.Option("--rerank", help="Reorder the best documents with a second stage.")] = False,
    rerank_model: Annotated[
        str | None,
        typer.Option(
            "--rerank-model", metavar="NAME", help="late, or a cross-encoder or multi-vector model. Implies --rerank."
        ),
    ] = None,
    rerank_depth: Annotated[
        int | None, typer.Option("--rerank-depth", metavar="N", help="Number of documents to rerank; 50 by default.")
    ] = None,
    rerank_budget: Annotated[
        str | None,
        typer.Option(
            "--rerank-budget", metavar="TIME", help="Rerank as many documents as this time allows: 300ms, 2s, 1min."
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option("--queries", metavar="Q.jsonl", help="Run many queries from a JSONL file with _id and text."),
    ] = None,
    run: Annotated[
        Path | None, typer.Option("--run", metavar="OUT.trec", help="With --queries: write a TREC run file.")
    ] = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Search a collection by meaning, by words, or by both.

    A hit is a document. It shows the part of its best passage with most of the query's words. Documents with the same
    or nearly the same text are one hit with a note such as "and 2 more".

    The number after the rank is the relevance: the estimated chance, from 0 to 1, that the hit answers the query. You
    can compare it between searches with the same --where, which can change it. A hit of low relevance is marked "weak".

    Hits are ordered by other scores. "dense" is the cosine (higher is closer), "lexical" is BM25, "rerank" is the score
    of the second stage, and "fusion" combines them. The last line names the unit of "rerank".

    \b
    Examples:
      sonde search reviews.sonde "the battery died after a week"
      sonde search reviews.sonde "late delivery" --where "stars <= 2" -k 5
      sonde search reviews.sonde "refund" --mode lexical --json
      sonde search reviews.sonde "how to descale" --threshold 0.4
      sonde search reviews.sonde "refund" --show stars,date
      sonde search reviews.sonde "it stopped working" --rerank --explain
      sonde search reviews.sonde "it stopped working" --rerank-depth 20 --rerank-budget 300ms
      sonde search cacm.sonde --queries queries.jsonl --run cacm.trec -k 100
    """
    from ...indexer.files import check_different, check_file
    from ...pipelines.search.settings import SearchSettings
    from ..api import open as open_collection

    if query is not None and queries is not None:
        raise UsageError("give a query, or a file of queries with --queries, not both")
    if query is None and queries is None:
        raise UsageError("give a query, or a file of queries with --queries")
    if run and queries is None:
        raise UsageError("--run needs --queries: a TREC run holds the hits of many queries")
    if run:
        check_different(queries=queries, run=run)
        check_file(run)
    settings = SearchSettings(
        k=k, offset=offset, mode=cast("Mode", mode), where=where, threshold=threshold, explain=explain,
        fusion=cast("Fusion", fusion), weight=weight, collapse=collapse,
        rerank=rerank or (rerank_model, rerank_depth, rerank_budget) != (None, None, None),
        rerank_model=rerank_model, rerank_depth=rerank_depth,
        rerank_budget=rerank_budget,
    )  # fmt: skip
    settings.check()
    opened = open_collection(collection, device=device)
    fields = fields_to_show(show, opened)
    if queries is None:
        assert query is not None
        print_results(opened.search(query, settings=settings, progress=say_it), json, fields=fields)
        return
    print_run(opened.search_queries(queries, run=run, settings=settings, progress=say_it), run, json, fields)


def say_it(message: "Progress | str") -> None:
    """Say sentences, not progress."""
    if isinstance(message, str):
        say(message)


def say_loading(seconds: float) -> None:
    """Report the time to load the models and the indexes, unless it was short."""
    if seconds > SLOW:
        say(f"loading the model and the indexes took {seconds:,.1f} s")


def fields_to_show(show: str | None, collection: "Collection") -> list[str] | None:
    """Return the fields that `--show` names; None without it.

    Raises:
        UsageError: The collection has no such field.
    """
    if show is None:
        return None
    known, names = list(collection.fields()), [name.strip() for name in show.split(",") if name.strip()]
    if not names:
        raise UsageError(f"--show {show!r} names no field: {existing(known)}")
    for name in names:
        if name not in known:
            said = f"there is no field {name!r}: {existing(known)}"
            raise UsageError(said, code="unknown-field", field="show", value=name, alternatives=known)
    return names


def print_run(
    found: "list[tuple[str, Results]]", run: Path | None, json: bool, fields: list[str] | None = None
) -> None:
    """Print the hits of many queries, or where they were written."""
    say_loading(sum(results.loading_seconds for _, results in found))
    if run:
        stage = next((f", {results.reranking}" for _, results in found if results.reranking), "")
        hits = counted(sum(len(results) for _, results in found), "hit")
        say(f"{run}: {hits} of {counted(len(found), 'query', 'queries')}{stage}")
        return
    for key, results in found:
        if not json:
            print(f"query {key}: {snippet(results.query, 100)}")
        print_results(results, json, {"query": key}, fields)


def similar(
    collection: CollectionPath,
    id: Annotated[str | None, typer.Argument(metavar="ID", help="A document's id.")] = None,
    text: Annotated[
        str | None, typer.Option("--text", help="An example text instead of an id; - is standard input.")
    ] = None,
    k: K = 10,
    offset: Offset = 0,
    where: Where = None,
    threshold: Threshold = None,
    show: Show = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Show the documents most similar to a stored one, or to an example text.

    \b
    Examples:
      sonde similar reviews.sonde 4711
      sonde similar reviews.sonde --text "Arrived broken, and nobody answers my mails."
      sonde similar reviews.sonde --text - < letter.txt
    """
    from ..api import open as open_collection

    if (id is None) == (text is None):
        raise UsageError("give a document's id, or an example with --text" + ("" if id is None else ", not both"))
    opened = open_collection(collection, device=device)
    given = {"k": k, "offset": offset, "where": where, "threshold": threshold}
    fields = fields_to_show(show, opened)
    if id is not None:
        found = _similar(opened, id, given)
    else:
        found = opened.like((standard_input() if text == "-" else text) or "", **given)
    print_results(found, json, fields=fields)


def _similar(opened: "Collection", id: str, given: dict[str, Any]) -> "Results":
    """Return the documents most similar to a stored one; where there is none, say how to give a text."""
    try:
        return opened.similar(id, **given)
    except SondeError as error:
        if (error.code, error.field) != ("not-found", "id"):
            raise
        raise SondeError(f"{error.message}: to search by a text, use --text") from None


def standard_input() -> str:
    """Return what comes from standard input.

    Raises:
        UsageError: It is not in the terminal's encoding.
    """
    import sys

    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        encoding = str(error.encoding).upper()
        raise UsageError(f"standard input is not {encoding}: {error.reason} at byte {error.start}") from None


def print_results(
    results: "Results", json: bool, extra: dict[str, str] | None = None, fields: list[str] | None = None
) -> None:
    """Print hits on stdout, and notes and details on stderr; if nothing answers, that note comes first, on stdout."""
    from ..api.functions import NOT_CLOSE, NOTHING_ANSWERS, telling_fields

    if extra is None:
        say_loading(results.loading_seconds)
    for note in results.notes:
        print(note) if note.startswith((NOTHING_ANSWERS, NOT_CLOSE)) and not json else say_notes([note])
    if results.fusion and not json and any(hit.why for hit in results):
        print(f"fusion: {results.fusion}")
    if results.tuned and not json and any(hit.why for hit in results):
        print(f"tuned: {', '.join(f'{name} {value:g}' for name, value in results.tuned.items())} (`sonde tune`)")
    fields = telling_fields(results) if fields is None else fields
    for hit in results:
        print_json((extra or {}) | hit.to_dict()) if json else _print_hit(hit, results.mode, fields)
    if not json:
        hits = counted(len(results), "hit")
        stage = f" · {results.reranking}, {results.reranking.unit}" if results.reranking else ""
        say(f"{hits} · {results.mode} · {results.strategy}{stage} · {results.seconds * 1000:,.0f} ms")


def _print_hit(hit: "Hit", mode: "Mode", fields: list[str]) -> None:
    from ..api.functions import shown_metadata

    scores = hit.scores
    fused = hit.score if mode == "hybrid" or scores.rerank is not None else None
    named = {"fusion": fused, "dense": scores.dense, "lexical": scores.lexical, "rerank": scores.rerank}
    parts = [f"{name} {value:.3f}" for name, value in named.items() if value is not None]
    weak = " weak" if hit.weak else ""
    title = "" if hit.title in hit.id else f" · {snippet(hit.title, 80)}"
    page = f", page {hit.page:,}" if hit.page else ""
    more = f"  and {len(hit.copies):,} more" if hit.copies else ""
    print(f"{hit.rank:>3}. {hit.relevance_shown}{weak}  {snippet(hit.id, 60)}{page}{title}  ({', '.join(parts)}){more}")
    if hit.excerpt.text.strip():
        print(f"     {snippet(hit.shown, LENGTH)}")
    if hit.why:
        _print_why(hit)
    if metadata := shown_metadata(hit.metadata, fields):
        print(f"     {snippet(' · '.join(f'{name}: {value}' for name, value in metadata), 200)}")


def _print_why(hit: "Hit") -> None:
    why = hit.why
    assert why is not None
    words = [hit.text[start:end] for start, end in why.terms] + [hit.title[start:end] for start, end in why.title_terms]
    if hit.copies:
        print(f"     the same text: {snippet(', '.join(hit.copies))}")
    print(f"     words: {snippet(', '.join(dict.fromkeys(words))) or 'none of the query'}")
    if why.matches:
        print(f"     matched: {', '.join(f'{m.query} → {m.word} {m.similarity:.2f}' for m in why.matches)}")
    for sentence in why.sentences:
        print(f"     {sentence.similarity:.3f} at {sentence.start}: {snippet(sentence.text, 160)}")
