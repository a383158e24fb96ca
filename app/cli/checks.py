"""`sonde check`, `sonde watch` and `sonde duplicates`: mistakes in the data, what is new, and copies."""

import heapq
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ...indexer.errors import out_of_range
from ...indexer.files import check_target, write_output
from ...indexer.store.kinds import CHECK, WATCH
from ...indexer.wording import counted
from .asking import Yes, ask_to_replace, free_name, say_name
from .output import CollectionPath, Device, Json, Replace, RunName, Seed, print_json, progress, say, say_notes, snippet

if TYPE_CHECKING:
    from ...pipelines.check import Checked, Found
    from ...pipelines.duplicates import Duplicates
    from ...pipelines.duplicates.pairs import DuplicateKind, Keep
    from ...pipelines.watch import Watched
    from ..api import Collection

ID, WHY, TEXT = 24, 240, 90
"""Characters of an id, of a reason and of a text that are shown."""
CHECKED_TEXT, COPIED_ID = 60, 40
"""Those of a text behind a reason, and of an id in a list of copies."""
ALERT = 3
"""Exit code of `sonde watch --alert` if something changed."""
LARGEST = 20
"""Groups that are shown, the largest first."""
MEMBERS = 5
"""Duplicates of a group that are shown."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (check, watch, duplicates):
        app.command(command.__name__)(command)


def check(
    collection: CollectionPath,
    label: Annotated[
        str | None,
        typer.Option("--label", metavar="COLUMN", help="Column with labels; the check looks for wrong ones."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            "--split", metavar="COLUMN", help="Column with the splits (train, test); the check looks for leaks."
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option("--only", "--kinds", metavar="A,B", help="Kinds of checks, separated by commas; default: all."),
    ] = None,
    region: Annotated[
        str | None,
        typer.Option("--region", metavar="CODE", help="Country of phone numbers without a country code, such as US."),
    ] = None,
    name: RunName = "check",
    replace: Replace = False,
    k: Annotated[int, typer.Option("-k", help="Number of documents to show for each kind.")] = 3,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Check the data: doubtful labels, leaks, duplicates, outliers, boilerplate, personal data, non-answers.

    The result is stored as a run: filter, review and export it like any other. Kinds of checks: label, leak, duplicate,
    outlier, language, boilerplate, short, cut, "personal data", non-answer.

    \b
    Examples:
      sonde check reviews.sonde
      sonde check tickets.sonde --label status --name labels
      sonde check tickets.sonde --only "short,personal data" --region US
      sonde check tickets.sonde --only non-answer --name empty
    """
    from ...pipelines.check.settings import CheckSettings
    from ..api import open as open_collection

    if k < 0:
        raise out_of_range("k", k, "give a whole number, 0 or more")
    kinds: Any = [kind.strip() for kind in only.split(",") if kind.strip()] if only else ()
    settings = CheckSettings(label, split, kinds, region=region, seed=seed)
    settings.check()
    with progress(quiet=json) as notify:
        opened = open_collection(collection, device=device)
        free = free_name(opened, CHECK.name, name, replace)
        found = opened.check(free, replace=replace, settings=settings, progress=notify)
    say_name(CHECK.name, name, found.name)
    print_json(found.to_dict()) if json else _print_findings(opened, found, k)
    say_notes(found.notes)
    concerned = len({each.id for some in found.found.values() for each in some})
    say(
        f"{found.name}: {concerned:,} of {counted(found.documents, 'document')} have a finding · {found.seconds:,.1f} s"
    )


def _print_findings(opened: "Collection", found: "Checked", k: int) -> None:
    """Print the number of documents of each kind and the worst of them: reason and beginning of the text."""
    from ...pipelines.check.settings import TITLES

    shown = [each.id for some in found.found.values() for each in some[:k]]
    texts = opened.texts(list(dict.fromkeys(shown)), 4 * CHECKED_TEXT)
    for kind, some in found.found.items():
        print(f"{len(some):>6,}  {TITLES[kind]}")
        for each in some[:k]:
            stored = texts[each.id]
            print(f"{'':8}{_reason(each)}  {snippet((stored.text.strip() or stored.title), CHECKED_TEXT)}")


def _reason(found: "Found") -> str:
    return f"{snippet(found.id, ID)} · {found.score:.2f} · {snippet(found.why, WHY)} ·"


def watch(
    collection: CollectionPath,
    since: Annotated[
        str,
        typer.Option(
            "--since", metavar="DATE|RUN",
            help="A date: documents from then on are new. A run: documents that it does not contain are new.",
        ),
    ],
    date: Annotated[
        str | None, typer.Option("--date", metavar="COLUMN", help="Column with the dates; needed if there are several.")
    ] = None,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="GROUPS", help="Cluster or topic run, or taxonomy; default: the newest."),
    ] = None,
    alarms: Annotated[
        float, typer.Option("--alarms", metavar="P", help="Maximum chance of a false alarm.")
    ] = 0.01,
    name: RunName = "watch",
    replace: Replace = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the result as an HTML page.")
    ] = None,
    alert: Annotated[bool, typer.Option("--alert", help="End with exit code 3 if something changed.")] = False,
    k: Annotated[int, typer.Option("-k", help="Number of examples to show for each change.")] = 3,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:  # fmt: skip
    """Show what is new: groups that grew, shrank or appeared among the new documents.

    If new documents are like old ones, the chance of any alarm is at most --alarms. The result is stored as a run.

    \b
    Examples:
      sonde watch tickets.sonde --since 2026-11-01
      sonde watch tickets.sonde --since october --run october --html new.html
      sonde watch tickets.sonde --since 2026-11-23 --alert --json
    """
    from ...pipelines.watch.settings import WatchSettings
    from ..api import open as open_collection

    if k < 0:
        raise out_of_range("k", k, "give a whole number, 0 or more")
    settings = WatchSettings(since, date, run, alarms, seed)
    settings.check()
    if html is not None:
        check_target(html, (".html",), "write to")
    with progress(quiet=json) as notify:
        opened = open_collection(collection, device=device)
        free = free_name(opened, WATCH.name, name, replace)
        found = opened.watch(since, free, replace=replace, settings=settings, progress=notify)
    say_name(WATCH.name, name, found.name)
    print_json(found.to_dict()) if json else _print_changes(found, k)
    if html is not None:
        page = found.html().encode()
        write_output(html, lambda stream: stream.write(page))
    say_notes(found.notes)
    if found.new:
        compared = f"{counted(found.new, 'new document')} and {found.old:,} old"
        say(f"{found.name}: {counted(len(found.changes), 'change')} · {compared} · {found.seconds:,.1f} s")
    if alert and found.changes:
        raise typer.Exit(ALERT)


def _print_changes(found: "Watched", k: int) -> None:
    """Print each change with its figures and examples."""
    for change in found.changes:
        print(f"{change.title}\n    {change.figures}")
        for example in change.examples[:k]:
            print(f"{'':8}{snippet(example.id, ID)} · {snippet(example.text, TEXT)}")
    if not found.changes:
        print("no significant change" if found.new else f"no new documents since {found.since!r}")


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
            "--to",
            metavar="FILE",
            help="Write all documents without the duplicates: .xlsx, .csv, .parquet, .jsonl, .ris.",
        ),
    ] = None,
    same: Annotated[
        str | None,
        typer.Option(
            "--same", metavar="COLUMN", help="Documents with the same value in this column are duplicates too."
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
      sonde duplicates review.sonde --same doi --keep longest
    """
    from ...pipelines.duplicates import DuplicateSettings
    from ..api import open as open_collection
    from ..api.functions import check_export_target

    kinds = tuple(kind.strip() for kind in by.split(",") if kind.strip())
    settings = DuplicateSettings(
        cast("tuple[DuplicateKind, ...]", kinds), near, meaning, cast("Keep", keep), date, pairs, same
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
        _print_copies(opened, found)
    say_notes(found.notes)
    could = f"{len(found.redundant):,} of {counted(found.documents, 'document')} can be removed ({found.share:.1%})"
    say(f"{counted(len(found.groups), 'group')}, {could}")
    if to is not None:
        with progress(quiet=True) as notify:
            count = opened.export(to, without=found.redundant, progress=notify)
        say(f"{to}: {counted(count, 'document')}")


def _print_copies(opened: "Collection", found: "Duplicates") -> None:
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
    texts = opened.texts(list(dict.fromkeys(ids)), 4 * TEXT)
    shown = {id: f"{each.title} · {each.text}" if each.title.strip() else each.text for id, each in texts.items()}
    return {id: f"{snippet(id, COPIED_ID)} · {snippet(text, TEXT)}" for id, text in shown.items()}
