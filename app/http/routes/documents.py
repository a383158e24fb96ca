"""Routes for documents (get, put, delete, embed) and for the state of the service."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import PlainTextResponse, Response

from ....indexer.document import Document
from ....indexer.errors import NothingToIndexError, TooManyFieldsError
from ....indexer.progress import Notify
from ....indexer.store.view import StoredDocument
from ...api.functions import json_value
from ...api.opening import UNREADABLE
from ..answers import answering, json_answer, json_bytes
from ..context import CONTENT_TYPE, PROBLEMS, Context, Named, Reader, Writer
from ..hosted import Hosted
from ..problems import IN_THE_QUERY, RETRY, ProblemError, busy, problem
from ..queues import BusyError
from ..responses import Alive, CollectionOut, Deleted, DocumentOut, JobOut, Ready, Vectors, Written
from ..route import CheckedRoute
from ..schemas import DocumentIn, EmbedRequest, PutRequest, typed

router = APIRouter(tags=["documents"], responses=PROBLEMS, route_class=CheckedRoute)
Id = Annotated[str, Query(description="The document's id.")]


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
    check_texts(context, body.texts, "texts")
    return await context.slow(answering(_embedded), host, body)


def check_texts(context: Context, texts: list[str], field: str) -> None:
    """Reject a list that is too long or holds an invalid text.

    Raises:
        ProblemError: The list is rejected (422); the field's name includes the position of the text.
    """
    context.check_count(len(texts), field)
    for place, text in enumerate(texts):
        context.check_text(text, f"{field}.{place}")


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


OPEN: dict[int | str, dict[str, Any]] = {status: PROBLEMS[status] for status in (403, 408, 413, 421)}
"""What a route without a key may answer, besides its own."""
state_router = APIRouter(tags=["state"], route_class=CheckedRoute)


@state_router.get("/health", response_model=Alive, summary="Is the process alive?", responses=OPEN)
async def health() -> dict[str, str]:
    """Answer while the event loop is running; no key is required."""
    return {"status": "alive"}


@state_router.get(
    "/ready",
    response_model=Ready,
    summary="Is the service ready to answer searches?",
    responses=OPEN | {503: PROBLEMS[503]},
)
async def ready(request: Request) -> Response:
    """Answer 200 once models and indexes are loaded, 503 before; no key is required.

    `unavailable` lists the collections that cannot be used now, or could not be used by the last search, each with the
    code of the error, such as `damaged`. If none can be used, the answer is 503.
    """
    if not request.app.state.ready.is_set():
        return busy("models and indexes are being loaded")
    found: Context = request.app.state.context
    hosts = found.hosts
    with suppress(BusyError, TimeoutError):
        await found.quick(hosts.look)
    if len(hosts.problems) < len(hosts.hosted):
        return json_answer(json_bytes({"status": "ready", "unavailable": hosts.problems}))
    named = ", ".join(f"{name} ({code})" for name, code in hosts.problems.items())
    return problem(503, f"no collection can be used: {named}", headers=RETRY, code=next(iter(hosts.problems.values())))


@state_router.get(
    "/metrics", summary="Metrics in Prometheus' text format", responses=PROBLEMS, response_class=PlainTextResponse
)
async def metrics(request: Request, context: Reader) -> Response:
    """Return requests by route and status, their duration in seconds, the queue length, and the document counts.

    `sonde_collection_damaged` is 1 for a collection that cannot be used, which then has no document count.
    """
    return Response(await context.quick(request.app.state.metrics.text), media_type=CONTENT_TYPE)


@state_router.get("/jobs", response_model=list[JobOut], summary="The writes that wait or run", responses=PROBLEMS)
async def jobs(context: Reader) -> Response:
    """Return every write that has no answer yet: its method, how long it has taken, and how far it is."""
    return json_answer(json_bytes([job.to_dict() for job in context.hosts.jobs]))


@state_router.get(
    "/collections", response_model=list[CollectionOut], summary="The collections and what they hold",
    responses=PROBLEMS,
)  # fmt: skip
async def collections(context: Reader) -> Response:
    """Return the output of `sonde info --json` for every collection, under the name that requests use.

    A damaged collection has only its `name` and an `error`, which says why it cannot be read.
    """
    return await context.slow(answering(_collections), context.hosts.hosted)


def _collections(hosted: dict[str, Hosted]) -> list[dict[str, Any]]:
    return [{"name": name} | _about(host) for name, host in hosted.items()]


def _about(host: Hosted) -> dict[str, Any]:
    try:
        with host.looked_at():
            info = host.collection.info().to_dict()
    except UNREADABLE as error:
        return {"error": host.opening.without_folder(error)}
    return {key: value for key, value in info.items() if key != "path"}
