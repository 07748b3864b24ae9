"""`create_app`: the application, and how uvicorn runs it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp
from uvicorn import Server
from uvicorn.protocols.http.auto import AutoHTTPProtocol

import ranksieve
from ranksieve.errors import ParameterError, param
from ranksieve.serve import answers, api, html_pages
from ranksieve.serve.problems import add_handlers
from ranksieve.serve.security import Guard
from ranksieve.serve.service import Service
from ranksieve.serve.settings import Limits, Settings

LOG = logging.getLogger("ranksieve.serve")
VARIABLE = "RANKSIEVE_SERVE"  # settings for worker processes


def create_app(settings: Settings, when_ready: Callable[[], None] | None = None) -> ASGIApp:
    """The service as an ASGI application; opens index, models and judgements, and refuses bad ones."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        await service.run(answers.decode, b'{"features": [[1]]}')  # no request waits for its kernel to be compiled
        if when_ready is not None:
            when_ready()
        try:
            yield
        finally:
            service.close()

    app = FastAPI(
        title="ranksieve",
        version=ranksieve.__version__,
        summary="Search, re-ranking, explanations and judgements.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    add_handlers(app)
    app.state.service = service
    app.include_router(api.router)
    app.include_router(html_pages.router)
    return Guard(app, settings, service.metrics)


def export_settings(settings: Settings) -> None:
    """Leave the settings for the worker processes of this one."""
    os.environ[VARIABLE] = json.dumps(asdict(settings), default=str)


def worker_app() -> ASGIApp:
    """The application of a worker process."""
    log_to_stderr()
    values = json.loads(os.environ[VARIABLE])
    for name in ("index", "judgements", "queries", "trained"):
        values[name] = None if values[name] is None else Path(values[name])
    models, hosts = tuple(map(Path, values.pop("models"))), tuple(values.pop("allowed_hosts"))
    settings = Settings(**{**values, "limits": Limits(**values["limits"])}, models=models, allowed_hosts=hosts)
    return create_app(settings, lambda: LOG.info("process %d is ready", os.getpid()))


def log_to_stderr() -> None:
    """Show what the service logs, one line each."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)


class OneProcess(Server):
    """A server that says when it takes requests."""

    when_started: Callable[[], None] = staticmethod(lambda: None)

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self.when_started()


class PromptProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """HTTP whose answers are sent at once.

    Without TCP_NODELAY the body of an answer waits for the client to confirm the header, which takes 40 ms. asyncio
    sets the option only for sockets that name their protocol, and uvicorn's do not.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket for the address; refuses one that cannot be had."""
    made = None
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as error:
        if made is not None:
            made.close()
        raise ParameterError(
            f"{host}:{port}: cannot listen there ({error.strerror or error}); choose another ",
            param("host"), " or ", param("port"),
        ) from error  # fmt: skip
    return made
