"""The pages, made from templates on the server."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from fastapi import APIRouter, Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, RedirectResponse, Response

import ranksieve
from ranksieve.errors import RanksieveError
from ranksieve.evaluation.model_card import held_out_values
from ranksieve.serve.api import Serving
from ranksieve.serve.judgement_store import GRADES
from ranksieve.serve.page_state import MOST_SHOWN, USUAL_SHOWN, WEIGHT, PageState
from ranksieve.serve.problems import Refused
from ranksieve.serve.queries_view import next_query, queries_view
from ranksieve.serve.search_view import search_view
from ranksieve.serve.served_models import NotFoundError
from ranksieve.serve.service import Service
from ranksieve.serve.training_task import FEWEST_QUERIES, Progress
from ranksieve.text_formats import counted

ASSETS = {"page.js": "text/javascript", "page.css": "text/css", "icon.svg": "image/svg+xml"}
GRADE_WORDS = ("not relevant", "a little", "relevant", "very relevant", "perfect")
DOCS = "docs.html"  # the page that needs no index
router = APIRouter(include_in_schema=False)


@cache
def asset(name: str) -> bytes:
    return resources.files("ranksieve.serve").joinpath("static", name).read_bytes()


@cache
def versioned(name: str) -> str:
    """The address of an asset, which changes with its content."""
    return f"/static/{name}?{hashlib.sha256(asset(name)).hexdigest()[:12]}"


def signed(value: float) -> str:
    return f"{value:+.4f}".replace("-", "\N{MINUS SIGN}")


@cache
def templates() -> Environment:
    """The templates; whatever they show is escaped."""
    found = Environment(
        loader=PackageLoader("ranksieve.serve"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["signed"] = signed
    found.globals["counted"] = counted
    found.globals |= {
        "asset": versioned,
        "version": ranksieve.__version__,
        "grades": list(zip(GRADES, GRADE_WORDS, strict=True)),
    }
    return found


@router.get("/static/{name}")
async def static(name: str) -> Response:
    if name not in ASSETS:
        raise Refused(404, "there is no such file")
    return Response(asset(name), media_type=ASSETS[name], headers={"Cache-Control": "public, max-age=31536000"})


async def shown(
    service: Service, request: Request, template: str, view: Callable[[PageState], dict[str, Any]]
) -> Response:
    """A page for the state in the address; a message in place of its content where that is wrong."""

    def make() -> Response:
        status, content, problem, state = 200, dict[str, Any](), None, PageState()
        usual = dict[str, Any]()
        try:
            usual = {} if template == DOCS else _usual(service)  # which needs an index
            state = PageState.of(service, request.query_params)
            content = view(state)
        except RanksieveError as error:
            status, problem = 404 if isinstance(error, NotFoundError) else 422, str(error)
        except Refused as error:
            status, problem = error.status, error.detail
        text = (
            templates()
            .get_template(template if usual or template == DOCS else "base.html")
            .render(service=service, state=state, problem=problem, path=request.url.path, usual=usual, **content)
        )
        return HTMLResponse(text.encode(errors="replace"), status)

    return await service.run(make)


def _usual(service: Service) -> dict[str, Any]:
    """What the form shows where the address says nothing."""
    stage = service.engine.stage()
    return {
        "k": USUAL_SHOWN,
        "most": MOST_SHOWN,
        "depth": service.engine.depth(),
        "weights": {name: float(stage.weights.get(name, 1.0)) for name in service.index.field_names},
        "prefix": WEIGHT,
        "stage": stage.model,
        "stages": service.engine.stages,
    }


@router.get("/")
async def search(service: Serving, request: Request) -> Response:
    return await shown(
        service, request, "search.html",
        lambda state: {"view": search_view(service, state) if state.text.strip() else None},
    )  # fmt: skip


@router.get("/queries")
async def queries(service: Serving, request: Request) -> Response:
    sort, unseen = request.query_params.get("sort", "difference"), request.query_params.get("unseen") != "0"
    return await shown(
        service, request, "queries.html",
        lambda state: {"view": queries_view(service, state, sort, unseen=unseen), "sort": sort, "unseen": unseen},
    )  # fmt: skip


@router.get("/next")
async def following(service: Serving, request: Request) -> Response:
    """Redirect to the query with the most left to judge."""

    def find() -> str:
        state = PageState.of(service, request.query_params)
        text = next_query(service, state)
        return state.address("/", text=state.text if text is None else text, next="1" if text is not None else "0")

    return RedirectResponse(await service.run(find), 303)


@dataclass(frozen=True)
class TrainedOnPage:
    """A model that was trained here, and its metric on the queries held out."""

    name: str
    size: str
    held_out: Mapping[str, Any]


@dataclass(frozen=True)
class TrainView:
    """Numbers of judgements, and models trained on them."""

    n_grades: int
    n_queries: int  # judged, with a text
    n_relevant: int  # of them, with a grade above 0
    n_needed: int
    progress: Progress
    trained: list[TrainedOnPage]

    @property
    def is_enough(self) -> bool:
        return self.n_relevant >= self.n_needed


def train_view(service: Service) -> TrainView:
    store = service.store()
    grades, texts = store.grades(), store.texts()
    judged = [some for id, some in grades.items() if id in texts]
    trained = [
        TrainedOnPage(one.name, one.model.size, held_out)
        for one in service.models.all()
        if (held_out := held_out_values(one.model.info)) is not None
    ]
    return TrainView(
        sum(map(len, judged)),
        len(judged),
        sum(any(grade > 0 for grade in some.values()) for some in judged),
        FEWEST_QUERIES,
        service.trainer.progress,
        trained,
    )


@router.get("/train")
async def train(service: Serving, request: Request) -> Response:
    return await shown(service, request, "train.html", lambda _: {"view": train_view(service)})


@router.get("/docs")
async def docs(service: Serving, request: Request) -> Response:
    described = request.app.openapi()
    return await shown(
        service, request, DOCS,
        lambda _: {"paths": described["paths"], "schemas": described["components"]["schemas"]},
    )  # fmt: skip
