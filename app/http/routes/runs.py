"""Routes for the results of runs: clusters, topics, labels and maps."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response

from ....indexer.errors import SondeError
from ....indexer.store.kinds import CLUSTER, LABEL, MAP, TOPIC, RunKind
from ....pipelines.analysis.runs import RunDetails
from ..answers import answering
from ..context import PROBLEMS, Context, Named, Reader
from ..hosted import Hosted
from ..problems import ON_DISK, ProblemError
from ..responses import Groups, MapPage, RunOut
from ..route import CheckedRoute

router = APIRouter(tags=["runs"], responses=PROBLEMS, route_class=CheckedRoute)
RunName = Annotated[str | None, Query(description="The run's name; the newest one if left out.")]


@router.get("/runs", response_model=list[RunOut], summary="All runs: clusterings, topic models, labellings, maps")
async def runs(context: Reader, collection: Named = None) -> Response:
    """Return every run with its parameters, versions and report."""
    return await context.slow(answering(_runs), context.hosts.find(collection))


@router.get("/clusters", response_model=Groups, summary="The clusters of a run")
async def clusters(context: Reader, run: RunName = None, collection: Named = None) -> Response:
    """Return the clusters with their size, terms and the documents nearest to the centre."""
    return await _items(context, CLUSTER, run, collection)


@router.get("/topics", response_model=Groups, summary="The topics of a run")
async def topics(context: Reader, run: RunName = None, collection: Named = None) -> Response:
    """Return the topics with their terms and representative documents; the run `fine:NAME` is a level of one."""
    return await _items(context, TOPIC, run, collection)


@router.get("/labels", response_model=Groups, summary="The labels of a run")
async def labels(context: Reader, run: RunName = None, collection: Named = None) -> Response:
    """Return the labels of a label run and the number of documents with each label."""
    return await _items(context, LABEL, run, collection)


@router.get("/map", response_model=MapPage, summary="Where a map puts the documents")
async def places(
    context: Reader,
    run: RunName = None,
    collection: Named = None,
    offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000,
) -> Response:
    """Return document ids and their map coordinates, in pages of `limit`, and the map's regions."""
    host = context.hosts.find(collection)
    return await context.slow(answering(_places), host, run, offset, limit)


async def _items(context: Context, kind: RunKind, name: str | None, collection: str | None) -> Response:
    host = context.hosts.find(collection)
    return await context.slow(answering(_described), host, kind, name)


def _runs(host: Hosted) -> list[dict[str, Any]]:
    return [run.to_dict() for run in host.collection.runs()]


def _found(host: Hosted, kind: RunKind, name: str | None) -> RunDetails:
    try:
        return host.collection.newest_run(kind, name)
    except SondeError as error:
        if error.code in ON_DISK:
            raise
        raise ProblemError.of(error, 404) from None


def _described(host: Hosted, kind: RunKind, name: str | None) -> dict[str, Any]:
    found = _found(host, kind, name)
    sizes = host.collection.item_sizes(found.run)
    items = [
        {"number": item.number, "name": item.name, "documents": sizes.get(item.number, 0), **item.data}
        for item in found.items
    ]
    return {"run": found.run.to_dict(), "items": items}


def _places(host: Hosted, name: str | None, offset: int, limit: int) -> dict[str, Any]:
    found = _found(host, MAP, name)
    total, places = host.collection.places(found.run, limit, offset)
    points = [{"id": id, "x": x, "y": y} for id, x, y in places]
    regions = [{"name": item.name, **item.data} for item in found.items]
    return {"run": found.run.to_dict(), "total": total, "points": points, "regions": regions}
