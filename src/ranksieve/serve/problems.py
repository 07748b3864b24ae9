"""Errors as problem details (RFC 9457): one line each, never a traceback."""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ranksieve.errors import RanksieveError
from ranksieve.serve.served_models import NotFoundError

LOG = logging.getLogger("ranksieve.serve")
MEDIA_TYPE = "application/problem+json"
LONGEST = 500  # characters of a message


class Refused(Exception):
    """A request that is not answered, with its status and reason."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None):
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers or {}


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """The answer to a request that failed."""
    line = " ".join(detail.split())[:LONGEST]
    content = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": line}
    body = json.dumps(content, ensure_ascii=False).encode(errors="replace")
    return Response(body, status, headers, media_type=MEDIA_TYPE)


def _line(error: Any) -> str:
    """An error of pydantic as one line."""
    place = error["loc"][1:] if error["loc"][:1] in (("query",), ("body",)) else error["loc"]
    where = ".".join(map(str, place)) or "the request"
    if error["type"] == "missing":
        return f"{where} is missing"
    found = error.get("ctx", {}).get("error")
    return str(found) if isinstance(found, RanksieveError) else f"{where}: {error['msg']}"


def add_handlers(app: FastAPI) -> None:
    """Answer every error of a route with a problem."""

    async def refused(_: Request, error: Any) -> Response:
        return problem(error.status, error.detail, error.headers)

    async def bad_input(_: Request, error: Any) -> Response:
        return problem(404 if isinstance(error, NotFoundError) else 422, str(error))

    async def invalid(_: Request, error: Any) -> Response:
        return problem(422, _line(error.errors()[0]))

    async def http_error(_: Request, error: Any) -> Response:
        return problem(error.status_code, str(error.detail), error.headers)

    async def failed(request: Request, _: Exception) -> Response:
        LOG.error("%r %r failed", request.method, request.url.path)
        return problem(500, "the service failed; its log has the reason")

    app.add_exception_handler(Refused, refused)
    app.add_exception_handler(RanksieveError, bad_input)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(ValidationError, invalid)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(Exception, failed)
