"""Parameters of the first stage chosen on judgements: one at a time over a grid, until none gets better."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ranksieve.errors import DataError
from ranksieve.evaluation.metrics import parse_metric
from ranksieve.retrieval.first_stage import HYBRID, MODELS, FirstStage
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.notes import logged_notes
from ranksieve.retrieval.queries import Queries
from ranksieve.retrieval.run_evaluation import evaluate_run
from ranksieve.retrieval.runs import Judgements, Run, note_unknown
from ranksieve.retrieval.searching import Retriever

GRIDS: dict[str, tuple[float, ...]] = {
    "k1": (0.3, 0.6, 0.9, 1.2, 1.6, 2.0, 3.0),
    "b": (0.0, 0.2, 0.4, 0.6, 0.75, 0.9, 1.0),
    "k3": (0.0, 1.0, 3.0, 8.0, 30.0, 1000.0),
    "mu": (50, 100, 250, 500, 1000, 2000, 4000, 8000),
    "mix": (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9),
    "c": (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
    "weights": (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
    "dense_share": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
}
KEPT = ("ef", "rrf_k", "pool")  # of quality and time, or of little effect
ROUNDS = 3
DEPTH = 100  # retrieved while tuning, unless the metric looks deeper
LEAST_GAIN = 1e-6


@dataclass(frozen=True)
class TunedStage:
    """The first stage that `tune` found.

    Attributes
    ----------
    stage
        The first stage.
    after, before
        The metric with it, and with the first stage before, on the queries it was tuned on.

    Examples
    --------
    >>> corpus = [{"id": "a", "text": "a red car"}, {"id": "b", "text": "red wine, red roses"}]
    >>> found = tune(Index.build(corpus, "index2"), {"q1": "red"}, {"q1": {"b": 1}}, metric="mrr")
    >>> found.after >= found.before
    True
    >>> found.stage.save("stage.json")
    """

    stage: FirstStage
    after: float
    before: float


def tune(
    index: Index | Retriever,
    queries: Queries,
    judgements: Judgements,
    *,
    metric: str = "ndcg@10",
    progress: Callable[[int, int, float], None] | None = None,
) -> TunedStage:
    """Tune the parameters of the first stage and the weights of fields on judgements, by coordinate ascent over grids.

    The result looks better on these queries than it is. Measure it on other queries.

    Parameters
    ----------
    index
        An index; or a `Retriever`, whose first stage is the start.
    queries, judgements
        Texts and grades by query id.
    metric
        Metric to maximize.
    progress
        Called with the number of settings that were tried, the most that may be, and the best value so far.

    Examples
    --------
    >>> corpus = [{"id": "a", "text": "a red car"}, {"id": "b", "text": "red wine, red roses"}]
    >>> tune(Index.build(corpus, "index"), {"q1": "red"}, {"q1": {"b": 1}}, metric="mrr").stage.model
    'bm25f'
    """
    wanted, first = parse_metric(metric), Retriever.of(index).for_queries(queries)
    index, stage = first.index, first.stage
    judged = {id: text for id, text in queries.items() if id in judgements}
    with logged_notes() as notes:
        note_unknown(judgements, queries, index, notes)
        unjudged = (id for id in queries if id not in judged)
        notes.extend("queries have no judgements and do not count for tuning", unjudged)
    if not judged:
        raise DataError("no query has judgements to tune on; give judgements of these queries")
    depth = max(DEPTH, wanted.k or index.n_docs)
    judgements = {id: judgements[id] for id in judged}
    blocks = list(first.prepared_blocks(judged))
    most = 1 + ROUNDS * sum(len(GRIDS[name]) for name, _ in _coordinates(index, stage))
    found: list[float] = []

    def measure(candidate: FirstStage) -> float:
        retriever = first.with_stage(candidate)
        run = Run.from_lists(item for ids, prepared in blocks for item in retriever.lists(ids, prepared, depth))
        found.append(evaluate_run({"run": run}, judgements, wanted).mean())
        if progress is not None:
            progress(len(found), most, max(found))
        return found[-1]

    before = measure(stage)
    return TunedStage(*ascend(index, stage, measure, before), before)


def ascend(
    index: Index, stage: FirstStage, measure: Callable[[FirstStage], float], best: float
) -> tuple[FirstStage, float]:
    """Change one value at a time until nothing improves; returns the best stage and its metric.

    `best` is the metric of the given stage.
    """
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
    fields = index.field_names
    parameters = [name for name in MODELS[stage.model].parameters if name not in KEPT]
    if "dense_share" in parameters:
        yield "dense_share", ""
    if len(fields) > 1 and stage.uses_words:
        yield from (("weights", field) for field in fields)
    for name in parameters:
        if name == "b" and stage.model in ("bm25f", HYBRID) and len(fields) > 1:
            yield from (("b", field) for field in fields)
        elif name != "dense_share":
            yield name, ""


def _changed(index: Index, stage: FirstStage, name: str, field: str, value: float) -> FirstStage | None:
    """The stage with one value changed; None where nothing changes or all weights become zero."""
    if not field:
        return None if getattr(stage, name) == value else FirstStage(**{**stage.as_dict(), name: value})
    names = index.field_names
    values = dict(zip(names, stage.field_values(names, name).tolist(), strict=True))
    if values[field] == value:
        return None
    values[field] = value
    return None if name == "weights" and not any(values.values()) else FirstStage(**{**stage.as_dict(), name: values})
