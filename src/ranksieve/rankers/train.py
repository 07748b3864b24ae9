"""`train`: the one door to every learner, boosted forests and the rankers beside them."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ranksieve.boosting.train import train as train_forest
from ranksieve.errors import IdleParameterWarning, InterruptedTraining, ParameterError, in_python
from ranksieve.evaluation.metrics import parse_metric
from ranksieve.forest.forest import Forest
from ranksieve.forest.sum import Feature, Sum
from ranksieve.kernels.numba_cache import tell_first_use
from ranksieve.params import ALGORITHMS, Params, flag
from ranksieve.pruning.xcleaver import train_xcleaver
from ranksieve.rankers.blend import Blend
from ranksieve.rankers.inputs import Task
from ranksieve.rankers.lambdarank import train_lambdarank
from ranksieve.rankers.lightgbm import load_lightgbm, train_lightgbm
from ranksieve.rankers.linear import one_feature, train_feature
from ranksieve.rankers.load import load
from ranksieve.rankers.mcrank import train_mcrank
from ranksieve.rankers.ranksvm import train_ranksvm
from ranksieve.threads import using_threads

TRAINERS: dict[str, Callable[[Task], Any]] = {
    "ranksvm": train_ranksvm,
    "lambdarank": train_lambdarank,
    "mcrank": train_mcrank,
    "mcrank-ordinal": train_mcrank,
    "feature": train_feature,
    "lightgbm": train_lightgbm,
    "xcleaver": lambda task: train_xcleaver(task.data, task.valid, task.missing, task.params, task.callbacks),
}


def train(
    data: Any,
    *,
    valid: Any = None,
    init: Any = None,
    callbacks: Sequence[Callable[[Any], None]] = (),
    missing: str = "zero",
    **options: Any,
) -> Any:
    """Learn to rank.

    Parameters
    ----------
    data : Dataset, Binned or file name
        The training lists. For a forest a file is streamed into bins; its float matrix is never held whole.
    valid : the same, a list of them, or a mapping of names, optional
        Sets to measure after each tree (or epoch). The first decides when to stop; the model returned is its best.
    callbacks : functions of a `Record`
        Called after each tree, epoch or iteration; those of `algo="xcleaver"` get a `PruningRecord`.
    init : model file, feature name, fitted ranker, or array of scores, optional
        What a boosted forest starts from in place of zero scores: the trees then mend its mistakes (LambdaSMART). The
        result scores as base plus new trees: one forest where the base is one, else a `Blend` of both. Scores are an
        array for the training set, or a mapping with one array for `"train"` and for each validation set; the forest
        returned then holds the new trees alone.
    missing : "zero" or "nan"
        What a feature absent from a LETOR line means.
    **options
        Everything in `Params`: algo, trees, leaves, learning_rate, negatives, …; and, for boosted forests, what
        `ranksieve.boosting.train.train` takes: selection, objective, checkpoint, resume, binning, … The metric may be
        a function of yours, `(labels, scores, offsets, k) -> one number per query`.

    Returns
    -------
    Forest, or another model with `predict` and `save`
        As the algorithm makes it.

    Raises
    ------
    InterruptedTraining
        A `KeyboardInterrupt` that has the model of the finished trees (or rounds, or epochs) as its `model`.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> rs.train(data, algo="selgb", negatives=0.2, trees=5, leaves=4).n_trees
    5
    >>> rs.train(data, algo="ranksvm")
    Linear(50 weights)
    """
    if callable(options.get("metric")):
        options["metric"] = str(parse_metric(options["metric"]))
    tell_first_use("growing")
    trainer = TRAINERS.get(str(options.get("algo", Params().algo)))
    if trainer is None:
        options.setdefault("read_model", load)
        _warn_of_idle(options)
        try:
            forest = train_forest(data, valid=valid, init=init, callbacks=callbacks, missing=missing, **options)
        except InterruptedTraining as stopped:
            raise InterruptedTraining(_saveable(stopped.model)) from None
        return _saveable(forest)
    params = Params.from_mapping(_without_forest_options({**options, "init": init}))
    params.check_heeded()
    with using_threads(params.threads or os.cpu_count() or 1) as threads:
        return trainer(Task(data, valid, missing, params, callbacks, threads))


def _warn_of_idle(options: Mapping[str, Any]) -> None:
    """Tell of parameters that a boosted forest ignores; functions of the user's own may heed whatever they like."""
    if not any(callable(options.get(slot)) for slot in ("selection", "objective")):
        known = {name: value for name, value in options.items() if name in Params().as_dict() and value is not None}
        idle = Params.from_mapping(known).idle()
        if idle:
            warnings.warn(in_python(f"{idle}; without effect"), IdleParameterWarning, stacklevel=3)


def check_extra(algo: str) -> None:
    """Refuse an algorithm whose optional dependency is not installed."""
    if algo == "lightgbm":
        load_lightgbm()


def _saveable(model: Forest | Sum) -> Forest | Blend:
    """A forest, or a base of another kind with the forest on top of it."""
    if isinstance(model, Forest):
        return model
    base = model.base
    if isinstance(base, Feature):
        base = one_feature(base.number, base.feature_names)
    return Blend((base, model.forest), np.ones(2), model.forest.feature_names, model.info)


def _without_forest_options(options: dict[str, Any]) -> dict[str, Any]:
    """The parameters among the options; what only boosting can heed is refused unless it asks for nothing."""
    known, defaults = dict(inspect.signature(train_forest).parameters), Params().as_dict()
    if options["algo"] == "xcleaver":  # a selection and an objective by name are parameters, handed on to boosting
        named = {name for name in defaults if isinstance(options.get(name), str)}
        known = {name: one for name, one in known.items() if name not in named}
    for name, value in options.items():
        if name in known and not _says_nothing(value, known[name].default, defaults.get(name)):
            raise ParameterError(
                f"{flag(name)} is for boosted forests, not for --algo={options['algo']}; leave it out, or use "
                f"one of {', '.join(ALGORITHMS)}"
            )
    return {name: value for name, value in options.items() if name not in known}


def _says_nothing(value: Any, *defaults: Any) -> bool:
    """Whether an option, which may be an array, is one of its defaults."""
    return any(value is default for default in defaults) or (np.isscalar(value) and value in defaults)
