"""`sonde watch`: what is new."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...indexer.files import check_target, write_output
from ...indexer.store.kinds import WATCH
from ...indexer.wording import counted
from .asking import free_name, say_name
from .output import CollectionPath, Device, Json, Seed, print_json, progress, say, say_notes, snippet

if TYPE_CHECKING:
    from ...pipelines.watch import Watched

ALERT = 3
"""Exit code of --alert if something changed."""
ID, TEXT = 24, 90
"""Characters of an id and of a text that are shown."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("watch")(watch)


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
    name: Annotated[str, typer.Option("--name", metavar="RUN", help="Name of the run.")] = "watch",
    replace: Annotated[bool, typer.Option("--replace", help="Replace a run of the same name.")] = False,
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
    from ...indexer.errors import out_of_range
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
    print_json(found.to_dict()) if json else _print(found, k)
    if html is not None:
        page = found.html().encode()
        write_output(html, lambda stream: stream.write(page))
    say_notes(found.notes)
    if found.new:
        compared = f"{counted(found.new, 'new document')} and {found.old:,} old"
        say(f"{found.name}: {counted(len(found.changes), 'change')} · {compared} · {found.seconds:,.1f} s")
    if alert and found.changes:
        raise typer.Exit(ALERT)


def _print(found: "Watched", k: int) -> None:
    """Print each change with its figures and examples."""
    for change in found.changes:
        print(f"{change.title}\n    {change.figures}")
        for example in change.examples[:k]:
            print(f"{'':8}{snippet(example.id, ID)} · {snippet(example.text, TEXT)}")
    if not found.changes:
        print("no significant change" if found.new else f"no new documents since {found.since!r}")
