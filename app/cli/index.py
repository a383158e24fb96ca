"""`sonde index`: sources into a collection."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ...indexer.errors import SondeError, UsageError, out_of_range
from ...indexer.wording import counted
from .output import BiencoderDtype, DocumentPrompt, Json, QueryPrompt, TruncateDim, print_json, progress, quoted, say

if TYPE_CHECKING:
    from ...indexer.ann import Kind
    from ...indexer.ingest import BuildReport
    from ...indexer.store.runs import Run
    from ..api import Collection


PACKED = (".gz", ".zst")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("index")(index)


def index(
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...", help="Files or folders; - is standard input.")],
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="C.sonde",
            help="Collection to create or update; default: the source's name, in this folder.",
        ),
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option("--text", metavar="COL", help="Column with the text; repeat it to join several.")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", metavar="COL", help="Column with the title.")] = None,
    id: Annotated[
        str | None, typer.Option("--id", metavar="COL", help="Column with the id; default: a hash of the text.")
    ] = None,
    leave_out: Annotated[
        list[str] | None,
        typer.Option("--leave-out", metavar="COL", help="Column to leave out of the metadata; can be repeated."),
    ] = None,
    type: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="COL=TYPE",
            help="Type of a metadata column: text, integer, real, boolean, date or list; or real:, (for 1.234,50) or "
            "date:FORMAT, such as date:%d/%m/%Y. A sign such as € or % beside the numbers is ignored. Values that do "
            "not fit are left out. Can be repeated.",
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option("--language", metavar="CODE", help="Language of the texts (en, de …); detected if not given."),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format", help="csv, tsv, json, jsonl, parquet, xlsx, text … Detected from the file name by default."
        ),
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option("--delimiter", help="Delimiter of a CSV file; detected if not given.")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="Encoding of a text file; detected if not given.")
    ] = None,
    sheet: Annotated[str | None, typer.Option("--sheet", help="Sheet of an XLSX file; default: the largest.")] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="M", help="Bi-encoder: a name, a folder, or `static`.")
    ] = None,
    device: Annotated[str, typer.Option("--device", metavar="D", help="auto, cpu, cuda, cuda:0,cuda:1 …")] = "auto",
    dtype: BiencoderDtype = None,
    truncate_dim: TruncateDim = None,
    query_prompt: QueryPrompt = None,
    document_prompt: DocumentPrompt = None,
    ann: Annotated[
        str | None,
        typer.Option(
            "--ann",
            help="Kind of FAISS index: auto, exact, hnsw, hnsw-sq8, ivf, ivf-sq8, ivf-fastscan, ivf-pq, ivf-rabitq or "
            "cagra. Default: that of the last run; auto for a new collection.",
        ),
    ] = None,
    recall: Annotated[
        float | None,
        typer.Option(
            "--recall",
            help="Target recall@10 of the FAISS index. Default: that of the last run; 0.98 for a new collection.",
        ),
    ] = None,
    memory: Annotated[
        int | None, typer.Option("--memory", metavar="MB", help="Maximum memory for the FAISS index.")
    ] = None,
    late: Annotated[
        bool, typer.Option("--late", help="Also keep compressed token embeddings, so that --rerank takes milliseconds.")
    ] = False,
    keep: Annotated[
        str | None, typer.Option("--keep", help="last: keep the last of several rows with the same id.")
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option("--shards", metavar="N", help="Divide a new collection into N shards; see docs/scale.md."),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="ray[://…]",
            help="Build shards on Ray: ray (starts it on this machine) or ray://HOST:PORT (a running cluster).",
        ),
    ] = None,
    sync: Annotated[
        bool, typer.Option("--sync", help="Also delete documents that are no longer in the sources.")
    ] = False,
    delete_most: Annotated[
        bool, typer.Option("--delete-most", help="Let --sync delete most documents, or those of another source.")
    ] = False,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Rebuild lost shards of the collection from the sources.")
    ] = False,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", help="How long to wait while another process writes.")
    ] = 30.0,
    estimate: Annotated[bool, typer.Option("--estimate", help="Only estimate time, memory and disk space.")] = False,
    json: Json = False,
) -> None:
    """Index files into a collection, or update it. Only what changed is embedded.

    Reads CSV, TSV, JSON, JSONL, Parquet, XLSX, mailboxes and references (RIS, PubMed, Web of Science, BibTeX), also
    gzipped or zstd-compressed, and text, Markdown, HTML, PDF, Word, OpenDocument and mail files or folders of them. If
    the command is stopped, run it again to continue.

    \b
    Examples:
      sonde index reviews.csv
      sonde index reviews.csv more.csv --to reviews.sonde
      sonde index papers.parquet --to papers.sonde --text abstract --title title
      sonde index tickets.csv --type age=integer --type opened=date:%d/%m/%Y
      sonde index docs/ --to docs.sonde --sync
      zcat tickets.jsonl.gz | sonde index - --to tickets.sonde --format jsonl
    """
    from ...indexer.ann import AnnSettings
    from ...indexer.ingest import BuildSettings
    from ...indexer.readers import ReadOptions
    from ..api import index as run
    from ..api.collection import estimate as estimate_run
    from ..api.collection import index_device
    from ..api.functions import address_of

    options = ReadOptions(
        text=tuple(text) if text else None, title=title, id=id, format=format, delimiter=delimiter,
        encoding=encoding, sheet=sheet, leave_out=tuple(leave_out or ()), type=_types(type or []),
    )  # fmt: skip
    if memory is not None and memory < 1:
        raise out_of_range("memory", memory, "give a number of MB, 1 or more")
    budget = None if memory is None else memory * 1_000_000
    kind = cast("Kind | None", ann)  # AnnSettings refuses any other string
    tuning = AnnSettings(kind=kind, target_recall=recall, memory_budget=budget, device=index_device(device))
    settings = BuildSettings(
        model=model, device=device, dtype=dtype, truncate_dim=truncate_dim, query_prompt=query_prompt,
        document_prompt=document_prompt, language=language, sync=sync, delete_most=delete_most, ann=tuning, late=late,
        wait=wait, keep=keep, rebuild=rebuild,
    )  # fmt: skip
    paths = [Path(source) for source in sources]
    to = to or _default_target(paths)
    named = address_of(to) or str(to)
    source = paths[0] if len(paths) == 1 else paths
    with progress(quiet=json) as notify:
        if estimate:
            if shards is not None:
                raise UsageError("leave out --shards: it hardly changes the time and disk space that --estimate gives")
            found = estimate_run(source, to, read=options, settings=settings, progress=notify)
            print_json(found.to_dict()) if json else print(found.describe())
            return
        opened = run(source, to, read=options, settings=settings, shards=shards, on=on, progress=notify)
    report = opened.report
    assert report is not None
    print_json(report.to_dict()) if json else _print_report(report, named)
    _say_known_texts(report)
    if report.added or report.new_texts:
        _say_what_lacks_them(opened, report, named)
    if report.mostly_unusable:
        raise SondeError(report.mostly_unusable)


def _default_target(sources: Sequence[Path]) -> Path:
    """Return `reviews.sonde` for `data/reviews.csv.gz`, and `docs.sonde` for the folder `docs/`.

    Raises:
        UsageError: The source has no name, there are several, or the collection was made from another source.
    """
    from ..api.functions import check_origin

    source = sources[0]
    if len(sources) > 1 or str(source) == "-":
        what = "several sources" if len(sources) > 1 else "standard input"
        said = f"{what}: name the collection, for example --to texts.sonde"
        raise UsageError(said, code="missing-option", field="to")
    whole = source.expanduser().resolve()
    name = whole.name
    for _ in range(2 if Path(name).suffix.lower() in PACKED else 1):
        name = name if whole.is_dir() else Path(name).stem
    if not name:
        raise UsageError(f"{source} does not name the collection: name it with --to", code="missing-option", field="to")
    target = Path(f"{name}.sonde")
    check_origin(target, source)
    return target


def _types(given: list[str]) -> dict[str, str]:
    """Return the types by column. The last "=" divides, since names of columns may contain one."""
    found: dict[str, str] = {}
    for each in given:
        name, equals, kind = each.rpartition("=")
        if not equals:
            said = f"--type {each!r} is not COLUMN=TYPE: write, for example, --type stars=integer"
            raise UsageError(said, code="wrong-type", field="type", value=each)
        if found.setdefault(name, kind) != kind:
            said = f"--type gives {name!r} two types, {found[name]} and {kind}: give it one"
            raise UsageError(said, code="conflict", field="type", value=each)
    return found


SHOWN_RUNS = SHOWN_ROWS = 5
FEW_KNOWN = 5
"""Added documents with known texts below which there is no note: short texts repeat."""


def _say_known_texts(report: "BuildReport") -> None:
    """Say if most of what was added was there under other ids."""
    if report.known_texts >= max(FEW_KNOWN, report.added / 2) and not report.deleted:
        many = f"{report.known_texts:,} of the {counted(report.added, 'document')} added"
        say(
            f"note: {many} have texts that were already there under other ids. If the ids of the source have changed, "
            "delete the old documents: --sync does that"
        )


def _can_be_updated(run: "Run") -> bool:
    return bool(run.kind.update or run.kind.nested) and not run.kind.part and run.complete


def _say_what_lacks_them(opened: "Collection", report: "BuildReport", named: str) -> None:
    from ...indexer.store.kinds import LABEL

    with closing(opened):
        runs = opened.uncounted_runs()
    what = "changed" if not report.added else "new and changed" if report.new_texts else "new"
    lacking = [run.name for run in runs if _can_be_updated(run)]
    if lacking:
        names = ", ".join(map(quote, lacking[:SHOWN_RUNS])) + (", …" if len(lacking) > SHOWN_RUNS else "")
        said = f"the {what} documents are not yet in {counted(len(lacking), 'run')} ({names})"
        say(f"note: {said}: `sonde runs update {quote(named)} RUN` adds them")
    labels = [run.name for run in runs if run.kind is LABEL and run.complete]
    _say_unlabelled(labels, report.added + report.new_texts, what)


def _say_unlabelled(lacking: list[str], many: int, what: str) -> None:
    """Say which label runs do not know the new documents, and what labelling again does to the others."""
    if not lacking:
        return
    names = ", ".join(lacking[:SHOWN_RUNS]) + (", …" if len(lacking) > SHOWN_RUNS else "")
    said = f"{many:,} {what} {'document has' if many == 1 else 'documents have'} no label in {names}"
    again = f"use `sonde label` with the same labels, --name {quote(lacking[0])} and --replace"
    say(f"note: {said}: to label all documents again, {again}; earlier documents can get a different label")


def _of_reused(report: "BuildReport") -> str:
    """Return "repeated" if texts occur several times in the source, and none was in the collection before."""
    return "reused" if report.known_texts or report.replaced or report.unchanged else "repeated"


def _print_report(report: "BuildReport", to: str) -> None:
    from ..api.functions import unread_lines

    counts = [
        f"{count:,} {name}"
        for name in ("added", "replaced", "unchanged", "deleted")
        if (count := getattr(report, name))
    ]
    if report.replaced and report.new_texts < report.replaced:
        place = next(place for place, said in enumerate(counts) if said.endswith(" replaced"))
        counts[place] += f" ({report.new_texts:,} with a new text)" if report.new_texts else " (only metadata)"
    if report.duplicate_ids:
        counts.append(f"{report.duplicate_ids:,} with a repeated id (the last one was kept)")
    print(f"{to}: {', '.join(counts) or 'nothing to do'}; {report.seconds:,.1f} s")
    if report.embedded or report.reused:
        tokens = counted(report.tokens, "token")
        print(f"passages: {report.embedded:,} embedded ({tokens}), {report.reused:,} {_of_reused(report)}")
    if report.cut_tokens:
        print(f"cut off: {counted(report.cut_tokens, 'token')} of {counted(report.cut_documents, 'document')}")
    if report.skipped:
        print(f"skipped: {report.skipped:,}, listed in {report.skipped_file}")
        for row in report.skipped_rows[:SHOWN_ROWS]:
            say(f"  {row.origin}: {row.reason}")
        if report.skipped > SHOWN_ROWS:
            say(f"  … and {report.skipped - SHOWN_ROWS:,} more")
    for line in unread_lines(report.unread_files):
        print(line)
    print(f'try: sonde search {quoted(to)} "what you are looking for"')
