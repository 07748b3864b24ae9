"""`ranksieve serve`."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranksieve.cli.command import option, takes_options
from ranksieve.cli.console import show_line, show_waiting
from ranksieve.cli.corpus_options import read_size_option
from ranksieve.errors import MissingExtraError

if TYPE_CHECKING:
    from ranksieve.serve.settings import Settings

ACCESS, LIMITS = "Access", "Limits"
FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where worker processes share their counts


@dataclass(frozen=True, kw_only=True)
class ServeArguments:
    index: Annotated[
        Path | None,
        typer.Argument(
            metavar="INDEX", help="Index folder, made by 'ranksieve index'. Without it, models score feature vectors."
        ),
    ] = None
    model: list[Path] | None = option(None, "Model file.", "--model", metavar="MODEL")
    judgements: Path | None = option(None, "TREC file with grades. Judging on the page creates and changes it.")
    queries: Path | None = option(
        None,
        "File with the texts of the queries in --judgements. Texts of queries that are judged on the page are stored "
        "in JUDGEMENTS.queries.tsv.",
        "--query-file",
    )
    trained: Path | None = option(
        None, "Folder for models trained on the page.", metavar="DIR", show_default="JUDGEMENTS.models"
    )
    title: str | None = option(None, "Field to show as title.", metavar="FIELD", show_default="title or name")
    encode: str | None = option(
        None, "Function texts → array that makes vectors of queries, for indexes with vectors.",
        metavar="FILE.py:FUNCTION", show_default="the encoder of the index",
    )  # fmt: skip
    workers: int = option(1, "Number of processes; each has a thread per core.", min=1)


@dataclass(frozen=True, kw_only=True)
class AccessOptions:
    """Where `ranksieve serve` listens, and to whom."""

    host: str = option("127.0.0.1", "Address to listen on.", metavar="ADDRESS", rich_help_panel=ACCESS)
    port: int = option(8000, "Port; 0: any free one.", min=0, max=65535, rich_help_panel=ACCESS)
    allow_host: list[str] | None = option(
        None, "Additional host name of the service.", metavar="NAME", rich_help_panel=ACCESS
    )
    token: str | None = option(
        None,
        "Token that writing needs; required if --host is not a loopback address. Others can see the flag in the list "
        "of processes, so set RANKSIEVE_TOKEN instead.", envvar="RANKSIEVE_TOKEN", rich_help_panel=ACCESS,
    )  # fmt: skip
    read_only: bool = option(False, "Refuse judgements and training.", "--read-only", rich_help_panel=ACCESS)


@dataclass(frozen=True, kw_only=True)
class LimitOptions:
    """What `ranksieve serve` refuses."""

    max_depth: int = option(2000, "Candidates per query.", min=1, rich_help_panel=LIMITS)
    max_documents: int = option(
        2000, "Documents per answer, and per request to re-rank.", min=1, rich_help_panel=LIMITS
    )
    max_query: int = option(10_000, "Characters of a query.", min=1, rich_help_panel=LIMITS)
    max_body: str = option("16M", "Size of a request.", metavar="SIZE", rich_help_panel=LIMITS)
    max_requests: int = option(
        256, "Requests and idle connections at a time; others are answered with 503.", min=1, rich_help_panel=LIMITS
    )


@takes_options
def serve(given: ServeArguments, access: AccessOptions, limits: LimitOptions) -> None:
    """Serve a search page and a JSON API on an index; or, without an index, models for feature vectors."""
    _check_extra()
    from ranksieve.serve.settings import Limits, Settings

    body = read_size_option(limits.max_body, "--max-body")
    settings = Settings(
        given.index, tuple(given.model or ()), given.judgements, given.queries, given.trained, given.title,
        given.encode, host=access.host, port=access.port, allowed_hosts=tuple(access.allow_host or ()),
        token=access.token, read_only=access.read_only, workers=given.workers,
        limits=Limits(limits.max_depth, limits.max_documents, limits.max_query, body),
    )  # fmt: skip
    _run(settings, limits.max_requests)


def _check_extra() -> None:
    for name in ("fastapi", "uvicorn", "jinja2", "prometheus_client"):
        if importlib.util.find_spec(name) is None:
            raise MissingExtraError(
                f"serving needs the package {name!r}; install it with: pip install 'ranksieve[serve]'"
            )


def _run(settings: Settings, max_requests: int) -> None:
    import uvicorn

    from ranksieve.serve.app import OneProcess, PromptProtocol, bound_socket, create_app, export_settings, log_to_stderr
    from ranksieve.serve.service import Service

    options: dict[str, Any] = {
        "http": PromptProtocol,
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "limit_concurrency": max_requests,
        "timeout_graceful_shutdown": 30,
        "ws": "none",
    }
    with ExitStack() as stack:
        listening = stack.enter_context(closing(bound_socket(settings.host, settings.port)))
        port = listening.getsockname()[1]
        stack.enter_context(suppress(KeyboardInterrupt))  # Ctrl-C ends the service without an error
        if settings.index is None:
            show_waiting("scoring", "opening the models")
        else:
            show_waiting("lexical", "opening index and models")
        if settings.workers == 1:
            log_to_stderr()
            server = OneProcess(uvicorn.Config(create_app(settings), **options))
            server.when_started = lambda: show_line(f"ready on {address(settings.host, port)}; stop with Ctrl-C")
            try:
                server.run(sockets=[listening])
            except SystemExit:  # SIGTERM, after all requests are answered
                if not server.started:
                    raise
            return
        listening.close()
        os.environ[FOLDER] = stack.enter_context(tempfile.TemporaryDirectory(prefix="ranksieve-metrics-"))
        Service(settings).close()  # what is wrong is reported once, here
        export_settings(settings)
        show_line(f"starting {settings.workers} processes on {address(settings.host, port)}; stop with Ctrl-C")
        options |= {"host": settings.host, "port": port, "workers": settings.workers}
        uvicorn.run("ranksieve.serve.app:worker_app", factory=True, **options)


def address(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
