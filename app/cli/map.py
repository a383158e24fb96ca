"""`sonde map`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...indexer.errors import UsageError
from ...indexer.store.kinds import MAP
from ...indexer.wording import counted
from .asking import free_name, say_name
from .cluster import fitted_told
from .output import CollectionPath, Device, Json, Replace, Seed, print_json, progress, say, snippet

if TYPE_CHECKING:
    from ...indexer.progress import Notify
    from ...pipelines.map import Map, MapSettings
    from ..api import Collection


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("map")(map_)


def map_(
    collection: CollectionPath,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="FILE", help="Draw the map to an .html, .png or .svg file; compute it first if necessary."
        ),
    ] = None,
    color: Annotated[
        str | None,
        typer.Option(
            "--color",
            metavar="WHAT",
            help="Colour points by cluster:RUN, topic:RUN, label:RUN, another column of a run, or a metadata column.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="RUN", help="Name of the run.", show_default="map; the newest map if it is only drawn"
        ),
    ] = None,
    replace: Replace = False,
    update: Annotated[
        str | None,
        typer.Option("--update", metavar="RUN", help="Place new documents on an existing map; the others do not move."),
    ] = None,
    neighbours: Annotated[
        int, typer.Option("--neighbours", help="Neighbours per document; lower values show finer structure.")
    ] = 15,
    sample: Annotated[
        int, typer.Option("--sample", help="Number of texts to fit on; the rest are placed among them.")
    ] = 50_000,
    points: Annotated[int, typer.Option("--points", help="Maximum number of documents to draw.")] = 50_000,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Make a two-dimensional map of a collection: similar texts are close together, and regions have names.

    The map is stored as a run. --to draws the newest map, or the one named by --name. It makes a new map only if there
    is none, or with --replace, a new --name or other settings. The page works offline.

    \b
    Examples:
      sonde map reviews.sonde
      sonde map reviews.sonde --to map.html --color stars
      sonde map news.sonde --to map.png --color topic:topics
      sonde map desk.sonde --to map.html --color "taxonomy:taxonomy level 0"
      sonde map news.sonde --update map
    """
    from ...pipelines.map import MapSettings
    from ..api import open as open_collection
    from ..api.functions import check_plot_target

    settings = MapSettings(seed, neighbours, sample=sample)
    settings.check()
    if update is not None and (replace or name is not None):
        raise UsageError("--update keeps the map as it is: leave out --name and --replace")
    if color is not None and to is None:
        raise UsageError("--color needs --to: the file to draw")
    if to is not None:
        check_plot_target(to)
    with progress(quiet=json) as notify:
        opened = open_collection(collection, device=device)
        if update is not None:
            say(f"{update}: {counted(opened.update_map(update, progress=notify), 'document')} placed")
            found, drawn = opened.map_run(update), False
        else:
            known = {run.number for run in opened.runs(MAP)}
            found = _made(opened, settings, name, replace, to is not None, notify)
            drawn = found.run.number in known
        if to is not None:
            found.draw(to, color, points=points, notify=notify)
            say(f"{to}: {counted(min(len(found), points), 'document')}")
    _print_map(found, json, drawn)


def _made(
    opened: "Collection", settings: "MapSettings", name: str | None, replace: bool, drawn: bool, notify: "Notify"
) -> "Map":
    """Return a new map, or the one that is there already if it is only to be drawn and was made in the same way."""
    from ...pipelines.map import MapSettings

    maps = [run for run in opened.runs(MAP) if run.complete]
    known = next((run for run in reversed(maps) if name in (None, run.name)), None)
    if drawn and known and not replace:
        name = known.name
        asked = {key: value for key, value in settings.to_dict().items() if value != MapSettings().to_dict()[key]}
        if other := [key for key, value in asked.items() if known.parameters.get(key) != value]:
            raise UsageError(
                f"the map {name!r} was made with another {' and '.join(other)}: --replace it, or give a --name"
            )
        return opened.map_run(name)
    name = name or "map"
    free = free_name(opened, MAP.name, name, replace)
    found = opened.map(free, replace=replace, settings=settings, progress=notify)
    say_name(MAP.name, name, found.name)
    return found


def _print_map(found: "Map", json: bool, drawn: bool) -> None:
    if json:
        for item in found.regions:
            print_json({"run": found.name, "number": item.number, "name": item.name, **item.data})
        return
    for item in found.regions:
        if item.data["level"] == 1:
            print(f"{item.data['size']:>9,}  {snippet(item.name, 70)}")
    report = found.run.report
    parts = [counted(len(found), "document"), *fitted_told(report, "placed near their neighbours")]
    if found.newer:
        newer = f"{found.newer:,} newer {'document is' if found.newer == 1 else 'documents are'} not on it"
        parts.append(f"{newer}: sonde map {found.collection.named} --update {found.name}")
    parts.append(f"made {found.run.created[:16].replace('T', ' ')} UTC" if drawn else f"{found.run.seconds:,.1f} s")
    say(f"{found.name}: {' · '.join(parts)}")
