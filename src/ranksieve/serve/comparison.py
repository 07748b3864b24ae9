"""`Comparison`: judged queries under several columns, with metrics, and what to judge next."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ranksieve.evaluation.evaluate import Evaluation
from ranksieve.evaluation.metric_table import log2_discounts
from ranksieve.retrieval.first_stage import FirstStage
from ranksieve.retrieval.run_evaluation import evaluate_run
from ranksieve.retrieval.runs import Judgements, Run
from ranksieve.serve.engine import Engine, LruCache
from ranksieve.serve.served_models import FIRST_STAGE

METRIC = "ndcg@10"
SHOWN = 10  # documents of a column that are judged
MEASURED = 100  # documents of a list that are kept


@dataclass(frozen=True)
class ComparedRankers:
    """What is compared: the first stage, then models, all with one first stage and depth where these are given."""

    names: tuple[str, ...]
    stage: FirstStage | None = None
    depth: int | None = None


class Ranked(NamedTuple):
    """The best documents of a query."""

    documents: np.ndarray
    scores: np.ndarray


Rankings = dict[str, dict[str, Ranked]]  # column → query id → documents


class Comparison:
    """Rankings of known queries; each is computed once per model and kept."""

    def __init__(self, engine: Engine):
        self._engine, self._cache = engine, LruCache()

    def rankings(self, columns: ComparedRankers, texts: Mapping[str, str], seconds: float) -> tuple[Rankings, bool]:
        """The rankings of all queries; of fewer if the time is over, and then False."""
        end = time.monotonic() + seconds
        found: Rankings = {name: {} for name in columns.names}
        for id, text in texts.items():
            if time.monotonic() > end:
                return found, False
            for name in columns.names:
                found[name][id] = self.ranked(columns, name, text)
        return found, True

    def ranked(self, columns: ComparedRankers, name: str, text: str) -> Ranked:
        engine = self._engine
        used = (
            [engine.models.find(name)] if name != FIRST_STAGE else engine.models.all()
        )  # models decide the first stage
        files = tuple((one.name, one.signature) for one in used)
        known: dict[str, Ranked] = self._cache.get((name, files, repr(columns.stage), columns.depth), dict)
        if text not in known:
            ranking = engine.search(text, name, columns.stage, columns.depth)
            known[text] = Ranked(engine.index.ids[ranking.docs[:MEASURED]], ranking.scores[:MEASURED])
        return known[text]


def measured(rankings: Rankings, judgements: Judgements) -> Evaluation | None:
    """The metric of every query that has a ranking and a grade above 0; None where there is none."""
    ranked = next(iter(rankings.values()), {})
    graded = {id: some for id, some in judgements.items() if id in ranked and any(grade > 0 for grade in some.values())}
    if not graded:
        return None
    return evaluate_run({name: _run(some, graded) for name, some in rankings.items()}, graded, METRIC)


def _run(ranked: Mapping[str, Ranked], ids: Iterable[str]) -> Run:
    """A run in the order of the lists: the position replaces the score, so that there are no ties."""
    return Run.from_lists((id, ranked[id].documents, -np.arange(len(ranked[id].documents), dtype=float)) for id in ids)


def disagreement(ranks: Sequence[int | None]) -> float:
    """How much the columns disagree on a document: the largest difference of its weights 1 / log2(1 + rank) in NDCG.

    Examples
    --------
    >>> disagreement([1, 1]), round(disagreement([1, None, 3]), 2)
    (0.0, 1.0)
    """
    weights = log2_discounts(rank for rank in ranks if rank is not None)
    lowest = 0.0 if None in ranks else weights.min()
    return float(weights.max(initial=0.0) - lowest)


def open_questions(rankings: Rankings, judgements: Judgements, n_shown: int = SHOWN) -> dict[str, float]:
    """For every query, how much the columns disagree on its unjudged documents, summed over those shown."""
    queries = next(iter(rankings.values()), {})
    found = {}
    for id in queries:
        places = [
            {doc: rank for rank, doc in enumerate(some[id].documents, 1)} for some in rankings.values() if id in some
        ]
        shown = dict.fromkeys(doc for some in rankings.values() for doc in some[id].documents[:n_shown])
        unjudged = [doc for doc in shown if doc not in judgements.get(id, {})]
        found[id] = sum(disagreement([ranks.get(doc) for ranks in places]) for doc in unjudged)
    return found
