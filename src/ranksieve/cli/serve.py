"""`ranksieve serve`."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranksieve.cli.console import show_line, show_waiting
from ranksieve.cli.corpus_options import memory_size
from ranksieve.errors import MissingExtraError

if TYPE_CHECKING:
    from ranksieve.serve.settings import Settings

ACCESS, LIMITS = "Access", "Limits"
FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where worker processes share their counts


def serve(
    index: Annotated[
        Path | None,
        typer.Argument(
            metavar="INDEX", help="Index folder, made by 'ranksieve index'. Without it, models score feature vectors."
        ),
    ] = None,
    model: Annotated[list[Path] | None, typer.Option("--model", metavar="MODEL", help="Model file.")] = None,
    judgements: Annotated[
        Path | None, typer.Option(help="TREC file with grades; made, and changed, by judging on the page.")
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            "--query-file",
            help="Texts of the queries in --judgements. Those of queries judged on the page are kept beside it.",
        ),
    ] = None,
    trained: Annotated[
        Path | None,
        typer.Option(metavar="DIR", show_default="JUDGEMENTS.models", help="Folder for models trained on the page."),
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="FIELD", show_default="title or name", help="Field to show as title.")
    ] = None,
    encode: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:FUNCTION",
            show_default="the encoder of the index",
            help="Function texts → array that makes vectors of queries, for indexes with vectors.",
        ),
    ] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", rich_help_panel=ACCESS, help="Address to listen on.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, rich_help_panel=ACCESS, help="Port; 0: any free one.")] = 8000,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", rich_help_panel=ACCESS, help="Name by which requests may call the service."),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="RANKSIEVE_TOKEN",
            rich_help_panel=ACCESS,
            help="Token that writing needs; required if --host is not a loopback address. Others can see the flag in "
            "the list of processes, so set RANKSIEVE_TOKEN instead.",
        ),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", rich_help_panel=ACCESS, help="Refuse to write.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes; each has a thread per core.")] = 1,
    max_depth: Annotated[int, typer.Option(min=1, rich_help_panel=LIMITS, help="Candidates per query.")] = 2000,
    max_documents: Annotated[
        int, typer.Option(min=1, rich_help_panel=LIMITS, help="Documents per answer, and per request to re-rank.")
    ] = 2000,
    max_query: Annotated[int, typer.Option(min=1, rich_help_panel=LIMITS, help="Characters of a query.")] = 10_000,
    max_body: Annotated[str, typer.Option(metavar="SIZE", rich_help_panel=LIMITS, help="Size of a request.")] = "16M",
    max_requests: Annotated[
        int, typer.Option(min=1, rich_help_panel=LIMITS, help="Requests and idle connections at a time; more get 503.")
    ] = 256,
) -> None:
    """Serve a search page and a JSON service on an index, or models alone: POST /rerank with feature vectors."""
    _check_extra()
    from ranksieve.serve.settings import Limits, Settings

    settings = Settings(
        index, tuple(model or ()), judgements, queries, trained, title, encode, host=host, port=port,
        allowed_hosts=tuple(allow_host or ()), token=token, read_only=read_only,
        limits=Limits(max_depth, max_documents, max_query, memory_size(max_body, "--max-body")), workers=workers,
    )  # fmt: skip
    _run(settings, max_requests)


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
        stack.enter_context(suppress(KeyboardInterrupt))  # Ctrl-C is how a service ends
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
