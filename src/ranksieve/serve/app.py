"""`create_app`: the application that a server runs."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

from fastapi import FastAPI
from starlette.types import ASGIApp

import ranksieve
from ranksieve.serve import answers, api, pages
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
    app.include_router(pages.router)
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
