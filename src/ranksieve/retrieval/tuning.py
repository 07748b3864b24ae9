"""Parameters of the first stage chosen on judgements: one at a time over a grid, until none gets better."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ranksieve.errors import DataError
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.measuring import evaluate_run
from ranksieve.retrieval.models import MODELS, FirstStage
from ranksieve.retrieval.notes import Notes, remarks
from ranksieve.retrieval.queries import Queries
from ranksieve.retrieval.runs import Judgements, Run, note_unknown
from ranksieve.retrieval.searching import Searcher, blocks_of_queries

GRIDS: dict[str, tuple[float, ...]] = {
    "k1": (0.3, 0.6, 0.9, 1.2, 1.6, 2.0, 3.0),
    "b": (0.0, 0.2, 0.4, 0.6, 0.75, 0.9, 1.0),
    "k3": (0.0, 1.0, 3.0, 8.0, 30.0, 1000.0),
    "mu": (50, 100, 250, 500, 1000, 2000, 4000, 8000),
    "mix": (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9),
    "c": (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
    "weights": (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
}
ROUNDS = 3
DEPTH = 100  # retrieved while tuning, unless the metric looks deeper
LEAST_GAIN = 1e-6


@dataclass(frozen=True)
class Tuned:
    """The model found, and the metric after and before on the queries it was tuned on."""

    stage: FirstStage
    after: float
    before: float


def tune(
    index: Index,
    queries: Queries,
    judgements: Judgements,
    stage: FirstStage | None = None,
    *,
    metric: str = "ndcg@10",
    threads: int | None = None,
    notes: Notes | None = None,
) -> Tuned:
    """Coordinate ascent over the grids of the model's parameters, and of the fields' weights, starting from `stage`.

    What is tuned on a set of queries looks better on them than it is: measure on others.
    """
    from ranksieve.evaluation.metrics import parse_metric

    stage, wanted = stage or FirstStage(), parse_metric(metric)
    judged = {id: text for id, text in queries.items() if id in judgements}
    if not judged:
        raise DataError("no query has judgements to tune on; query ids must be the same in both files")
    with remarks(notes) as taken:
        note_unknown(judgements, queries, index, taken)
        taken.extend(
            "queries have no judgements and do not count for tuning", (id for id in queries if id not in judged)
        )
    depth = max(DEPTH, wanted.k or index.n_docs)
    judgements = {id: judgements[id] for id in judged}
    blocks = [(ids, index.analysis.prepare(judged[id] for id in ids)) for ids in blocks_of_queries(list(judged))]

    def measure(candidate: FirstStage) -> float:
        searcher = Searcher(index, candidate, threads)
        run = Run.from_lists(item for ids, prepared in blocks for item in searcher.lists(ids, prepared, depth))
        return evaluate_run({"run": run}, judgements, wanted).mean()

    before = measure(stage)
    return Tuned(*ascend(index, stage, measure, before), before)


def ascend(
    index: Index, stage: FirstStage, measure: Callable[[FirstStage], float], best: float
) -> tuple[FirstStage, float]:
    """The stage that changes of one value at a time lead to from one that measures `best`, and what it measures."""
    for _ in range(ROUNDS):
        last = best
        for name, field in _coordinates(index, stage):
            for value in GRIDS[name]:
                candidate = _changed(index, stage, name, field, value)
                if candidate is not None and (found := measure(candidate)) > best + LEAST_GAIN:
                    best, stage = found, candidate
        if best <= last:
            break
    return stage, best


def _coordinates(index: Index, stage: FirstStage) -> Iterator[tuple[str, str]]:
    """What can be changed: a parameter, or a parameter of one field."""
    fields = [field.name for field in index.fields]
    if len(fields) > 1:
        yield from (("weights", field) for field in fields)
    for name in MODELS[stage.model].parameters:
        if name == "b" and stage.model == "bm25f" and len(fields) > 1:
            yield from (("b", field) for field in fields)
        else:
            yield name, ""


def _changed(index: Index, stage: FirstStage, name: str, field: str, value: float) -> FirstStage | None:
    """The stage with one value changed; None where that is no change or leaves all weights zero."""
    if not field:
        return None if getattr(stage, name) == value else FirstStage(**{**stage.as_dict(), name: value})
    values = dict(zip((item.name for item in index.fields), stage.field_values(index, name).tolist(), strict=True))
    if values[field] == value:
        return None
    values[field] = value
    return None if name == "weights" and not any(values.values()) else FirstStage(**{**stage.as_dict(), name: values})
