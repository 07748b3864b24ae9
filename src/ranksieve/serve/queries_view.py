"""`queries_view`: the judged queries as a table, and which query to judge next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ranksieve.evaluation.significance import TestResult
from ranksieve.serve.comparison import measured, open_questions
from ranksieve.serve.page_state import PageState
from ranksieve.serve.served_models import FIRST_STAGE
from ranksieve.serve.service import Service

SECONDS = 4.0  # for one view of the table


@dataclass(frozen=True)
class QueryRow:
    """A judged query in the table."""

    id: str
    text: str
    n_judged: int
    values: list[float]
    difference: float


@dataclass(frozen=True)
class Total:
    """A column's mean, and its test against the first stage."""

    name: str
    mean: float
    test: TestResult | None


@dataclass(frozen=True)
class QueriesView:
    """The judged queries under all columns."""

    columns: tuple[str, ...]
    rows: list[QueryRow]
    totals: list[Total]
    n_queries: int  # that could be measured
    is_complete: bool
    without_text: int
    trained_here: tuple[str, ...]  # models whose training queries are known
    trained_elsewhere: tuple[str, ...]  # models whose training queries are not known
    n_unseen: int | None  # queries that no model of the former was trained on; None if there is none
    between: TestResult | None = None  # of the second model against the first


def queries_view(service: Service, state: PageState, sort: str, *, unseen: bool) -> QueriesView:
    """The table: the metric of each column on each judged query, and totals with p-values."""
    store, columns = service.store(), state.columns(service)
    grades, texts = store.grades(), store.texts()
    judged = {id: texts[id] for id in grades if id in texts and any(grade > 0 for grade in grades[id].values())}
    judged = dict(list(judged.items())[: service.settings.limits.queries])
    known = {name: found for name in columns.names[1:] if (found := trained_queries(service, name)) is not None}
    seen = set[str]().union(*known.values())
    fresh = {id: text for id, text in judged.items() if id not in seen}
    chosen = fresh if unseen and fresh else judged
    rankings, is_complete = service.comparison.rankings(columns, chosen, SECONDS)
    evaluation = measured(rankings, grades)
    rows, totals, between = [], [], None
    if evaluation is not None:
        values = [evaluation.per_query(name) for name in columns.names]
        for place, id in enumerate(evaluation.query_ids):
            mine = [float(some[place]) for some in values]
            rows.append(QueryRow(id, texts[id], len(grades[id]), mine, mine[-1] - mine[0]))
        for name in columns.names:
            test = None if name == FIRST_STAGE else evaluation.compare(name, FIRST_STAGE)
            totals.append(Total(name, evaluation.mean(name), test))
        between = evaluation.compare(*columns.names[:0:-1]) if len(columns.names) == 3 else None
    return QueriesView(
        columns.names,
        _sorted(rows, sort),
        totals,
        len(chosen),
        is_complete,
        sum(id not in texts for id in grades),
        tuple(known),
        tuple(name for name in columns.names[1:] if name not in known),
        len(fresh) if known else None,
        between,
    )


def _sorted(rows: list[QueryRow], sort: str) -> list[QueryRow]:
    """Rows by a column, worst first; with `-` in front the other way round."""
    name, reverse = sort.removeprefix("-"), sort.startswith("-")
    keys: dict[str, Any] = {
        "difference": lambda row: row.difference,
        "query": lambda row: row.text.casefold(),
        "judged": lambda row: row.n_judged,
    }
    if name.isascii() and name.isdigit() and rows and int(name[:3]) < len(rows[0].values):
        return sorted(rows, key=lambda row: row.values[int(name[:3])], reverse=reverse)
    return sorted(rows, key=keys.get(name, keys["difference"]), reverse=reverse)


def trained_queries(service: Service, name: str) -> set[str] | None:
    """Ids of the queries that a model was trained or validated on; None where it does not say: trained elsewhere."""
    stored = service.models.find(name).model.info.get("judged_queries")
    if isinstance(stored, Mapping) and isinstance(stored.get("train"), list):
        return set(map(str, stored["train"]))
    return None


def next_query(service: Service, state: PageState) -> str | None:
    """The text of the known query, other than the current one, on whose unjudged documents the columns disagree most.

    None where every document that is shown for the others is judged.
    """
    store, columns = service.store(), state.columns(service)
    others = {id: text for id, text in store.texts().items() if text != state.text}
    others = dict(list(others.items())[: service.settings.limits.queries])
    rankings, _ = service.comparison.rankings(columns, others, SECONDS)
    first = rankings[FIRST_STAGE]
    complete = {name: {id: some[id] for id in first if id in some} for name, some in rankings.items()}
    open_ones = open_questions(complete, store.grades(), state.k)
    best = max(open_ones, key=open_ones.__getitem__, default=None)
    return others[best] if best is not None and open_ones[best] > 0 else None
