"""`sonde check`: mistakes in the data."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...indexer.store.kinds import CHECK
from ...indexer.wording import counted
from .asking import free_name, say_name
from .output import CollectionPath, Device, Json, Seed, print_json, progress, say, say_notes, snippet

if TYPE_CHECKING:
    from ...pipelines.check import Checked, Found
    from ..api import Collection

ID, WHY, TEXT = 24, 240, 60
"""Characters of an id, of a reason and of a text that are shown."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check")(check)


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
    name: Annotated[str, typer.Option("--name", metavar="RUN", help="Name of the run.")] = "check",
    replace: Annotated[bool, typer.Option("--replace", help="Replace a run of the same name.")] = False,
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
    from ...indexer.errors import out_of_range
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
    print_json(found.to_dict()) if json else _print(opened, found, k)
    say_notes(found.notes)
    concerned = len({each.id for some in found.found.values() for each in some})
    say(
        f"{found.name}: {concerned:,} of {counted(found.documents, 'document')} have a finding · {found.seconds:,.1f} s"
    )


def _print(opened: "Collection", found: "Checked", k: int) -> None:
    """Print the number of documents of each kind and the worst of them: reason and beginning of the text."""
    from ...pipelines.check.settings import TITLES

    shown = [each.id for some in found.found.values() for each in some[:k]]
    texts = opened.texts(list(dict.fromkeys(shown)), 4 * TEXT)
    for kind, some in found.found.items():
        print(f"{len(some):>6,}  {TITLES[kind]}")
        for each in some[:k]:
            stored = texts[each.id]
            print(f"{'':8}{_reason(each)}  {snippet((stored.text.strip() or stored.title), TEXT)}")


def _reason(found: "Found") -> str:
    return f"{snippet(found.id, ID)} · {found.score:.2f} · {snippet(found.why, WHY)} ·"
