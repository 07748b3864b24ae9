"""`prune` and `reweight`: fewer trees, better weights, on any forest (CLEaVER)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from ranksieve.errors import ModelError, ParameterError, param
from ranksieve.evaluation.metrics import Metric, parse_metric
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.model_files import load_forest
from ranksieve.pruning.forest_pruner import ForestPruner
from ranksieve.pruning.leaves import find_leaves
from ranksieve.pruning.progress import Callbacks, Reporter
from ranksieve.pruning.reweighting import WeightSearch
from ranksieve.pruning.strategies import Strategy, find_strategy
from ranksieve.rules import parameters_of
from ranksieve.threads import using_threads

STALE = ("history", "seconds", "best_iteration")  # of the forest before


def prune(
    model: Forest | str | os.PathLike[str],
    train: Any,
    *,
    rate: float,
    strategy: str | Strategy = "quality-loss",
    metric: str | Metric = "ndcg@10",
    valid: Any = None,
    reweight: bool = True,
    callbacks: Callbacks = (),
    missing: str | None = None,
    threads: int = 0,
    seed: int = 0,
    **options: Any,
) -> Forest:
    """Remove a share of a forest's trees, then re-weight the others.

    Interrupted with Ctrl-C once a phase has something to show, it returns the best forest so far;
    `info["pruning"]["interrupted"]` then names the phase.

    Parameters
    ----------
    model : Forest or file name
        Any forest, also one trained elsewhere.
    train : Dataset, Binned or file name
        The lists on which trees are judged; a file is streamed.
    rate : float
        Share of the trees to remove, between 0 and 1.
    strategy : str or function
        `quality-loss`, `quality-loss-once`, `random`, `skip`, `last`, `low-weights` or `score-loss`; or a function
        `(outputs, n, rng)` that returns the numbers of the n trees to remove, given as it is or as `file.py:function`.
    metric : str or Metric
        What the forest is to be good at.
    valid : the same kinds as `train`, optional
        Lists that say when re-weighting stops helping.
    reweight : bool
        Whether the weights of the remaining trees are searched anew.
    callbacks : functions of a `PruningRecord`
    missing : "zero" or "nan", optional
        What a feature absent from a LETOR line is; as in the model's training where not given.
    threads : int
        0: all cores. The result does not depend on it.
    seed : int
        Of the random strategies.
    **options
        The parameters of the search of weights (samples, window, shrink, patience, rounds, as in `reweight`) and of the
        strategy (draws, of `random`).

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> model = rs.train(data, trees=8, leaves=4)
    >>> smaller = rs.prune(model, data, rate=0.5)
    >>> smaller.n_trees
    4
    """
    (rule, search), forest = _options(strategy, options), _loaded(model, train)
    n = n_removed(forest.n_trees, rate)
    with _task(forest, train, valid, metric, callbacks, missing, threads) as task:
        task.prune(rule, n, search, np.random.default_rng(seed))
        if reweight and task.interrupted is None:
            task.reweight(search)
        name = strategy if isinstance(strategy, str) else getattr(strategy, "__name__", type(strategy).__name__)
        return _finished(task, {"strategy": name, "rate": rate})


def reweight(
    model: Forest | str | os.PathLike[str],
    train: Any,
    *,
    valid: Any = None,
    metric: str | Metric = "ndcg@10",
    samples: int = 20,
    window: float = 2.0,
    shrink: float = 0.95,
    patience: int = 10,
    rounds: int = 100,
    callbacks: Callbacks = (),
    missing: str | None = None,
    threads: int = 0,
) -> Forest:
    """WeightSearch better weights for a forest's trees by line search; the metric on `train` never falls.

    Parameters
    ----------
    model, train, valid, metric, callbacks, missing, threads
        As in `prune`. The weights returned are the best on `valid`, on `train` where there is none.
    samples : int
        Weights tried per tree, and points tried on the way to the best of all trees (σ).
    window : float
        How far from a tree's weight they reach, times the mean weight (ω).
    shrink : float
        What the window is multiplied by after every round (η).
    patience : int
        Stop after so many rounds without a gain on `valid`.
    rounds : int
        Most rounds.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> model = rs.train(data, trees=4, leaves=4)
    >>> better = rs.pruning.reweight(model, data, rounds=3)
    >>> rs.evaluate(better, data).mean() >= rs.evaluate(model, data).mean()
    True
    """
    forest = _loaded(model, train)
    chosen = WeightSearch(samples=samples, window=window, shrink=shrink, patience=patience, rounds=rounds)
    if forest.n_trees == 0:
        raise ModelError("the model has no trees; there is nothing to weigh")
    with _task(forest, train, valid, metric, callbacks, missing, threads) as task:
        task.reweight(chosen)
        return _finished(task, {})


@contextmanager
def _task(
    forest: Forest,
    train: Any,
    valid: Any,
    metric: str | Metric,
    callbacks: Callbacks,
    missing: str | None,
    threads: int,
) -> Iterator[ForestPruner]:
    wanted = parse_metric(metric)
    reporter = Reporter(str(wanted), callbacks)
    with using_threads(threads or os.cpu_count() or 1):
        with reporter.phase("leaves") as report:
            leaves = find_leaves(forest, train, missing=missing)
            valid_leaves = None if valid is None else find_leaves(forest, valid, missing=missing)
            report(1.0, None, None)
        yield ForestPruner(forest, leaves, valid_leaves, wanted, reporter)


def n_removed(n_trees: int, rate: float) -> int:
    """How many trees a rate removes, or an error that says why it cannot."""
    if not isinstance(rate, int | float | np.number) or isinstance(rate, bool) or not 0 < rate < 1:
        raise ParameterError(param("rate"), f" is {rate!r}; expected the share of the trees to remove, between 0 and 1")
    if n_trees < 2:
        raise ModelError(f"the model has {n_trees} tree{'s' * (n_trees != 1)}; pruning needs at least two")
    n = int(rate * n_trees + 1e-9)  # 0.7 · 10 is 7.000000000000001 or 6.999999999999999 in binary
    if n == 0:
        raise ParameterError(
            param("rate"), f" {rate} of {n_trees} trees is less than one tree; use at least {1 / n_trees:.3g}"
        )
    return n


def _options(strategy: str | Strategy, given: dict[str, Any]) -> tuple[Strategy, WeightSearch]:
    """The strategy and the search of weights, with their parameters."""
    rule = find_strategy(strategy, **given)
    search, own = WeightSearch.__dataclass_fields__, parameters_of(type(rule))
    for name in given:
        if name not in search and name not in own:
            raise ParameterError(f"prune has no option {name!r}; known: {', '.join([*search, *own])}")
    return rule, WeightSearch(**{name: value for name, value in given.items() if name in search})


def _loaded(model: Forest | str | os.PathLike[str], train: Any) -> Forest:
    """The forest, as wide as the data where its file does not say (RankLib, QuickRank) and the data does."""
    return model if isinstance(model, Forest) else load_forest(model, n_features=getattr(train, "n_features", None))


def _finished(task: ForestPruner, choices: dict[str, Any]) -> Forest:
    """The forest, with the story of its pruning in place of what was said of the trees that were."""
    facts = task.facts()
    info = {name: value for name, value in task.forest.info.items() if name not in STALE}
    info["best_score"] = facts["after"].get("valid")
    info["pruning"] = {**choices, **facts}
    info["phase_seconds"] = dict(task.reporter.seconds)  # model files leave times out
    return replace(task.forest, info=info)
