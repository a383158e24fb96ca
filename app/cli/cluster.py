"""`sonde cluster`; and the curve from which the number of clusters was chosen, with its old command `sonde curve`."""

import heapq
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ...indexer.errors import SondeError, UsageError
from ...indexer.store.kinds import CLUSTER
from ...indexer.wording import counted
from .asking import free_name, say_name
from .output import (
    CollectionPath,
    Device,
    Json,
    LabelsFile,
    NamerAddress,
    NamerModel,
    NamerShow,
    Names,
    NamingEngine,
    Replace,
    Seed,
    print_json,
    progress,
    quoted,
    say,
    snippet,
)

if TYPE_CHECKING:
    from ...indexer.store.runs import Item, Run
    from ...pipelines.cluster.settings import Method, Outliers
    from ..api import Collection

LARGEST = 20
"""Clusters that are printed, at most."""
MEASURES = {"cohesion": "cohesion", "stability": "stability", "name_accuracy": "accuracy"}
"""The measures of a group that a table shows, with the heads of their columns."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("cluster")(cluster)
    app.command("curve", hidden=True)(curve)


def cluster(
    collection: CollectionPath,
    method: Annotated[str, typer.Option("--method", help="kmeans, or density (UMAP and HDBSCAN).")] = "kmeans",
    k: Annotated[str, typer.Option("-k", help="Number of KMeans clusters, or auto.")] = "auto",
    name: Annotated[
        str | None, typer.Option("--name", metavar="RUN", help="Name of the run; the method by default.")
    ] = None,
    replace: Replace = False,
    update: Annotated[
        str | None,
        typer.Option("--update", metavar="RUN", help="Only assign new documents to the clusters of an existing run."),
    ] = None,
    outliers: Annotated[
        str,
        typer.Option("--outliers", help="Density: keep outliers, move each to its nearest cluster, or recluster them."),
    ] = "keep",
    min_size: Annotated[
        int | None,
        typer.Option("--min-size", help="Density: minimum texts per cluster; depends on the corpus size by default."),
    ] = None,
    sample: Annotated[
        int, typer.Option("--sample", help="Density: number of texts to fit on; the rest are assigned afterwards.")
    ] = 50_000,
    restarts: Annotated[int, typer.Option("--restarts", help="KMeans: number of fits; the best one is kept.")] = 5,
    refits: Annotated[
        int | None, typer.Option("--refits", help="Number of fits used to measure stability; 0 turns it off.")
    ] = None,
    labels: Annotated[
        str | None, typer.Option("--labels", metavar="A,B,C", help="Name clusters with these labels where one fits.")
    ] = None,
    labels_file: LabelsFile = None,
    engine: NamingEngine = "similarity",
    names: Names = "auto",
    namer: NamerAddress = None,
    namer_model: NamerModel = None,
    namer_show: NamerShow = False,
    where: Annotated[
        str | None, typer.Option("--where", help="Cluster only documents that match this filter on metadata and runs.")
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Group the documents of a collection by meaning, and store the result as a run.

    The same collection, settings and versions give the same clusters.

    \b
    Examples:
      sonde cluster reviews.sonde -k 3
      sonde cluster reviews.sonde --name themes
      sonde cluster reviews.sonde --method density --outliers nearest
      sonde cluster reviews.sonde -k 2 --where "stars <= 2" --name unhappy
      sonde cluster reviews.sonde -k 3 --labels refund,praise,delivery --name named
      sonde cluster themes.sonde --update kmeans
    """
    from ...pipelines.cluster import ClusterSettings
    from ..api import open as open_collection
    from ..api.functions import read_candidates

    settings = ClusterSettings(
        cast("Method", method), number_or_auto(k), seed, restarts, min_size, cast("Outliers", outliers), sample=sample,
        refits=refits, where=where, names=cast(Any, names), labels=read_candidates(labels, labels_file),
        engine=engine, namer=namer, namer_model=namer_model, namer_show=namer_show,
    )  # fmt: skip
    settings.check()
    if update is not None and (name is not None or replace):
        raise UsageError("--update keeps the run's name: leave out --name and --replace")
    if update is not None and settings != ClusterSettings():
        raise UsageError("--update keeps the run's settings: leave out --method, -k and the others")
    with progress(quiet=json) as notify:
        opened = open_collection(collection, device=device)
        if update is not None:
            updated = opened.update_clusters(update, progress=notify)
            print_json(updated.to_dict()) if json else print(
                f"{updated.run}: {counted(updated.added, 'document')} added, "
                f"{counted(updated.outliers, 'outlier')} among {'it' if updated.added == 1 else 'them'}"
            )
            return
        asked = settings.method if name is None else name
        found = opened.cluster(
            free_name(opened, CLUSTER.name, asked, replace), replace=replace, settings=settings, progress=notify
        )
    say_name(CLUSTER.name, asked, found.run)
    if found.left_out:
        say(f"{counted(found.left_out, 'document')} left out: changed during the run")
    if json:
        for item in found.clusters:
            print_json({"run": found.run, **item_values(item)})
        return
    shown = f"sonde runs show {quoted(collection)} {quote(found.run)}"
    largest = {item.number for item in heapq.nlargest(LARGEST, found.clusters, key=lambda item: item.data["size"])}
    print_items([item for item in found.clusters if item.number in largest])
    if len(found.clusters) > LARGEST:
        print(f"… and {len(found.clusters) - LARGEST:,} more: {shown}")
    say(summary(found.run, found.report, found.seconds))
    say_unclear(found.run, found.report)
    number = min((number for number in largest if number >= 0), default="")
    print(f"try: {shown} {number}".rstrip())


def number_or_auto(text: str) -> "Any":
    """Return a whole number, or "auto".

    Raises:
        UsageError: It is neither.
    """
    if text == "auto" or text.removeprefix("-").isdecimal():
        return text if text == "auto" else int(text)
    raise UsageError(f"-k is {text!r}: give a whole number, or auto")


def item_values(item: "Item") -> dict[str, Any]:
    """Return a cluster, topic or label as JSON values."""
    return {"number": item.number, "name": item.name, **item.data}


def print_items(items: "list[Item] | Any") -> None:
    """Print a table of clusters, topics or labels, with the measures that any of them has."""
    measures = [name for name in MEASURES if any(item.data.get(name) is not None for item in items)]
    heads = "".join(f" {MEASURES[name]:>9}" for name in measures)
    print(f"{'number':>6} {'size':>9}{heads}  name")
    for item in items:
        cells = (item.data.get(name) for name in measures)
        shown = "".join(f" {'–' if value is None else format(value, '.3f'):>9}" for value in cells)
        print(f"{item.number:>6} {item.data.get('size', 0):>9,}{shown}  {snippet(item.name, 70)}")


def names_told(report: Mapping[str, Any]) -> list[str]:
    """Return what a report says of its names: no part, where they were not measured."""
    accuracy = report.get("name_accuracy")
    return [] if accuracy is None else [f"name accuracy {accuracy:.2f} on {counted(report['name_texts'], 'text')}"]


def fitted_told(report: Mapping[str, Any], how: str) -> list[str]:
    """Return how many texts a run was fitted on, and how the others got a place, if there are any; or no part."""
    if "fitted" not in report:
        return []
    others = f", {report['carried']:,} more {how}" if report.get("carried") else ""
    return [f"fitted on {counted(report['fitted'], 'text')}{others}"]


def summary(name: str, report: Any, seconds: float) -> str:
    """Return one line that says what a clustering found."""
    parts = [counted(report["clusters"], "cluster"), counted(report["documents"], "document")]
    if report["outliers"]:
        parts.append(f"{counted(report['outliers'], 'outlier')} ({report['outlier_share']:.1%})")
    parts += fitted_told(report, "assigned by their neighbours") if report.get("carried") else []
    parts += [f"{key} {report[key]:.3f}" for key in ("silhouette", "stability") if report[key] is not None]
    parts += names_told(report)
    return f"{name}: {' · '.join(parts)} · {seconds:,.1f} s"


def say_unclear(name: str, report: Mapping[str, Any]) -> None:
    """Say so if the number of groups that a run chose is not clear."""
    if report.get("clear") is False:
        low, high = report["equal"]
        about = f"{low:,} to {high:,} are about equally good" if low < high else "other seeds give other groups"
        say(f"{name}: the number of groups is not clear: {about}")


def curve(
    collection: CollectionPath,
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="A cluster run; the newest by default.")
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="Draw the curve to an .html, .png or .svg file.")
    ] = None,
    json: Json = False,
) -> None:
    """Show the silhouette and stability for each k, from which `sonde cluster` chose the number of clusters.

    The newer names are `sonde runs show C.sonde RUN --curve` and `sonde runs draw C.sonde RUN --to FILE`.
    """
    from ..api import open as open_collection
    from ..api.functions import check_plot_target

    if to is not None:
        check_plot_target(to)
    opened = open_collection(collection)
    found = curve_points(opened, run)
    draw_curve(opened, *found, to) if to is not None else print_curve(*found, json)


def curve_points(opened: "Collection", name: str | None) -> "tuple[Run, list[dict[str, Any]]]":
    """Return a cluster run and the measures of each k that was tried.

    Raises:
        SondeError: The run does not exist, or its number of clusters was given.
    """
    found = opened.cluster_run(name).run
    points = found.report.get("curve") or []
    if not points:
        raise SondeError(f"the cluster run {found.name!r} has no curve: only KMeans with -k auto chooses k on one")
    return found, points


def draw_curve(opened: "Collection", run: "Run", points: "list[dict[str, Any]]", to: Path) -> None:
    """Draw the curve to a file."""
    from ...pipelines.plots import CurvePlot
    from ..api.functions import write_plot

    write_plot(CurvePlot(f"{opened.path.name}: how many clusters ({run.name})", points, run.report["k"]), to)
    say(f"{to}: {counted(len(points), 'number')} of clusters")


def print_curve(run: "Run", points: "list[dict[str, Any]]", json: bool) -> None:
    """Print the curve, with the chosen k marked."""
    for point in points:
        chosen = "  <" if point["k"] == run.report["k"] else ""
        shown = "  ".join(f"{name} {point[name]:.3f}" for name in ("silhouette", "stability", "score"))
        print_json(point | {"chosen": bool(chosen)}) if json else print(f"{point['k']:>4}  {shown}{chosen}")
