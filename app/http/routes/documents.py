"""Routes for what a collection holds: documents (get, put, delete, embed), and the results of runs."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response

from ....indexer.document import Document
from ....indexer.errors import NothingToIndexError, SondeError, TooManyFieldsError
from ....indexer.progress import Notify
from ....indexer.store.kinds import CLUSTER, LABEL, MAP, TOPIC, RunKind
from ....indexer.store.view import StoredDocument
from ....pipelines.analysis.runs import RunDetails
from ...api.functions import json_value
from ..context import PROBLEMS, Context, Named, Reader, Writer
from ..hosted import Hosted
from ..problems import IN_THE_QUERY, ON_DISK, ProblemError
from ..responses import Deleted, DocumentOut, Groups, MapPage, RunOut, Vectors, Written
from ..route import CheckedRoute, answering
from ..schemas import DocumentIn, EmbedRequest, PutRequest, typed

router = APIRouter(tags=["documents"], responses=PROBLEMS, route_class=CheckedRoute)
runs_router = APIRouter(tags=["runs"], responses=PROBLEMS, route_class=CheckedRoute)
Id = Annotated[str, Query(description="The document's id.")]
RunName = Annotated[str | None, Query(description="The run's name; the newest one if left out.")]


@router.get("/documents/{id:path}", response_model=DocumentOut, summary="Get a document")
async def get_document(id: str, context: Reader, collection: Named = None) -> Response:
    """Return a stored document with its metadata."""
    return await context.quick(answering(_shown), context.hosts.find(collection), id)


@router.get("/documents", response_model=DocumentOut, summary="Get a document by an id with any characters")
async def get_document_by_id(id: Id, context: Reader, collection: Named = None) -> Response:
    """Return a stored document with its metadata, also one whose id ends with a slash or holds a line break."""
    return await context.quick(answering(_shown), context.hosts.find(collection), id)


@router.put("/documents", response_model=Written, summary="Add or replace documents")
async def put_documents(body: PutRequest, context: Writer) -> Response:
    """Write documents in one commit; later searches find them at once. Of several with the same id, the last is kept.

    Unchanged documents are not processed again.
    """
    host = context.hosts.find(body.collection)
    context.check_count(len(body.documents), "documents")
    for place, document in enumerate(body.documents):
        context.check_text(document.text + document.title, f"documents.{place}.text")
    return await host.writes.run("put", lambda notify: answering(_written)(host, body.documents, notify))


@router.delete("/documents/{id:path}", response_model=Deleted, summary="Delete a document")
async def delete_document(id: str, context: Writer, collection: Named = None) -> Response:
    """Delete a document; searches that start after the response do not find it."""
    host = context.hosts.find(collection)
    return await host.writes.run("delete", lambda _: answering(_deleted)(host, id))


@router.delete("/documents", response_model=Deleted, summary="Delete a document by an id with any characters")
async def delete_document_by_id(id: Id, context: Writer, collection: Named = None) -> Response:
    """Delete a document, also one whose id ends with a slash or holds a line break."""
    host = context.hosts.find(collection)
    return await host.writes.run("delete", lambda _: answering(_deleted)(host, id))


@router.post("/embed", response_model=Vectors, summary="Embed texts with the collection's bi-encoder")
async def embed(body: EmbedRequest, context: Reader) -> Response:
    """Return an embedding for each text. Only the beginning of a text longer than the model's window is used."""
    host = context.hosts.find(body.collection)
    check_texts(context, body.texts)
    return await context.slow(answering(_embedded), host, body)


def check_texts(context: Context, texts: list[str]) -> None:
    """Reject a list that is too long or holds an invalid text.

    Raises:
        ProblemError: The list is rejected (422); the field's name includes the position of the text.
    """
    context.check_count(len(texts), "texts")
    for place, text in enumerate(texts):
        context.check_text(text, f"texts.{place}")


def _found(host: Hosted, key: str) -> StoredDocument:
    if not key:
        raise ProblemError(404, f"the path has no id; {IN_THE_QUERY}", "id")
    found = host.collection.documents([key]).get(key)
    if not found:
        raise ProblemError(404, f"there is no document with the id {key!r}", "id")
    return found


def _shown(host: Hosted, key: str) -> dict[str, Any]:
    found = _found(host, key)
    metadata = {name: json_value(value) for name, value in found.metadata.items()}
    return {"id": found.id, "title": found.title, "text": found.text, "metadata": metadata}


def _deleted(host: Hosted, key: str) -> dict[str, Any]:
    return {"deleted": host.collection.delete([_found(host, key).id])}


def _embedded(host: Hosted, body: EmbedRequest) -> dict[str, Any]:
    vectors = host.collection.embed(body.texts, query=body.query)
    return {"model": host.collection.model, "dimension": vectors.shape[1], "vectors": vectors.tolist()}


def _document(given: DocumentIn, fields: Mapping[str, str]) -> Document:
    """Return a document with dates as such, except in fields that hold text, which keep what was sent."""
    metadata: dict[str, Any] = dict(given.metadata)
    metadata |= {name: typed(value) for name, value in metadata.items() if fields.get(name) != "text"}
    return Document(given.text, given.title, given.id, metadata, origin=given.id)


def _written(host: Hosted, given: list[DocumentIn], notify: Notify) -> dict[str, Any]:
    fields = host.collection.fields()
    try:
        report = host.collection.put([_document(each, fields) for each in given], progress=notify)
    except (NothingToIndexError, TooManyFieldsError) as error:
        raise ProblemError(422, str(error), "documents") from None
    skipped = [{"id": row.origin, "reason": row.reason} for row in report.skipped_rows]
    counts = {name: getattr(report, name) for name in ("added", "replaced", "unchanged", "duplicate_ids")}
    return counts | {"skipped": skipped}


@runs_router.get("/runs", response_model=list[RunOut], summary="All runs: clusterings, topic models, labellings, maps")
async def runs(context: Reader, collection: Named = None) -> Response:
    """Return every run with its parameters, versions and report."""
    return await context.slow(answering(_runs), context.hosts.find(collection))


@runs_router.get("/clusters", response_model=Groups, summary="The clusters of a run")
async def clusters(context: Reader, run: RunName = None, collection: Named = None) -> Response:
    """Return the clusters with their size, terms and the documents nearest to the centre."""
    return await _items(context, CLUSTER, run, collection)


@runs_router.get("/topics", response_model=Groups, summary="The topics of a run")
async def topics(context: Reader, run: RunName = None, collection: Named = None) -> Response:
    """Return the topics with their terms and representative documents; the run `fine:NAME` is a level of one."""
    return await _items(context, TOPIC, run, collection)


@runs_router.get("/labels", response_model=Groups, summary="The labels of a run")
async def labels(context: Reader, run: RunName = None, collection: Named = None) -> Response:
    """Return the labels of a label run and the number of documents with each label."""
    return await _items(context, LABEL, run, collection)


@runs_router.get("/map", response_model=MapPage, summary="Where a map puts the documents")
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


def _run_of(host: Hosted, kind: RunKind, name: str | None) -> RunDetails:
    try:
        return host.collection.newest_run(kind, name)
    except SondeError as error:
        if error.code in ON_DISK:
            raise
        raise ProblemError.of(error, 404) from None


def _described(host: Hosted, kind: RunKind, name: str | None) -> dict[str, Any]:
    found = _run_of(host, kind, name)
    sizes = host.collection.item_sizes(found.run)
    items = [
        {"number": item.number, "name": item.name, "documents": sizes.get(item.number, 0), **item.data}
        for item in found.items
    ]
    return {"run": found.run.to_dict(), "items": items}


def _places(host: Hosted, name: str | None, offset: int, limit: int) -> dict[str, Any]:
    found = _run_of(host, MAP, name)
    total, places = host.collection.places(found.run, limit, offset)
    points = [{"id": id, "x": x, "y": y} for id, x, y in places]
    regions = [{"name": item.name, **item.data} for item in found.items]
    return {"run": found.run.to_dict(), "total": total, "points": points, "regions": regions}
