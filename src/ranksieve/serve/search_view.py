"""`search_view`: the results of the first stage and of models side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ranksieve.retrieval.texts import TextPiece
from ranksieve.serve.comparison import ComparedRankers, Ranked, disagreement, measured
from ranksieve.serve.engine import SearchResult
from ranksieve.serve.page_state import PageState
from ranksieve.serve.served_models import FIRST_STAGE
from ranksieve.serve.service import Service


@dataclass(frozen=True)
class Result:
    """A document in a column."""

    document: str
    number: int  # of the document among those on the page, the same in all columns
    title: list[TextPiece]
    snippet: list[TextPiece]
    score: float
    rank: int
    move: int | None  # ranks that it gained over the first stage; None in the first column
    grade: float | None
    disagreement: float

    @property
    def direction(self) -> str:
        if self.move is None:
            return ""
        return "same" if self.move == 0 else "up" if self.move > 0 else "down"


@dataclass(frozen=True)
class Column:
    """The results of the first stage or of a model, and the metric of the query where it is judged."""

    name: str
    about: str
    results: list[Result]
    value: float | None
    note: str | None = None  # how its candidates differ from those of training

    @property
    def is_model(self) -> bool:
        return self.name != FIRST_STAGE


@dataclass(frozen=True)
class SearchView:
    """The results of a query side by side."""

    columns: list[Column]
    n_shown: int  # different documents on the page
    n_judged: int  # of them
    n_found: int  # candidates


def search_view(service: Service, state: PageState) -> SearchView:
    """All columns for a query."""
    columns = state.columns(service)
    found = {name: service.engine.search(state.text, name, columns.stage, columns.depth) for name in columns.names}
    grades = {} if service.judgements is None else service.judgements.grades_of(state.text)
    ids = {name: service.index.ids[ranking.docs] for name, ranking in found.items()}
    ranks = {name: {id: rank for rank, id in enumerate(some, 1)} for name, some in ids.items()}
    shown = list(dict.fromkeys(id for some in ids.values() for id in some[: state.k]))
    numbers = {id: number for number, id in enumerate(shown)}
    docs = dict(zip(shown, service.engine.numbers(shown), strict=True))
    texts = {
        id: (service.engine.title(doc, state.text), service.engine.snippet(doc, state.text)) for id, doc in docs.items()
    }
    values = _values(found, ids, grades)

    def result(name: str, id: str, score: float) -> Result:
        rank, before = ranks[name][id], ranks[FIRST_STAGE].get(id)
        move = None if name == FIRST_STAGE or before is None else before - rank
        spread = disagreement([some.get(id) for some in ranks.values()])
        return Result(id, numbers[id], *texts[id], score, rank, move, grades.get(id), spread)

    return SearchView(
        [
            Column(
                name,
                _about(service, name, columns),
                [result(name, id, score) for id, score in zip(ids[name][: state.k], found[name].scores, strict=False)],
                values.get(name),
                found[name].warning,
            )
            for name in columns.names
        ],
        len(shown),
        sum(id in grades for id in shown),
        len(ids[FIRST_STAGE]),
    )


def _values(
    found: Mapping[str, SearchResult], ids: Mapping[str, np.ndarray], grades: Mapping[str, float]
) -> dict[str, float]:
    """The metric of each column."""
    ranked = {name: {"": Ranked(ids[name], found[name].scores)} for name in found}
    evaluation = measured(ranked, {"": grades})
    return {} if evaluation is None else {name: evaluation.mean(name) for name in found}


def _about(service: Service, name: str, columns: ComparedRankers) -> str:
    if name == FIRST_STAGE:
        return str(columns.stage or service.engine.stage())
    return service.models.find(name).model.size
