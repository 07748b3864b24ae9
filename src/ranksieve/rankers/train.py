"""`train`: one function for every algorithm, boosted forests and the other rankers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from ranksieve.boosting.callbacks import SelectionCounter
from ranksieve.boosting.checkpoint import CheckpointOptions
from ranksieve.boosting.job import Machines, TrainingJob, named_sets
from ranksieve.boosting.train_forest import train_forest
from ranksieve.data.binning import Binning
from ranksieve.data.data_file import COLUMN_PARAMETERS, DataFile
from ranksieve.data.features import Described
from ranksieve.errors import InterruptedTraining, ParameterError, UnusedParameterWarning, caller_level, param
from ranksieve.evaluation.metrics import parse_metric
from ranksieve.kernels.numba_cache import report_first_compile
from ranksieve.other_names import NEAREST
from ranksieve.parameter_table import unknown_parameter, with_parameters
from ranksieve.params import Params
from ranksieve.progress import training_progress
from ranksieve.pruning.prune import prune
from ranksieve.rankers.early_stopping import choose_stopping
from ranksieve.threads import using_threads


def train(
    data: Any,
    *misplaced: NoReturn,
    valid: Any = None,
    init: Any = None,
    callbacks: Sequence[Callable[[Any], None]] = (),
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 50,
    checkpoint_minutes: float = 5.0,
    resume: bool = False,
    counter: SelectionCounter | None = None,
    binning: Binning | None = None,
    missing: str = "zero",
    categorical: str | Sequence[str] | None = None,
    cluster: Machines | None = None,
    verbose: int = True,
    **params: Any,
) -> Any:
    """Train a ranker.

    Parameters
    ----------
    data : Dataset, Binned, file name, or pandas, polars or Arrow table
        The training lists; `rs.read(data, label="grade", ignore="url")` names the columns of a table.
        For a forest a file is streamed into bins; its float matrix is never held whole.
    valid : the same, a list of them, or a mapping of names, optional
        Sets to measure after each tree (or epoch). The first decides when to stop; the model returned is its best.
        Without any, the number of trees is chosen by cross-validation by query, and the model is trained on all
        queries, unless `trees` is given; see `valid_fraction`.
    init : model file, feature name, fitted ranker, or array of scores, optional
        What a boosted forest starts from in place of zero scores: the trees correct its errors (LambdaSMART). The
        result adds the base and the new trees: one forest if the base is one, else a `Blend` of both. Scores are an
        array for the training set, or a mapping with one array for `"train"` and for each validation set; the forest
        returned then holds the new trees alone.
    callbacks : functions of a `Record`
        Called after each tree, epoch or iteration; those of `algo="xcleaver"` get a `PruningRecord`.
    checkpoint : folder, optional
        Where a boosted forest saves its state every `checkpoint_every` trees and every `checkpoint_minutes` minutes;
        `resume=True` continues from there to the same model bit for bit.
    counter : SelectionCounter, optional
        Counts for how many trees each document was selected.
    binning : Binning, optional
        Thresholds to use in place of learned ones.
    missing : "zero" or "nan"
        The value of a feature that is absent from a LETOR line.
    categorical : str or list of str, optional
        Columns of a file or a table that hold categories: names or globs. Columns of a categorical type need not be
        named. For arrays, see `Dataset.from_arrays`.
    cluster : ranksieve.cluster.Cluster, optional
        The Dask cluster to train a boosted forest on; see `ranksieve.cluster.train`.
    verbose : bool or int
        Show progress on standard error if it is a terminal, and in notebooks; False, 0 or -1: nowhere.
    **params
        The training parameters: those under "Other Parameters" in `help(rs.train)`, and on the page "Parameters". The
        parameters of rules that you register are in `help(rs.Ranker)`.
        `selection` and `objective` are names, rules or functions. `metric` may be a function
        `(labels, scores, offsets, k) -> one number per query`.

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
    >>> data = rs.synth.two_stage(8)
    >>> counter = rs.callbacks.SelectionCounter()
    >>> model = rs.train(data, algo="selgb", negatives=0.01, trees=10, leaves=4, counter=counter)
    >>> model.n_trees, counter.n_rows < 0.2 * model.n_trees * data.n_docs  # most trees are trained on few rows
    (10, True)
    >>> rs.train(rs.synth.cubic(20), algo="ranksvm")
    Linear(50 weights)
    """
    if misplaced:
        raise ParameterError(
            "only the data is given by position; parameters are keyword arguments: rs.train(data, num_leaves=5); for "
            "arrays use rs.Dataset.from_arrays(X, y, qid=…) or rs.Ranker().fit(X, y, qid=…)"
        )
    parsed = parse_params(params)
    if categorical is not None:
        data = with_categories(data, categorical, in_parts=cluster is not None and isinstance(data, list | tuple))
    if isinstance(valid, list | tuple) and not valid:
        valid = None
    options = CheckpointOptions(checkpoint, checkpoint_every, checkpoint_minutes, resume)
    with training_progress(parsed.algo, verbose=verbose) as shown:
        if not shown:
            report_first_compile("growing")
        callbacks = (*callbacks, *shown)
        return run(TrainingJob(data, parsed, valid, init, callbacks, missing, options, counter, binning, cluster))


train.__doc__ = with_parameters(train.__doc__, "Other Parameters", "Returns")


def with_categories(data: Any, categorical: str | Sequence[str], *, in_parts: bool = False) -> Any:
    """Data files whose columns `categorical` hold categories."""
    if isinstance(data, Described):
        raise ParameterError(
            param("categorical"), " is for files and tables; give it to rs.read or Dataset.with_features here"
        )
    parts = data if in_parts else [data]
    files = [one if isinstance(one, Described) else DataFile(one, categorical=categorical) for one in parts]
    return files if in_parts else files[0]


def training_job(data: Any, params: dict[str, Any], *, valid: Any = None, arguments: Sequence[str] = ()) -> TrainingJob:
    """The job that the keyword arguments `params` of `cv` or `tune` describe.

    `callbacks`, `missing` and `categorical` are removed from `params`; what remains are training parameters.
    """
    options = {name: params.pop(name) for name in ("callbacks", "missing") if name in params}
    categorical = params.pop("categorical", None)
    parsed = parse_params(params, arguments)
    return TrainingJob(data if categorical is None else with_categories(data, categorical), parsed, valid, **options)


def parse_params(given: Mapping[str, Any], arguments: Sequence[str] = ()) -> Params:
    """The parameters of a run. Unused parameters are a warning for forests and an error for other rankers.

    `arguments` are arguments of the calling function that other libraries name differently, for error messages.
    """
    for name, value in given.items():
        if name in COLUMN_PARAMETERS:
            raise ParameterError(
                f"{name!r} names a column of the data and is not a training parameter; give rs.read(data, {name}="
                f"{value!r}) as data"
            )
        if NEAREST.get(name) in arguments:
            raise ParameterError(*unknown_parameter(name, arguments))
    values = {name: value for name, value in given.items() if value is not None}
    if callable(values.get("metric")):
        values["metric"] = str(parse_metric(values["metric"]))
    params = Params(**values).load_files()
    if not params.algorithm.is_forest:
        params.check_used()
    elif message := params.unused_message():
        warnings.warn(UnusedParameterWarning(*message), stacklevel=caller_level())
    return params


def run(job: TrainingJob) -> Any:
    """Train the model that a job describes: `train`, the command line and experiments end here."""
    with using_threads(job.params.threads or os.cpu_count() or 1) as threads:
        job = replace(job, threads=threads)
        if job.params.algorithm.is_forest:
            job.checkpoint.check()
        else:
            job.check_forest_options()
        job, facts = choose_stopping(job, _train)
        model = _train(job)
    return model.with_info(**facts) if facts else model


def _train(job: TrainingJob) -> Any:
    """Train the model of a job that has the validation data it needs."""
    _check_size(job)
    if job.cluster is not None:
        return job.cluster.train(job)
    params = job.params
    model = train_forest(job) if params.algorithm.is_forest else params.ranker_rule(job)
    try:
        return prune_to_size(model, job)
    except KeyboardInterrupt:
        raise InterruptedTraining(model) from None


def _check_size(job: TrainingJob) -> None:
    """Refuse to prune where that is not possible."""
    params = job.params
    if params.size == 0 or not params.algorithm.is_forest:
        return
    if job.cluster is not None:
        raise ParameterError(param("size"), " works on one machine only; prune the model afterwards")
    if job.valid is None:
        raise ParameterError(param("size"), " needs validation data to prune on; give ", param("valid"))


def prune_to_size(model: Any, job: TrainingJob) -> Any:
    """The model, a forest with more than `params.size` trees pruned to these on the first validation set.

    Ctrl-C raises `KeyboardInterrupt`, also where pruning has a first result.
    """
    params = job.params
    if not 0 < params.size < getattr(model, "n_trees", 0):
        return model
    valid = next(iter(named_sets(job.valid).values()))
    pruned = prune(
        model, valid=valid, rate=1.0 - params.size / model.n_trees, metric=params.metric, missing=job.missing,
        threads=params.threads, seed=params.seed,
    )  # fmt: skip
    if pruned.info["pruning"]["interrupted"]:
        raise KeyboardInterrupt
    trained = {name: fact for name, fact in model.info.items() if name != "best_iteration"}
    return replace(pruned, info={**trained, **pruned.info})
