"""What the JSON routes answer, computed on one thread."""

from __future__ import annotations

import contextlib
import math
import re
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pydantic_core
from starlette.responses import Response

from ranksieve.data.categories import Encoder, named
from ranksieve.data.features import to_float
from ranksieve.data.letor_lines import POWERS
from ranksieve.dtypes import FEATURE
from ranksieve.errors import DataError, ParameterError
from ranksieve.evaluation.explanations import Explanation
from ranksieve.forest.matrix import encoded
from ranksieve.forest.model import Model
from ranksieve.kernels.json_matrix import parse_matrix
from ranksieve.serve.engine import SearchResult
from ranksieve.serve.schemas import ExplainRequest, Grade, RerankRequest, SearchRequest
from ranksieve.serve.service import Service
from ranksieve.text_formats import some_of

MARK = secrets.token_hex(16)  # stands for an array in a body
FEATURES = re.compile(rb'"features"[ \t\n\r]*:[ \t\n\r]*')


def to_matrix(vectors: Any, model: Model) -> np.ndarray:
    """The vectors as the model takes them: numbers, and for features with named categories their names."""
    names = named(model.categories)
    if not names:
        return _numbers(vectors)
    rows = vectors.tolist() if isinstance(vectors, np.ndarray) else vectors
    width = model.n_features
    if not (rows and isinstance(rows, list) and all(isinstance(row, list) and len(row) == width for row in rows)):
        raise DataError(f"the features are not lists of {width} values, as the model has; null stands for missing")
    columns: list[Any] = list(zip(*rows, strict=True))
    for feature, known in names.items():
        place = model.feature_names.index(feature)
        columns[place] = _codes(columns[place], feature, known)
    return encoded(np.ascontiguousarray(_numbers(columns).T), model)


def _codes(values: Sequence[Any], feature: str, names: Sequence[str]) -> np.ndarray:
    """The model's numbers of categories."""
    for value in values:
        if not (value is None or isinstance(value, str)):
            raise DataError(
                f"feature {feature!r} is categorical in the model, with categories such as {some_of(names, 3)}, and "
                f"holds {str(value)[:40]} here; give JSON with a text for it, or null"
            )
    return Encoder(names, fixed=True).encode(pa.array(values, pa.string()))


def _numbers(vectors: Any) -> np.ndarray:
    try:
        matrix = vectors if isinstance(vectors, np.ndarray) else to_float(np.array(vectors, dtype=np.float64))
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError("the features are not lists of numbers of equal length; null stands for missing") from error
    if matrix.ndim != 2:
        raise DataError("the features are not lists of numbers of equal length; null stands for missing")
    return matrix


def json_response(content: Any, status: int = 200) -> Response:
    return Response(pydantic_core.to_json(content), status, media_type="application/json")


def search(service: Service, wanted: SearchRequest) -> Response:
    text, name = wanted.q, service.model_name(wanted.model)
    found = service.engine.search(text, name, service.stage_with(wanted.weight, wanted.stage), wanted.depth)
    answer = _found(service, text, name, found, wanted.k)
    if wanted.texts:
        for hit, doc in zip(answer["hits"], found.docs[: wanted.k].tolist(), strict=True):
            hit |= {"title": service.engine.title(doc, text), "snippet": service.engine.snippet(doc, text)}
    return json_response(answer)


def _found(service: Service, text: str, name: str, found: SearchResult, k: int) -> dict[str, Any]:
    columns = service.index.ids[found.docs[:k]], found.scores[:k].tolist(), found.first_ranks[:k].tolist()
    hits = [
        {"rank": rank, "document": id, "score": score, "first_rank": first}
        for rank, (id, score, first) in enumerate(zip(*columns, strict=True), 1)
    ]
    warning = {} if found.warning is None else {"warning": found.warning}
    return {"query": text, "model": name, "hits": hits, **warning}


def rerank(service: Service, body: bytes) -> Response:
    """The answer to a body of JSON; feature vectors are not checked one number at a time, which would take long."""
    given = decode(body)
    if not isinstance(given, dict):
        raise DataError(f"the body is not an object; expected the keys {', '.join(RerankRequest.model_fields)}")
    vectors = given.pop("features", None)
    wanted = RerankRequest.model_validate(given)
    name = service.model_name(wanted.model)
    if (vectors is None) == (wanted.documents is None):
        raise ParameterError("give either documents, with a query, or features")
    if vectors is not None:
        return _scores(service, vectors, name)
    if not wanted.query.strip():
        raise ParameterError("give a query with documents")
    text, documents = service.check_query(wanted.query), wanted.documents or []
    service.check_documents(len(documents), "the number of documents")
    found = service.engine.rerank(text, documents, name)
    return json_response(_found(service, text, name, found, len(documents)))


def decode(body: bytes) -> Any:
    """The value of a body of JSON; `features` are an array where they are rows of numbers of equal length."""
    body = body.rstrip()
    found = FEATURES.search(body)
    if found is not None and body.endswith(b"}"):
        values = np.empty(len(body) // 2, FEATURE)
        end, n_rows, n_values = parse_matrix(np.frombuffer(body, np.uint8), found.end(), POWERS, values)
        if n_rows:
            with contextlib.suppress(ValueError):
                rest = pydantic_core.from_json(body[: found.end()] + b'"' + MARK.encode() + b'"' + body[end:])
                if isinstance(rest, dict) and rest.get("features") == MARK:  # not a key deeper inside, or one of two
                    return rest | {"features": values[:n_values].reshape(n_rows, -1)}
    try:
        return pydantic_core.from_json(body)
    except ValueError as error:
        raise DataError(f"the body is not JSON ({error})") from error


def score_bytes(service: Service, body: bytes, name: str) -> Response:
    """Scores of feature vectors given as 32-bit floats."""
    width = service.models.find(name).model.n_features
    if not body or len(body) % (4 * width):
        raise DataError(f"the body has {len(body):,} bytes; expected rows of {width} 32-bit floats")
    return _scores(service, np.frombuffer(body, "<f4").reshape(-1, width), name)


def _scores(service: Service, vectors: Any, name: str) -> Response:
    served = service.models.find(name)
    features = to_matrix(vectors, served.model)
    service.check_documents(len(features), "the number of vectors")
    scores = served.score(features)
    order = np.argsort(-scores, kind="stable")
    return json_response({"model": name, "scores": scores.tolist(), "order": order.tolist()})


def explain(service: Service, wanted: ExplainRequest) -> Response:
    name, documents = service.model_name(wanted.model), [wanted.document]
    if wanted.below is not None:
        documents.append(wanted.below)
    stage = service.stage_with(wanted.weights, wanted.stage)
    found = service.engine.explain(wanted.query, documents, name, stage, wanted.depth)
    answer = {"model": name, "document": wanted.document, **_contributions(service, found)}
    if wanted.below is not None:
        answer |= {"below": wanted.below, "below_score": float(found.scores[1]), **_differences(service, found)}
    return json_response(answer)


def _contributions(service: Service, found: Explanation) -> dict[str, Any]:
    """The contributions to the score of the first document, largest first."""
    parts = found.contributions[0]
    largest = [f for f in np.argsort(-np.abs(parts), kind="stable") if parts[f] != 0]
    return {
        "score": float(found.scores[0]),
        "expected": found.expected,
        "contributions": [
            {
                "feature": found.feature_names[f],
                "meaning": service.engine.meaning(found.feature_names[f]),
                "value": _value(found.value(0, f)),
                "contribution": float(parts[f]),
            }
            for f in largest
        ],
    }


def _differences(service: Service, found: Explanation) -> dict[str, Any]:
    return {
        "differences": [
            {
                "feature": one.feature,
                "meaning": service.engine.meaning(one.feature),
                "value_above": _value(one.value_above),
                "value_below": _value(one.value_below),
                "difference": one.difference,
            }
            for one in found.why(*found.documents)
        ]
    }


def _value(value: float | str) -> float | str | None:
    """A feature's value as JSON can hold it."""
    return value if isinstance(value, str) or math.isfinite(value) else None


def grade(service: Service, given: Grade) -> Response:
    store = service.store()
    service.engine.numbers([given.document])
    change = store.put(given.query, given.document, given.grade)
    return json_response(
        {
            "query_id": change.query_id,
            "document": given.document,
            "grade": given.grade,
            "previous": change.previous,
            "judged": len(store.grades_of(given.query)),
        }
    )


def training(service: Service, status: int = 200) -> Response:
    """The progress of training; a new model is served as soon as this says that it is done."""
    progress = service.trainer.progress
    if progress.state == "done" and progress.model not in service.models.names:
        service.models.refresh()
    return json_response(progress._asdict(), status)
