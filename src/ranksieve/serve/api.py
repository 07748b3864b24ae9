"""The JSON routes."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import PlainTextResponse
from starlette.responses import Response

import ranksieve
from ranksieve.errors import ParameterError, did_you_mean
from ranksieve.retrieval.runs import judgement_lines
from ranksieve.serve import answers
from ranksieve.serve.problems import Refused
from ranksieve.serve.schemas import (
    MODEL,
    AllJudgements,
    Explained,
    ExplainRequest,
    Found,
    Grade,
    Graded,
    Health,
    RerankRequest,
    SearchRequest,
    TrainingState,
    VectorScores,
)
from ranksieve.serve.service import Service

VECTORS = "application/octet-stream"
RERANK_BODY = {
    "requestBody": {
        "content": {
            "application/json": {"schema": RerankRequest.model_json_schema()},
            VECTORS: {"schema": {"type": "string", "format": "binary"}},
        }
    }
}


async def refuse_unknown(request: Request) -> None:
    """Refuse parameters in the address that the route does not have: a misspelt one would have no effect."""
    if not request.query_params:
        return
    described = request.app.openapi()["paths"][request.scope["route"].path][request.method.lower()]
    known = [one["name"] for one in described.get("parameters", ())]
    for name in request.query_params:
        if name not in known:
            names = f"known: {', '.join(known)}" if known else "it takes none"
            raise ParameterError(f"the parameter {name[:80]!r} is not known; {did_you_mean(name[:80], known)}{names}")


async def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Serving = Annotated[Service, Depends(service_of)]
Model = Annotated[str | None, Query(description=MODEL)]
router = APIRouter(dependencies=[Depends(refuse_unknown)])


@router.get("/search", response_model=Found, summary="Search")
async def search(service: Serving, wanted: Annotated[SearchRequest, Query()]) -> Response:
    service.check_query(wanted.q)
    service.check_documents(wanted.k)
    service.check_depth(wanted.depth)
    return await service.run(answers.search, service, wanted)


@router.post(
    "/rerank",
    response_model=Found | VectorScores,
    summary="Re-rank documents, or score feature vectors",
    openapi_extra=RERANK_BODY,
)
async def rerank(service: Serving, request: Request, model: Model = None) -> Response:
    """The documents that are sent are the candidates of the query.

    If the model uses features of the list of candidates (`first.rank`, `first.share`, `feedback.*`, `expanded.*`,
    `neighbours.*`, `relative.*`), the score of a document depends on the others. Send all candidates in one request.

    Feature vectors may also be sent as `application/octet-stream`: rows of little-endian 32-bit floats.
    `model` in the address is for these; JSON has its own.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if kind == VECTORS:
        return await service.run(answers.score_bytes, service, body, service.model_name(model))
    if kind != "application/json":
        raise Refused(415, f"the content type is {kind[:80]!r}; expected application/json or {VECTORS}")
    return await service.run(answers.rerank, service, body)


@router.post("/explain", response_model=Explained, summary="Explain a rank")
async def explain(service: Serving, wanted: ExplainRequest) -> Response:
    """Exact SHAP values of a document's score, largest first, or of the difference to a second document."""
    service.check_query(wanted.query)
    service.check_depth(wanted.depth)
    return await service.run(answers.explain, service, wanted)


@router.get("/judgements", response_model=AllJudgements, summary="All grades")
async def judgements(
    service: Serving,
    format: Annotated[Literal["json", "trec"], Query(description="JSON, or lines of a TREC file.")] = "json",
) -> Response:
    store = service.store()
    grades = await service.run(store.grades)
    if format == "trec":
        return PlainTextResponse("".join(judgement_lines(grades)))
    return answers.json_response({"queries": await service.run(store.texts), "judgements": grades})


@router.put("/judgements", response_model=Graded, summary="Grade a document")
async def grade(service: Serving, given: Grade) -> Response:
    """The grade is on disk when the answer comes."""
    service.check_query(given.query)
    return await service.run(answers.grade, service, given)


@router.get("/training", response_model=TrainingState, summary="How far training is")
async def training(service: Serving) -> Response:
    return await service.run(answers.training, service)


@router.post("/training", response_model=TrainingState, status_code=202, summary="Train a model on the judgements")
async def train(service: Serving) -> Response:
    """Trains in the background: features, a split by query, SelGB, a measure on held-out queries; one at a time."""
    await service.run(service.train)
    return await service.run(answers.training, service, 202)


@router.delete("/training", response_model=TrainingState, summary="Stop training")
async def stop_training(service: Serving) -> Response:
    await service.run(service.trainer.stop)
    return await service.run(answers.training, service)


@router.get("/health", response_model=Health, summary="Is the service ready?")
async def health(service: Serving) -> Response:
    return answers.json_response(
        {
            "status": "ok",
            "version": ranksieve.__version__,
            "documents": service.index.n_docs if service.has_index else 0,
            "read_only": service.settings.read_only,
            "stages": list(service.engine.stages) if service.has_index else [],
            "models": [{"name": one.name, "size": one.model.size, "error": one.error} for one in service.models.all()],
        }
    )


@router.get("/metrics", response_class=PlainTextResponse, summary="Counts for Prometheus")
async def metrics(service: Serving) -> Response:
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
