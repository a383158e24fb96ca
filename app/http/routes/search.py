"""Routes for searching, and for judging texts that are not in a collection."""

from dataclasses import asdict, fields
from functools import partial
from typing import Any

import numpy as np
from fastapi import APIRouter
from fastapi.responses import Response

from ....indexer.errors import SondeError, UsageError
from ....pipelines.label import DEFAULT_ENGINE, LabelSettings, check_classify, entail
from ....pipelines.search.results import Results
from ....pipelines.search.settings import SearchSettings
from ..context import PROBLEMS, Context, Reader
from ..hosted import Hosted, SearchJob, is_quick
from ..problems import ProblemError
from ..responses import Hits, Judged, Labelled, Reranked
from ..route import CheckedRoute, answering, json_answer, json_bytes
from ..schemas import EntailRequest, Found, LabelRequest, RerankRequest, SearchRequest, SimilarRequest
from .documents import check_texts

SETTINGS = {field.name for field in fields(SearchSettings)}

router = APIRouter(tags=["search"], responses=PROBLEMS, route_class=CheckedRoute)


@router.post("/search", response_model=Hits, summary="Search by meaning, by words, or by both")
async def search(body: SearchRequest, context: Reader) -> Response:
    """Return the documents that best answer the query; queries that arrive together are processed together."""
    host = context.hosts.find(body.collection)
    context.check_text(body.query, "query")
    settings = _settings(context, body)
    job = SearchJob(body.query, settings, partial(_rendered, texts=body.texts))
    return json_answer(await context.in_time(host.searches.submit(job)))


@router.post("/similar", response_model=Hits, summary="Find what is most similar to a document or a text")
async def similar(body: SimilarRequest, context: Reader) -> Response:
    """Return the documents most similar to a stored one (which is left out) or to any given text."""
    host = context.hosts.find(body.collection)
    if (body.id is None) == (body.text is None):
        raise ProblemError(422, "give an id or a text, one of the two", "id")
    settings = _settings(context, body)
    if body.text is not None:
        context.check_text(body.text, "text")
    run = context.quick if is_quick(settings) else context.slow
    return await run(answering(_similar), host, body, settings)


def answer(results: Results, *, texts: bool = True) -> dict[str, Any]:
    """Return results as JSON values; without `texts`, each hit has only its excerpt."""
    hits = [hit.to_dict() for hit in results]
    if not texts:
        for hit in hits:
            hit["text"] = hit["passage"]["text"] = ""
    return {
        "query": results.query,
        "mode": results.mode,
        "strategy": results.strategy,
        "notes": list(results.notes),
        "seconds": results.seconds,
        "loading_seconds": results.loading_seconds,
        "fusion": asdict(results.fusion) | {"why": str(results.fusion)} if results.fusion else None,
        "tuned": dict(results.tuned),
        "partial": results.partial,
        "missing_shards": list(results.missing_shards),
        "hits": hits,
    }


def _rendered(results: Results, *, texts: bool) -> bytes:
    return json_bytes(answer(results, texts=texts))


def _similar(host: Hosted, body: SimilarRequest, settings: SearchSettings) -> dict[str, Any]:
    given = {name: getattr(settings, name) for name in ("k", "offset", "where", "threshold")}
    try:
        if body.text is not None:
            return answer(host.collection.like(body.text, **given), texts=body.texts)
        return answer(host.collection.similar(body.id or "", **given), texts=body.texts)
    except UsageError:
        raise
    except SondeError as error:
        raise _missing(host, body.id, error) from None


def _settings(context: Context, body: Found) -> SearchSettings:
    """Return the settings that a body has fields for, checked, also against the limits of the service."""
    context.check_page(body.k, body.offset)
    if body.where is not None:
        context.check_text(body.where, "where")
    settings = SearchSettings(**{name: value for name, value in body if name in SETTINGS})
    settings.check()
    return settings


def _missing(host: Hosted, key: str | None, error: SondeError) -> Exception:
    known = key is None or key in host.collection.documents([key])
    return error if known else ProblemError(404, f"there is no document with the id {key!r}", "id")


judge_router = APIRouter(tags=["judge"], responses=PROBLEMS, route_class=CheckedRoute)
MOST_LABELS = 100


@judge_router.post("/label", response_model=Labelled, summary="Label texts from the labels' names")
async def label(body: LabelRequest, context: Reader) -> Response:
    """Return one or several labels for each text, with the probability of every label."""
    host = context.hosts.find(body.collection)
    check_texts(context, body.texts)
    if len(body.labels) > MOST_LABELS:
        said = f"{len(body.labels):,} labels; the maximum is {MOST_LABELS}"
        raise ProblemError(422, said, "labels", code="out-of-range")
    for name, description in body.labels.items():
        context.check_text(name + " " + description, f"labels.{name[:40]}")
    return await context.slow(answering(_label), context, host, body)


@judge_router.post("/entail", response_model=Judged, summary="Does a sentence follow from another?")
async def judge(body: EntailRequest, context: Reader) -> Response:
    """Return the probabilities of entailment, neutral and contradiction."""
    context.check_text(body.premise, "premise")
    context.check_text(body.hypothesis, "hypothesis")
    return await context.slow(answering(_entail), context, body)


@judge_router.post("/rerank", response_model=Reranked, summary="Order texts by how well they answer a query")
async def rerank(body: RerankRequest, context: Reader) -> Response:
    """Return the positions of the texts, best first, with late-interaction scores from the collection's bi-encoder."""
    host = context.hosts.find(body.collection)
    context.check_text(body.query, "query")
    check_texts(context, body.texts)
    return await context.slow(answering(_rerank), host, body)


def _label(context: Context, host: Hosted, body: LabelRequest) -> dict[str, Any]:
    engine = body.engine or DEFAULT_ENGINE
    settings = LabelSettings(
        engine=engine, multi_label=body.multi_label, threshold=body.threshold, template=body.template,
        none=body.none, promise=body.promise,
    )  # fmt: skip
    check_classify(body.texts, body.labels, settings)  # before the NLI model is loaded
    judging = None if engine == "similarity" else context.models.nli()
    found = host.collection.classify(body.texts, body.labels, settings=settings, judge=judging)
    return {"texts": [each.to_dict() for each in found]}


def _entail(context: Context, body: EntailRequest) -> dict[str, Any]:
    return entail(body.premise, body.hypothesis, context.models.nli().pairs).to_dict()


def _rerank(host: Hosted, body: RerankRequest) -> dict[str, Any]:
    reranker = host.collection.reranker()
    scores = np.asarray(reranker.score(body.query, body.texts))
    order = np.argsort(-scores, kind="stable")
    hits = [{"place": int(place), "score": float(scores[place])} for place in order]
    return {"reranker": reranker.name, "unit": reranker.unit, "texts": hits}
