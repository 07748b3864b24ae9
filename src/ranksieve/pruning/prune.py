"""`prune` and `reweight`: fewer trees, better weights, on any forest (CLEaVER)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from ranksieve.errors import ModelError, ParameterError, RanksieveWarning, caller_level, check_whole, param
from ranksieve.evaluation.metrics import Metric, parse_metric
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.model_files import given_forest
from ranksieve.params import label
from ranksieve.pruning.cross_fitting import PruningPlan, prune_forest
from ranksieve.pruning.forest_pruner import ForestPruner
from ranksieve.pruning.leaves import find_leaves
from ranksieve.pruning.records import Callbacks, Reporter
from ranksieve.pruning.strategies import Strategy, find_strategy
from ranksieve.pruning.weight_search import WeightSearch
from ranksieve.rules import STRATEGIES, fields_of, parameters_of
from ranksieve.threads import using_threads

STALE = ("history", "seconds", "best_iteration")  # facts that are no longer true of the pruned forest
FITTED = 0.1  # relative difference of training and validation lists from which on a warning is due


@dataclass(frozen=True)
class ReweightingOptions:
    """The options that `prune` and `reweight` share; `prune` describes them."""

    judge_on: str = "valid"
    metric: str | Metric = "ndcg@10"
    callbacks: Callbacks = ()
    missing: str | None = None
    threads: int = 0
    seed: int = 0


@dataclass(frozen=True)
class PruningOptions(ReweightingOptions):
    """The options of `prune`."""

    size: int | None = None
    fallback: bool = True


Options = TypeVar("Options", bound=ReweightingOptions)


def prune(
    model: Forest | str | os.PathLike[str],
    train: Any = None,
    *,
    rate: float | None = None,
    valid: Any = None,
    strategy: str | Strategy = "quality-loss",
    reweight: bool = True,
    **options: Any,
) -> Forest:
    """Remove trees from a forest, then re-weight the others.

    The trees and weights with the best metric on the validation lists are kept. The training lists cannot show
    overfitting. Cross-fitting estimates the metric on unseen lists: pruning on each half of the validation lists is
    measured on the other half. The estimate is `info["best_score"]`. It also gives the best number of re-weighting
    rounds. If the first trees of the forest, as many as are kept, score higher, they are returned with a warning.

    Ctrl-C returns the best forest so far, once a phase has a result. `info["pruning"]["interrupted"]` is then the name
    of the phase.

    Parameters
    ----------
    model : Forest or file name
        Any forest, also one trained elsewhere.
    train : Dataset, Binned or file name, optional
        The training lists, for the report. Trees are judged on them only with `judge_on="train"`, or if there are no
        validation lists.
    rate : float
        Share of the trees to remove, between 0 and 1. Give this or `size`.
    size : int
        The number of trees to keep, in place of `rate`.
    valid : Dataset, Binned or file name, optional
        Lists that the forest was not trained on. A file is streamed.
    strategy : str or function
        `quality-loss`, `quality-loss-once`, `random`, `skip`, `last`, `low-weights` or `score-loss`; or a function
        `(outputs, n, rng)` that returns the numbers of the n trees to remove, given as it is or as `file.py:function`.
    reweight : bool
        Search better weights for the remaining trees.
    fallback : bool
        Return the first trees if they score higher (the default). False always returns the pruned forest.
    judge_on : "valid" or "train"
        The lists that trees and weights are judged on. With `"train"`, re-weighting stops when the metric on `valid`
        stops improving.
    metric : str or Metric
        What trees and weights are judged by; NDCG@10 by default.
    callbacks : functions of a `PruningRecord`
    missing : "zero" or "nan", optional
        The value of a feature that is absent from a LETOR line; by default as in the training of the model.
    threads : int
        0: all cores. The result does not depend on it.
    seed : int
        Seed of the random strategy and of the halves.
    **options
        The parameters of the weight search (samples, window, shrink, patience, rounds, as in `reweight`) and of the
        strategy (draws, of `random`).

    Examples
    --------
    >>> import ranksieve as rs
    >>> model = rs.train(rs.synth.cubic(20), trees=8, leaves=8, learning_rate=0.2)
    >>> smaller = rs.prune(model, valid=rs.synth.cubic(20, start=20), rate=0.5)
    >>> smaller.n_trees
    4
    """
    rule, search, chosen = _options(strategy, options, PruningOptions)
    check_amount(rate, chosen.size)
    lists = _given(train, valid)
    forest = _loaded(model, lists)
    if_worse = "warn" if chosen.fallback else "keep"
    plan = PruningPlan(rule, n_removed(forest.n_trees, rate, chosen.size), search, reweight, chosen.seed, if_worse)
    name = strategy if isinstance(strategy, str) else getattr(strategy, "__name__", type(strategy).__name__)
    with _pruner(forest, lists, chosen) as pruner:
        if chosen.fallback:
            warn_if_fitted(pruner)
        amount = {"rate": rate} if chosen.size is None else {"size": int(chosen.size)}
        return _finished(pruner, {"strategy": name, **amount}, prune_forest(pruner, plan))


def reweight(model: Forest | str | os.PathLike[str], train: Any = None, *, valid: Any = None, **options: Any) -> Forest:
    """Search better weights for a forest's trees by line search. The metric that they are judged by never falls.

    Parameters
    ----------
    model, train, valid, judge_on, metric, callbacks, missing, threads, seed
        As in `prune`.
    samples : int
        Weights tried per tree, then points tried between the current weights and the best ones (σ); 20 by default.
    window : float
        Largest distance of a tried weight from the tree's weight, in mean weights (ω); 2 by default.
    shrink : float
        Factor of the window after each round (η); 0.95 by default.
    patience : int
        Stop after this many rounds without improvement on lists that weights are not judged on; 10 by default.
    rounds : int
        Largest number of rounds; 100 by default.

    Examples
    --------
    >>> import ranksieve as rs
    >>> model, valid = rs.train(rs.synth.cubic(20), trees=4, leaves=4), rs.synth.cubic(20, start=20)
    >>> better = rs.pruning.reweight(model, valid=valid, rounds=3)
    >>> rs.evaluate(better, valid).mean() >= rs.evaluate(model, valid).mean()
    True
    """
    rule, search, chosen = _options("last", options, ReweightingOptions)
    lists = _given(train, valid)
    forest = _loaded(model, lists)
    if forest.n_trees == 0:
        raise ModelError("the model has no trees; there are no weights to search")
    with _pruner(forest, lists, chosen) as pruner:
        return _finished(pruner, {}, prune_forest(pruner, PruningPlan(rule, 0, search, True, chosen.seed)))


def _given(train: Any, valid: Any) -> dict[str, Any]:
    lists = {name: data for name, data in (("train", train), ("valid", valid)) if data is not None}
    if not lists:
        raise ParameterError("there are no lists to judge trees on; give ", param("valid"))
    return lists


@contextmanager
def _pruner(forest: Forest, lists: dict[str, Any], options: ReweightingOptions) -> Iterator[ForestPruner]:
    wanted, judge = parse_metric(options.metric), judge_of(options.judge_on, lists)
    reporter = Reporter(str(wanted), options.callbacks, judge)
    with using_threads(options.threads or os.cpu_count() or 1):
        with reporter.phase("leaves") as report:
            sets = {name: find_leaves(forest, data, missing=options.missing) for name, data in lists.items()}
            report(1.0, None, None)
        watch = "valid" if judge == "train" and "valid" in sets else None
        yield ForestPruner(forest, sets, judge, watch, wanted, reporter)


def judge_of(judge_on: str, lists: Collection[str]) -> str:
    """The lists that trees are judged on; a warning if only training lists are given."""
    if judge_on not in ("valid", "train"):
        raise ParameterError(param("judge_on"), f" is {judge_on!r}; expected 'valid' or 'train'")
    if judge_on == "train" and "train" not in lists:
        raise ParameterError(param("judge_on", "train"), " needs the training lists; give ", param("train"))
    if judge_on == "valid" and "valid" not in lists:
        warning = only_training_lists().with_suffix(", or ", param("judge_on", "train"), " if that is intended")
        warnings.warn(warning, stacklevel=caller_level())
        return "train"
    return judge_on


def only_training_lists() -> RanksieveWarning:
    """The warning if there are no other lists to judge trees on."""
    return RanksieveWarning(
        "trees are judged on the training lists, which they were fitted to; give lists that they were not trained "
        "on as ",
        param("valid"),
    )


def warn_if_fitted(pruner: ForestPruner) -> None:
    """Warn if trees are judged on lists that they fit much better than validation lists."""
    before = pruner.before
    if pruner.judge == "train" and "valid" in before and before["train"] > (1 + FITTED) * before["valid"]:
        warnings.warn(
            RanksieveWarning(
                f"trees are judged on the training lists, where {pruner.metric} is {before['train']:.4f}; on the "
                f"validation lists it is {before['valid']:.4f}. On the lists that trees were fitted to, every tree "
                "looks useful; leave out ",
                param("judge_on"),
            ),
            stacklevel=caller_level(),
        )


def check_amount(rate: float | None, size: int | None) -> None:
    """Refuse all but a share of trees to remove, or a number of trees to keep."""
    if (rate is None) == (size is None):
        raise ParameterError(
            param("rate"),
            " and ",
            param("size"),
            f" are {'not' if size is None else 'both'} given; give the share of the trees to remove or the number of "
            "trees to keep",
        )
    if size is not None:
        check_whole("size", size)
    elif not isinstance(rate, int | float | np.number) or isinstance(rate, bool) or not 0 < rate < 1:
        raise ParameterError(param("rate"), f" is {rate!r}; expected the share of the trees to remove, between 0 and 1")


def n_removed(n_trees: int, rate: float | None, size: int | None = None) -> int:
    """The number of trees that a rate removes, or that are removed to keep `size`; an error if there is none."""
    check_amount(rate, size)
    if n_trees < 2:
        raise ModelError(f"the model has {n_trees} tree{'s' * (n_trees != 1)}; pruning needs at least two")
    if rate is None:
        assert size is not None  # checked
        if size >= n_trees:
            raise ParameterError(
                param("size"), f" is {size}, but the model has {n_trees} trees; give a number from 1 to {n_trees - 1}"
            )
        return n_trees - size
    n = int(rate * n_trees + 1e-9)  # 0.7 · 10 is 7.000000000000001 or 6.999999999999999 in binary
    if n == 0:
        raise ParameterError(
            param("rate"), f" {rate} of {n_trees} trees is less than one tree; use at least {1 / n_trees:.3g}"
        )
    return n


def _options(
    strategy: str | Strategy, given: dict[str, Any], kind: type[Options]
) -> tuple[Strategy, WeightSearch, Options]:
    """The strategy and the weight search with their parameters, and the other options."""
    rule = find_strategy(strategy, **given)
    search, own, others = parameters_of(WeightSearch), fields_of(rule), {one.name for one in fields(kind)}
    for name in (name for name in given if name not in {*search, *own, *others}):
        users = [one for one in STRATEGIES if name in parameters_of(STRATEGIES[one])]
        if not users:
            function = "prune" if kind is PruningOptions else "reweight"
            raise ParameterError(
                f"{function} has no option {name!r}; known: {', '.join([*search, *own, *sorted(others)])}"
            )
        raise ParameterError(
            param(name), " is not used by ", param("strategy", label(strategy)), f", only by {', '.join(users)}; leave "
            "it out",
        )  # fmt: skip
    chosen = WeightSearch(**{name: one.checked(given[name]) for name, one in search.items() if name in given})
    return rule, chosen, kind(**{name: value for name, value in given.items() if name in others})


def _loaded(model: Forest | str | os.PathLike[str], lists: dict[str, Any]) -> Forest:
    """The forest; files of RankLib and QuickRank have no number of features, so it is that of the data."""
    n_features = getattr(next(iter(lists.values())), "n_features", None)
    return given_forest(model, n_features=n_features)


def _finished(pruner: ForestPruner, choices: dict[str, Any], found: dict[str, Any]) -> Forest:
    """The forest, with the record of its pruning in place of facts about the forest before."""
    info = {name: value for name, value in pruner.forest.info.items() if name not in STALE}
    info["best_score"] = found.get("unseen")
    info["pruning"] = {**choices, **pruner.facts(), **found}
    info["phase_seconds"] = dict(pruner.reporter.seconds)  # model files leave times out
    return replace(pruner.forest, info=info)
