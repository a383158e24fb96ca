"""Judging texts that are in no collection: labels, entailment, the order for a query."""

from typing import Any

import numpy as np
from fastapi import APIRouter
from fastapi.responses import JSONResponse

from ....indexer.errors import UsageError
from ....pipelines.label import DEFAULT_ENGINE, LabelSettings, check_classify, classify, entail
from ....pipelines.rerank.choice import reranker_for
from ..context import PROBLEMS, Context, Reader
from ..hosted import Hosted
from ..problems import ProblemError
from ..schemas import EntailRequest, Judged, Labelled, LabelRequest, Reranked, RerankRequest
from .documents import check_texts

router = APIRouter(tags=["judge"], responses=PROBLEMS)
MOST_LABELS = 100


@router.post("/label", response_model=Labelled, summary="Label texts from the labels' names")
async def label(body: LabelRequest, context: Reader) -> JSONResponse:
    """Return the labels of each text with the probability of every label; one label for each, or several."""
    host = context.hosts.find(body.collection)
    check_texts(context, body.texts, "texts")
    if len(body.labels) > MOST_LABELS:
        raise ProblemError(422, f"{len(body.labels):,} labels, and at most {MOST_LABELS} are taken", "labels")
    for name, description in body.labels.items():
        context.check_text(name + " " + description, f"labels.{name[:40]}")
    return JSONResponse({"texts": await context.in_thread(_label, context, host, body)})


@router.post("/entail", response_model=Judged, summary="Does a sentence follow from another?")
async def judge(body: EntailRequest, context: Reader) -> JSONResponse:
    """Return the probabilities of entailment, neutral and contradiction."""
    context.check_text(body.premise, "premise")
    context.check_text(body.hypothesis, "hypothesis")
    return JSONResponse((await context.in_thread(_entail, context, body)).to_dict())


@router.post("/rerank", response_model=Reranked, summary="Order texts by how well they answer a query")
async def rerank(body: RerankRequest, context: Reader) -> JSONResponse:
    """Return the texts' places, best first, with the score of late interaction by the collection's bi-encoder."""
    host = context.hosts.find(body.collection)
    context.check_text(body.query, "query")
    check_texts(context, body.texts, "texts")
    return JSONResponse(await context.in_thread(_rerank, host, body))


def _label(context: Context, host: Hosted, body: LabelRequest) -> list[dict[str, Any]]:
    engine = body.engine or DEFAULT_ENGINE
    settings = LabelSettings(
        engine=engine, multi_label=body.multi_label, threshold=body.threshold, template=body.template
    )
    try:
        check_classify(body.texts, body.labels, settings)
        judging = None if engine == "similarity" else context.models.nli()
        found = classify(body.texts, body.labels, settings, encoder=host.collection.encoder, judge=judging)
    except UsageError as error:
        raise ProblemError(422, str(error), "template" if "template" in str(error) else "labels") from None
    return [each.to_dict() for each in found]


def _entail(context: Context, body: EntailRequest) -> Any:
    return entail(body.premise, body.hypothesis, context.models.nli().pairs)


def _rerank(host: Hosted, body: RerankRequest) -> dict[str, Any]:
    with host.collection.view() as view:
        reranker = reranker_for(view, None)
    scores = np.asarray(reranker.score(body.query, body.texts))
    order = np.argsort(-scores, kind="stable")
    hits = [{"place": int(place), "score": float(scores[place])} for place in order]
    return {"reranker": reranker.name, "unit": reranker.unit, "texts": hits}
