"""`sonde duplicates`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from .output import Json, print_json, say, snippet
from .progress import progress

if TYPE_CHECKING:
    from ...pipelines.duplicates.settings import DuplicateKind, Keep


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("duplicates")(duplicates)


def duplicates(
    collection: Annotated[Path, typer.Argument(metavar="C.sonde", help="The collection.")],
    by: Annotated[str, typer.Option("--by", help="Kinds, separated by commas.")] = "exact,near,meaning",
    near: Annotated[float, typer.Option("--near", metavar="J", help="Near: least Jaccard similarity.")] = 0.8,
    meaning: Annotated[float, typer.Option("--meaning", metavar="T", help="Meaning: least cosine.")] = 0.95,
    keep: Annotated[str, typer.Option("--keep", help="What represents a group: first, longest or newest.")] = "first",
    date: Annotated[
        str | None, typer.Option("--date", metavar="COLUMN", help="With --keep newest: the date that decides.")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="Write all documents without the duplicates: .jsonl, .csv."),
    ] = None,
    pairs: Annotated[int, typer.Option("--pairs", metavar="N", help="Also show the N closest pairs by meaning.")] = 0,
    json: Json = False,
) -> None:
    """Find documents that say the same: exactly, nearly (most word sequences in common) or by meaning.

    \b
    Examples:
      sonde duplicates reviews.sonde
      sonde duplicates reviews.sonde --by exact,near --keep longest --to unique.jsonl
      sonde duplicates reviews.sonde --by meaning --meaning 0.9 --pairs 5
    """
    from ...pipelines.duplicates import DuplicateSettings, check_target, find_duplicates, write_without
    from ..api import open as open_collection

    kinds = tuple(kind.strip() for kind in by.split(",") if kind.strip())
    settings = DuplicateSettings(
        cast("tuple[DuplicateKind, ...]", kinds), near, meaning, cast("Keep", keep), date, pairs
    )
    settings.check()
    if to is not None:
        check_target(to)
    opened = open_collection(collection)
    with progress(quiet=json) as notify:
        found = find_duplicates(opened, settings, notify)
    for group in found.groups:
        if json:
            print_json(group.to_dict())
        else:
            rest = ", ".join(f"{snippet(d.id, 40)} ({d.kind} {d.similarity:.2f})" for d in group.duplicates[:5])
            more = f" and {len(group.duplicates) - 5:,} more" if len(group.duplicates) > 5 else ""
            print(f"{snippet(group.representative, 40)}: {rest}{more}")
    for first, second, alike in found.pairs:
        print_json({"pair": [first, second], "cosine": alike}) if json else print(f"{alike:.4f}  {first}  {second}")
    could = f"{len(found.redundant):,} of {found.documents:,} documents could go ({found.share:.1%})"
    say(f"{len(found.groups):,} groups, {could}")
    if to is not None:
        say(f"{to}: {write_without(opened, found, to):,} documents")
