"""Searching: in words, and by example."""

from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from ....indexer.errors import SondeError, UsageError
from ....pipelines.results import Results
from ....pipelines.search import SearchSettings
from ..context import PROBLEMS, Context, Reader
from ..hosted import Hosted, SearchJob
from ..problems import ProblemError
from ..schemas import Found, Hits, SearchRequest, SimilarRequest

router = APIRouter(tags=["search"], responses=PROBLEMS)


@router.post("/search", response_model=Hits, summary="Search by meaning, by words, or by both")
async def search(body: SearchRequest, context: Reader) -> JSONResponse:
    """Return the documents that answer the query best; what arrives together is encoded and searched together."""
    host = context.hosts.find(body.collection)
    context.check_text(body.query, "query")
    settings = _settings(
        context, body, mode=body.mode, fusion=body.fusion, explain=body.explain, rerank=body.rerank,
        rerank_depth=body.rerank_depth, rerank_budget=body.rerank_budget,
    )  # fmt: skip
    try:
        results = await context.in_time(host.searches.submit(SearchJob(body.query, settings)))
    except UsageError as error:
        raise _field_of(error, body) from None
    return JSONResponse(answer(results))


@router.post("/similar", response_model=Hits, summary="Find what is most similar to a document or a text")
async def similar(body: SimilarRequest, context: Reader) -> JSONResponse:
    """Return the documents most similar to a stored one, itself left out, or to a text that need not be stored."""
    host = context.hosts.find(body.collection)
    if (body.id is None) == (body.text is None):
        raise ProblemError(422, "give an id or a text, one of the two", "id")
    settings = _settings(context, body)
    given = {name: getattr(settings, name) for name in ("k", "offset", "where", "threshold")}
    try:
        if body.text is not None:
            context.check_text(body.text, "text")
            return JSONResponse(answer(await context.in_thread(host.collection.like, body.text, **given)))
        return JSONResponse(answer(await context.in_thread(host.collection.similar, body.id or "", **given)))
    except UsageError as error:
        raise _field_of(error, body) from None
    except SondeError as error:
        raise _missing(host, body.id, error) from None


def answer(results: Results) -> dict[str, Any]:
    """Return results as JSON values."""
    return {
        "query": results.query,
        "mode": results.mode,
        "strategy": results.strategy,
        "notes": list(results.notes),
        "seconds": results.seconds,
        "loading_seconds": results.loading_seconds,
        "hits": [hit.to_dict() for hit in results],
    }


def _settings(context: Context, body: Found, **more: Any) -> SearchSettings:
    if body.k + body.offset > context.settings.max_k:
        total, most = body.k + body.offset, context.settings.max_k
        raise ProblemError(422, f"k and offset are {total:,}, and at most {most:,} hits are counted", "k")
    if body.where is not None:
        context.check_text(body.where, "where")
    settings = SearchSettings(k=body.k, offset=body.offset, where=body.where, threshold=body.threshold, **more)
    try:
        settings.check()
    except UsageError as error:
        raise ProblemError(422, str(error), "rerank_budget" if more else None) from None
    return settings


def _field_of(error: UsageError, body: Found) -> ProblemError:
    """Say that the filter is wrong: everything else was checked before."""
    return ProblemError(422, str(error), "where" if body.where is not None else None)


def _missing(host: Hosted, key: str | None, error: SondeError) -> Exception:
    with host.collection.view() as view:
        known = key is None or view.document_number(key) is not None
    return error if known else ProblemError(404, f"there is no document with the id {key!r}", "id")
