"""`sonde info`, `verify`, `repair`, `compact`, `late`, `delete` and `export`."""

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...indexer.errors import SondeError, UsageError
from ...indexer.wording import counted, on_one_line, part_name, size
from .asking import Yes, ask, ask_to_replace, is_asked
from .output import CollectionPath, Device, Json, Mask, MaskRegion, print_json, progress, say, say_notes, unchanged

if TYPE_CHECKING:
    from ...indexer.upkeep.info import Info
    from ..api import Collection


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (info, verify, repair, compact, late, delete, export):
        app.command(command.__name__)(command)


def info(collection: CollectionPath, device: Device = "auto", json: Json = False) -> None:
    """Show a collection's counts, model, sizes, and FAISS index with its measured recall and latency.

    If the index was measured on another device, it is measured again on --device.

    \b
    Examples:
      sonde info reviews.sonde
      sonde info reviews.sonde --json
    """
    from ..api import open as open_collection
    from ..api.functions import address_of

    found = open_collection(collection, device=device).info()
    print_json(found.to_dict()) if json else _print_info(found, address_of(collection) or found.path)


def _print_info(found: "Info", name: str) -> None:
    lines = {
        "documents": f"{found.documents:,}" + (f" in {counted(found.shards, 'shard')}" if found.shards else ""),
        "passages": f"{found.passages:,}"
        + (f", and {found.tombstones:,} deleted that `sonde compact` removes" if found.tombstones else ""),
        "model": f"{found.model}, {found.dimension} dimensions, {found.model_settings['dtype']}",
        "language": found.language or "not known",
        "index": _ann_line(found.ann, found.newer),
        "lexical": counted(found.lexical, "passage") if found.lexical is not None else "none: run `sonde repair`",
        **({"late": _late_line(found.late)} if found.late else {}),
        "metadata": ", ".join(f"{on_one_line(name)} ({kind})" for name, kind in found.fields.items()) or "none",
        "disk": f"{size(found.disk)}: {', '.join(f'{part_name(part)} {size(n)}' for part, n in found.bytes.items())}",
    }
    if found.model_settings.get("kind") == "static":
        lines["note"] = (
            "the static model suits maps, clusters and drafts: "
            "its search results are clearly worse than the default model's"
        )
    if found.search_defaults:
        lines["tuned"] = tuned_line(found.search_defaults)
    if found.other_models:
        lines["models"] = "; ".join(other_model_line(other, found.documents) for other in found.other_models)
    print(name)
    for title, text in lines.items():
        print(f"  {title:<10} {text}")


def tuned_line(stored: dict[str, Any]) -> str:
    """Return what was tuned, in words."""
    from ...pipelines.search.settings import SearchDefaults

    return f"{SearchDefaults.of(stored)} (`sonde tune --reset` restores the defaults)"


def other_model_line(other: dict[str, Any], documents: int) -> str:
    """Return one line about another model whose embeddings a collection keeps."""
    name, on_disk = other["model"], size(other["bytes"])
    if other["previous"]:
        return f"previous: {name}, {on_disk} (`sonde model --undo` switches back, --forget removes it)"
    done = "all" if other["documents"] >= documents else f"{other['documents']:,} of {documents:,}"
    how = f"`sonde model --to {name}` continues, --discard removes it"
    return f"not in use: {name}, {done} documents, {on_disk} ({how})"


def _ann_line(ann: dict[str, Any] | None, newer: int) -> str:
    if ann is None:
        return "none, all embeddings are compared exactly"
    parameters = ", ".join(f"{name} {value}" for name, value in ann["parameters"].items())
    short = "" if ann["reached"] else f", short of the target {ann['target']}"
    where = "" if ann["device"] == "cpu" else f" on {ann['device']}"
    rest = f"; {newer:,} new passages are compared exactly" if newer else ""
    settings = f" ({parameters})" if parameters else ""
    return f"{ann['kind']}{settings}, recall@10 {ann['recall']:.3f}{short}, {ann['latency_ms']:.2f} ms{where}{rest}"


def _late_line(late: dict[str, Any]) -> str:
    more = "" if late["covered"] == late["passages"] else ": run `sonde late` to add the others"
    each = f", {size(late['bytes_per_passage'])} each" if late["bytes_per_passage"] else ""
    return f"{late['covered']:,} of {counted(late['passages'], 'passage')}{each}{more}"


def verify(collection: CollectionPath, device: Device = "auto", json: Json = False) -> None:
    """Check every digest and count, and both indexes against the stored data. Exit code 1 if something is wrong.

    \b
    Examples:
      sonde verify reviews.sonde
    """
    from ..api.functions import address_of
    from ..api.upkeep import verify_at

    findings = verify_at(collection, device)
    for finding in findings:
        values = {"part": finding.part, "problem": finding.problem}
        print_json(values) if json else print(f"{finding.part}: {finding.problem}")
    if findings:
        say(f"{counted(len(findings), 'problem')}: run `sonde repair {collection}`")
        raise typer.Exit(1)
    say(f"{address_of(collection) or collection}: no problems found")


def repair(collection: CollectionPath, device: Device = "auto", json: Json = False) -> None:
    """Rebuild what is damaged: indexes from the embeddings, lost embeddings from the texts.

    \b
    Examples:
      sonde repair reviews.sonde
    """
    from ..api import open as open_collection

    with progress(quiet=json) as notify:
        done = open_collection(collection, device=device).repair(progress=notify)
    for line in done:
        print_json({"done": line}) if json else print(line)
    say("nothing to repair" if not done else f"{collection} is repaired")


def compact(collection: CollectionPath, device: Device = "auto", json: Json = False) -> None:
    """Give back the space of deleted documents: in the catalog, the embeddings and all indexes. Files are merged.

    Afterwards, the collection holds no text of a deleted document, not even with the embeddings that are kept for
    `sonde model --undo`. You can search it while this runs. It needs up to twice the disk space for a while. If
    there is too little space to rewrite the catalog, the catalog keeps its size, and a message says so.

    \b
    Examples:
      sonde compact reviews.sonde
    """
    from dataclasses import asdict

    from ..api import open as open_collection

    with progress(quiet=json) as notify:
        report = open_collection(collection, device=device).compact(progress=notify)
    if json:
        print_json(asdict(report))
    else:
        print(
            f"{counted(report.removed, 'deleted passage')} removed, "
            f"{counted(report.segments_before, 'segment')} became {report.segments}, "
            f"embeddings {size(report.bytes_before)} became {size(report.bytes)}, "
            f"the whole collection {size(report.disk_before)} became {size(report.disk)}"
        )


def late(
    collection: CollectionPath,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the late index, and do not build it again.")] = False,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Build a late index: compressed token embeddings, so that --rerank takes milliseconds.

    A passage takes at most 4.5 kB for every 256 tokens: 4.5 kB with the default model, and 9 kB with the static model,
    whose passages are longer. `sonde info` shows the mean.

    Later runs of `sonde index` keep the index up to date. If the command is stopped, run it again to continue.

    \b
    Examples:
      sonde late reviews.sonde
      sonde late reviews.sonde --remove
    """
    from ..api import open as open_collection

    with progress(quiet=json) as notify:
        report = open_collection(collection, device=device).late(remove=remove, progress=notify)
    if json:
        print_json(report.to_dict())
    elif report.removed:
        print(f"removed the late index of {collection}")
    elif remove:
        say(f"nothing to remove: {collection} has no late index")
    else:
        if report.passages and not report.covered:
            return  # the reason was printed
        each = f", {size(report.bytes_per_passage)} each" if report.covered else ""
        print(
            f"late index: {report.covered:,} of {counted(report.passages, 'passage')}{each}; "
            f"{report.embedded:,} embedded in {report.seconds:,.1f} s"
        )


def delete(
    collection: CollectionPath,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Document ids.")] = None,
    where: Annotated[str | None, typer.Option("--where", help="Delete all documents that match this filter.")] = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Delete documents by id or by filter.

    If an id does not exist, nothing is deleted. On a terminal, Sonde asks for confirmation before it deletes more than
    half of the documents; in a script, it does not. To see how many documents a filter matches, first run
    `sonde count reviews.sonde --where ...`. `sonde compact` then removes what is left of them on the disk.

    \b
    Examples:
      sonde delete reviews.sonde 4711 4712
      sonde delete reviews.sonde --where "date < '2020-01-01'"
    """
    from ..api import open as open_collection

    opened = open_collection(collection)
    if is_asked(yes) and not (ids and where is not None):
        many, total = _chosen(opened, ids or (), where), len(opened)
        if 2 * many > total:
            ask(f"delete {many:,} of {counted(total, 'document')}?")
    with progress(quiet=json) as notify:
        count = opened.delete(ids or None, where=where, progress=notify)
    if where is not None and not count:
        say_notes([opened.explain_filter(where)])
    rest = "; `sonde compact` removes what is left of them on the disk" if count else ""
    print_json({"deleted": count}) if json else print(f"{counted(count, 'document')} deleted{rest}")


def _chosen(opened: "Collection", ids: Sequence[str], where: str | None) -> int:
    """Return how many documents have one of these ids or match the filter."""
    return len(set(opened.numbers(ids).values())) if where is None else opened.matching(where, 0, 0)[0]


def export(
    collection: CollectionPath,
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="FILE", help=".xlsx, .csv, .parquet, .jsonl or .ris file; - is standard output (JSONL)."
        ),
    ] = "-",
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Also write each document's embedding: the mean of those of its passages.")
    ] = False,
    where: Annotated[
        str | None, typer.Option("--where", help="Write only documents that match this filter on metadata and runs.")
    ] = None,
    raw_formulas: Annotated[
        bool,
        typer.Option(
            "--raw-formulas", help="Do not put an apostrophe before CSV cells that a spreadsheet would run as formulas."
        ),
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option(
            "--page", metavar="FILE", help="Write one .html file with map, search, table and charts that works offline."
        ),
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="A,B", help="Write only these columns, in this order.")
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            "--groups", metavar="RUN", help="Write a table of the groups of this run instead (.xlsx, .csv or .jsonl)."
        ),
    ] = None,
    indicators: Annotated[
        str | None,
        typer.Option("--indicators", metavar="RUN", help="Also write a column of 1 and 0 for each label of this run."),
    ] = None,
    mask: Mask = False,
    region: MaskRegion = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Write the documents with their original columns, and one or more columns for each run.

    With --groups, write a table of the groups of a run for a report: the number, name, terms, documents, share and
    three texts of each group. With --where, only the documents that match are counted and quoted.

    --indicators adds the columns "RUN: LABEL" for statistics programs: 1 if a document has the label, else 0; empty if
    it is not in the run.

    The file that the collection was made from is never replaced. On a terminal, Sonde asks for confirmation before it
    replaces another file.

    \b
    Examples:
      sonde export reviews.sonde --to unhappy.csv --where "stars <= 2"
      sonde export reviews.sonde --to reviews.xlsx
      sonde export reviews.sonde --to reviews.parquet --vectors
      sonde export reviews.sonde > reviews.jsonl
      sonde export reviews.sonde --page reviews.html
      sonde export news.sonde --groups topics --to groups.xlsx
      sonde export tickets.sonde --to codes.csv --indicators labels
      sonde export reviews.sonde --to shared.xlsx --mask --region GB
    """
    from ..api import open as open_collection

    _check_export(page, to, groups, vectors, raw_formulas, columns, mask, region, indicators)
    chosen = None if columns is None else read_columns(columns)
    masking: dict[str, Any] = {"mask": mask, "region": region}
    opened = open_collection(collection)
    target = page if page is not None else None if to == "-" else Path(to)
    ask_to_replace(yes, target)
    if page is not None:
        _write_page(opened, page, where, json)
        return
    if groups is not None:
        _write_groups(opened, to, groups, where, json, raw_formulas=raw_formulas, **masking)
        return
    say_notes(opened.export_notes())
    given: Any = {"vectors": vectors, "where": where, "columns": chosen, "indicators": indicators}
    standard = to == "-"
    if standard:
        out = sys.stdout if sys.stdout.isatty() else unchanged(sys.stdout)
        with progress(quiet=True) as notify:
            count = opened.export_lines(out, progress=notify, **given, **masking)
    else:
        try:
            with progress(quiet=True) as notify:
                count = opened.export(to, raw_formulas=raw_formulas, progress=notify, **given, **masking)
        except SondeError as error:
            if where is not None and error.code == "no-documents":
                say_notes([opened.explain_filter(where)])
            raise
    if where is not None and not count:
        say_notes([opened.explain_filter(where)])
    if json and not standard:
        print_json({"documents": count, "path": to})
    else:
        say(f"{counted(count, 'document')} written to {'standard output' if standard else to}")


def read_columns(text: str) -> list[str]:
    """Read names of columns from "id,text,stars"; a name with a comma takes double quotes."""
    return next(csv.reader([text], skipinitialspace=True), [])


def _check_export(
    page: Path | None, to: str, groups: str | None, vectors: bool, raw_formulas: bool, columns: str | None, mask: bool,
    region: str | None, indicators: str | None,
) -> None:  # fmt: skip
    if page is not None and (to != "-" or vectors or raw_formulas):
        raise UsageError("--page writes a page: leave out --to, --vectors and --raw-formulas")
    if page is not None and (columns or groups or mask or indicators):
        others = "--columns, --groups, --mask and --indicators"
        raise UsageError(f"--page writes a page of all columns: leave out {others}")
    if groups is not None and (to == "-" or vectors or columns or indicators):
        raise UsageError("--groups needs --to FILE, without --vectors, --columns and --indicators")
    if region is not None and not mask:
        raise UsageError("--region needs --mask", code="missing-option", field="region")


def _write_groups(
    opened: "Collection", to: str, run: str, where: str | None, json: bool, **options: Any
) -> None:  # fmt: skip
    with progress(quiet=True) as notify:
        rows = opened.export_groups(to, run, where=where, progress=notify, **options)
    print_json({"groups": rows, "path": to}) if json else say(f"{counted(rows, 'group')} written to {to}")


def _write_page(opened: "Collection", page: Path, where: str | None, json: bool) -> None:
    selection = None
    if where is not None:
        _, found = opened.matching(where, k=len(opened), length=1)
        selection = {"parts": [{"kind": "documents", "ids": [each.id for each in found]}]}
    with progress(quiet=json) as notify:
        count = opened.write_page(page, selection=selection, progress=notify)
    if json:
        print_json({"documents": count, "path": str(page)})
    else:
        say(f"{counted(count, 'document')} written to {page}")
