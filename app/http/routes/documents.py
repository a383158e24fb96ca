"""Routes for documents (get, put, delete, embed) and for the state of the service."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from ....indexer.document import Document
from ....indexer.errors import NothingToIndexError
from ....indexer.ingest import BuildReport
from ....indexer.store.view import StoredDocument
from ...api.functions import json_value
from ..context import CONTENT_TYPE, PROBLEMS, Context, Reader, Writer
from ..hosted import Hosted
from ..problems import ProblemError, busy
from ..schemas import Deleted, DocumentIn, DocumentOut, EmbedRequest, PutRequest, Vectors, Written, typed

router = APIRouter(tags=["documents"], responses=PROBLEMS)
Named = Annotated[str | None, Query(description="Which collection; may be left out where there is only one.")]


@router.get("/documents/{id:path}", response_model=DocumentOut, summary="Get a document")
async def get_document(id: str, context: Reader, collection: Named = None) -> JSONResponse:
    """Return a stored document with its metadata."""
    host = context.hosts.find(collection)
    found = await context.in_thread(_stored, host, id)
    if not found:
        raise ProblemError(404, f"there is no document with the id {id!r}", "id")
    metadata = {name: json_value(value) for name, value in found.metadata.items()}
    return JSONResponse({"id": found.id, "title": found.title, "text": found.text, "metadata": metadata})


@router.put("/documents", response_model=Written, summary="Add or replace documents")
async def put_documents(body: PutRequest, context: Writer) -> JSONResponse:
    """Write documents in one commit; later searches find them at once. Unchanged documents are not processed again."""
    host = context.hosts.find(body.collection)
    context.check_count(len(body.documents), "documents")
    for place, document in enumerate(body.documents):
        context.check_text(document.text + document.title, f"documents.{place}.text")
    documents = [_document(document) for document in body.documents]
    async with host.writing:
        report = await context.in_thread(_write, host, documents)
    skipped = [{"id": row.origin, "reason": row.reason} for row in report.skipped_rows]
    counts = {"added": report.added, "replaced": report.replaced, "unchanged": report.unchanged}
    return JSONResponse(counts | {"skipped": skipped})


@router.delete("/documents/{id:path}", response_model=Deleted, summary="Delete a document")
async def delete_document(id: str, context: Writer, collection: Named = None) -> JSONResponse:
    """Delete a document; searches that start after the response do not find it."""
    host = context.hosts.find(collection)
    if not await context.in_thread(_stored, host, id):
        raise ProblemError(404, f"there is no document with the id {id!r}", "id")
    async with host.writing:
        return JSONResponse({"deleted": await context.in_thread(host.collection.delete, [id])})


@router.post("/embed", response_model=Vectors, summary="Embed texts with the collection's bi-encoder")
async def embed(body: EmbedRequest, context: Reader) -> JSONResponse:
    """Return an embedding for each text. Only the beginning of a text longer than the model's window is used."""
    host = context.hosts.find(body.collection)
    check_texts(context, body.texts, "texts")
    vectors = await context.in_thread(host.collection.embed, body.texts, query=body.query)
    found = {"model": host.collection.model, "dimension": vectors.shape[1]}
    return JSONResponse(found | {"vectors": vectors.tolist()})


def check_texts(context: Context, texts: list[str], field: str) -> None:
    """Reject a list that is too long or holds an invalid text.

    Raises:
        ProblemError: The list is rejected (422); the field's name includes the position of the text.
    """
    context.check_count(len(texts), field)
    for place, text in enumerate(texts):
        context.check_text(text, f"{field}.{place}")


def _stored(host: Hosted, key: str) -> StoredDocument | None:
    return host.collection.documents([key]).get(key)


def _document(given: DocumentIn) -> Document:
    metadata = {name: typed(value) for name, value in given.metadata.items()}
    return Document(given.text, given.title, given.id, metadata, origin=given.id)


def _write(host: Hosted, documents: list[Document]) -> BuildReport:
    try:
        return host.collection.put(documents)
    except NothingToIndexError as error:
        raise ProblemError(422, str(error), "documents") from None


state_router = APIRouter(tags=["state"])


@state_router.get("/health", summary="Is the process alive?")
async def health() -> dict[str, str]:
    """Answer while the event loop is running; no key is required."""
    return {"status": "alive"}


@state_router.get("/ready", summary="Can it answer searches?", responses={503: PROBLEMS[503]})
async def ready(request: Request) -> Response:
    """Answer 200 once models and indexes are loaded, 503 before; no key is required."""
    if not request.app.state.ready.is_set():
        return busy("models and indexes are being loaded")
    return JSONResponse({"status": "ready"})


@state_router.get(
    "/metrics", summary="Metrics in Prometheus' text format", responses=PROBLEMS, response_class=PlainTextResponse
)
async def metrics(request: Request, context: Reader) -> Response:
    """Return requests by route and status, their duration in seconds, the queue length, and the document counts."""
    return Response(await context.in_thread(request.app.state.metrics.text), media_type=CONTENT_TYPE)


@state_router.get("/collections", summary="The collections and what they hold", responses=PROBLEMS)
async def collections(context: Reader) -> list[dict[str, Any]]:
    """Return the output of `sonde info --json` for every collection, under the name that requests use."""
    found = []
    for name, host in context.hosts.hosted.items():
        info = (await context.in_thread(host.collection.info)).to_dict()
        found.append({"name": name} | {key: value for key, value in info.items() if key != "path"})
    return found
