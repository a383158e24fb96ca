"""`sonde duplicates`."""

import heapq
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ...indexer.wording import counted
from .asking import Yes, ask_to_replace
from .output import CollectionPath, Device, Json, print_json, progress, say, say_notes, snippet

if TYPE_CHECKING:
    from ...pipelines.duplicates import Duplicates
    from ...pipelines.duplicates.pairs import DuplicateKind, Keep
    from ..api import Collection

ID, TEXT = 40, 90
"""Characters of an id and of a text that are shown."""
LARGEST = 20
"""Groups that are shown, the largest first."""
MEMBERS = 5
"""Duplicates of a group that are shown."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("duplicates")(duplicates)


def duplicates(
    collection: CollectionPath,
    by: Annotated[str, typer.Option("--by", help="Kinds of duplicates, separated by commas.")] = "exact,near,meaning",
    near: Annotated[
        float, typer.Option("--near", metavar="J", help="Near duplicates: minimum Jaccard similarity.")
    ] = 0.8,
    meaning: Annotated[
        float, typer.Option("--meaning", metavar="T", help="Duplicates by meaning: minimum cosine.")
    ] = 0.95,
    keep: Annotated[
        str, typer.Option("--keep", help="Which of several duplicates to keep: first, longest or newest.")
    ] = "first",
    date: Annotated[
        str | None, typer.Option("--date", metavar="COLUMN", help="With --keep newest: the column with the date.")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="FILE", help="Write all documents without the duplicates: .xlsx, .csv, .parquet, .jsonl."
        ),
    ] = None,
    pairs: Annotated[int, typer.Option("--pairs", metavar="N", help="Also show the N closest pairs by meaning.")] = 0,
    device: Device = "auto",
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Find duplicate documents: exact, near (most word sequences in common) or by meaning.

    \b
    Examples:
      sonde duplicates reviews.sonde
      sonde duplicates reviews.sonde --by exact,near --keep longest --to unique.parquet
      sonde duplicates reviews.sonde --by meaning --meaning 0.9 --pairs 5
    """
    from ...pipelines.duplicates import DuplicateSettings
    from ..api import open as open_collection
    from ..api.functions import check_export_target

    kinds = tuple(kind.strip() for kind in by.split(",") if kind.strip())
    settings = DuplicateSettings(
        cast("tuple[DuplicateKind, ...]", kinds), near, meaning, cast("Keep", keep), date, pairs
    )
    settings.check()
    if to is not None:
        check_export_target(to)
    opened = open_collection(collection, device=device)
    ask_to_replace(yes, to)
    with progress(quiet=json) as notify:
        found = opened.duplicates(settings=settings, progress=notify)
    if json:
        for group in found.groups:
            print_json(group.to_dict())
        for first, second, alike in found.pairs:
            print_json({"pair": [first, second], "cosine": alike})
    else:
        _print(opened, found)
    say_notes(found.notes)
    could = f"{len(found.redundant):,} of {counted(found.documents, 'document')} can be removed ({found.share:.1%})"
    say(f"{counted(len(found.groups), 'group')}, {could}")
    if to is not None:
        with progress(quiet=True) as notify:
            count = opened.export(to, without=found.redundant, progress=notify)
        say(f"{to}: {counted(count, 'document')}")


def _print(opened: "Collection", found: "Duplicates") -> None:
    """Print the largest groups, each with its size and representative and below them its duplicates, then pairs."""
    largest = heapq.nlargest(LARGEST, found.groups, key=lambda group: len(group.duplicates))
    shown = [(group, group.duplicates[:MEMBERS]) for group in largest]
    ids = [key for group, some in shown for key in (group.representative, *(each.id for each in some))]
    lines = _lines(opened, [*ids, *(key for first, second, _ in found.pairs for key in (first, second))])
    if shown:
        print("size  document that is kept, and below it its duplicates: kind, similarity, document")
    for group, some in shown:
        print(f"{len(group.duplicates) + 1:>4}  {lines[group.representative]}")
        for each in some:
            print(f"      {each.kind:<7} {each.similarity:.2f}  {lines[each.id]}")
        if len(group.duplicates) > MEMBERS:
            print(f"      and {len(group.duplicates) - MEMBERS:,} more")
    if left := len(found.groups) - len(largest):
        print(f"… and {counted(left, 'more group')}: --json prints all, and --to FILE writes the documents to keep")
    if found.pairs:
        print("closest pairs:")
    for first, second, alike in found.pairs:
        print(f"{alike:.4f}  {lines[first]}\n        {lines[second]}")


def _lines(opened: "Collection", ids: list[str]) -> dict[str, str]:
    """Return each document's id with its title, or the beginning of its text."""
    return {
        id: f"{snippet(id, ID)} · {snippet(f'{each.title} · {each.text}' if each.title.strip() else each.text, TEXT)}"
        for id, each in opened.texts(list(dict.fromkeys(ids)), 4 * TEXT).items()
    }
