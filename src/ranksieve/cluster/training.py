"""`train` on a cluster: the boosting loop of one machine, with data and scores on the workers."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.boosting.callbacks import Record
from ranksieve.boosting.checkpoint import CheckpointOptions, choices
from ranksieve.boosting.initial_scores import TRAIN, Base, ScoresBase, make_base
from ranksieve.boosting.job import check_grades
from ranksieve.boosting.loop import Parts, State
from ranksieve.boosting.train import BoostingRun, check_start, constant_of, needs_pairs, starts_at_mean
from ranksieve.boosting.training_rows import TrainingRows
from ranksieve.cluster.connect import workers_of
from ranksieve.cluster.coordinator import RemoteLists, RemoteScores, RemoteValidationSet
from ranksieve.cluster.layout import assign
from ranksieve.cluster.messages import RunConfig, SetSummary
from ranksieve.cluster.partitions import PartitionedData
from ranksieve.cluster.remote_grower import RemoteGrower
from ranksieve.cluster.worker_pool import WorkerPool
from ranksieve.data.binned import Binned
from ranksieve.data.binning import Binning
from ranksieve.data.features import check_feature_names, default_names
from ranksieve.data.lists import Lists
from ranksieve.data.read import check_missing
from ranksieve.errors import ClusterError, ParameterError, param
from ranksieve.evaluation.metric_table import BUILT_IN, METRICS
from ranksieve.evaluation.metrics import metric_of
from ranksieve.parameter_table import FORESTS
from ranksieve.params import Params
from ranksieve.threads import using_threads

if TYPE_CHECKING:
    from distributed import Client

# A worker with more training rows does not send them: sums of histograms are fewer bytes from about here on.
MOST_ROWS = 131_072
EXCHANGE = {"auto": MOST_ROWS, "rows": np.iinfo(np.int64).max, "histograms": -1}


def train(
    client: Client,
    partitions: Any,
    *,
    valid: Any = None,
    init: Any = None,
    callbacks: Sequence[Callable[[Record], None]] = (),
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 50,
    checkpoint_minutes: float = 5.0,
    resume: bool = False,
    binning: Binning | None = None,
    missing: str = "zero",
    workers: Sequence[str] | None = None,
    exchange: str = "auto",
    copies: bool = True,
    **params: Any,
) -> Any:
    """Train on the workers of a Dask cluster. The forest is the one that `ranksieve.train` trains on one machine.

    Parameters
    ----------
    client : distributed.Client
        The cluster. Its workers need ranksieve, and access to the files.
    partitions : file, folder, pattern, Dask DataFrame, or list of files, Datasets or delayed DataFrames
        The training data, in this order. Every worker holds some of the queries, as bins. No query is split.
    valid : the same, or a mapping of names, optional
        Validation data, also spread over the workers. A list has the partitions of one data set.
    init : model file, feature name or fitted ranker, optional
        The model to start from.
    callbacks, checkpoint, checkpoint_every, checkpoint_minutes, resume, binning, missing
        As for one machine.
    workers : addresses, optional
        The workers to use, in this order. The default is all.
    exchange : "auto", "rows" or "histograms"
        How a tree is grown on selected rows. With "rows" the workers send each row once and the client's process grows
        the tree. With "histograms" the workers send histograms, whose sums decide the splits. "auto" sends rows if
        they are few. The model is the same.
    copies : bool
        Whether each worker also writes its bins to its local directory, one byte for each feature of each document. A
        worker that is restarted on that machine reads them in place of the source. They are removed after the run.
    **params
        The parameters of `Params`. `threads` is for the client's process; workers have their own. User-defined
        selections and objectives run on the workers and see the queries of one worker at a time.

    Returns
    -------
    Forest
        The same, bit for bit, as on one machine with the same data in the same order.

    Examples
    --------
    >>> import ranksieve as rs
    >>> from dask.distributed import Client
    >>> parts = [rs.synth.cubic(10), rs.synth.cubic(10, start=10)]
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
    ...     model = rs.cluster.train(client, parts, negatives=0.2, trees=5, leaves=4)
    >>> model.n_trees
    5
    """
    settings = Params(**{name: value for name, value in params.items() if value is not None}).load_files()
    _check(settings, missing, exchange)
    options = CheckpointOptions(checkpoint, checkpoint_every, checkpoint_minutes, resume)
    threads = workers_of(client, workers)
    sets = {TRAIN: PartitionedData.scan(client, partitions, missing, 0 if binning else settings.max_bins)}
    for name, given in _named_sets(valid).items():
        sets[name] = PartitionedData.scan(client, given, missing, 0)
    config = _config(sets, settings, binning, missing, EXCHANGE[exchange], copies)
    pool = WorkerPool(client, config, sets, assign(client, threads, sets, config))
    try:
        summaries = pool.load()
        data = sets[TRAIN].without_documents(config.binning, config.feature_names)
        base = _base(init, data, config, summaries[TRAIN])
        made_with = _fingerprint(config, summaries, pool.begin(base))
        with using_threads(settings.threads or os.cpu_count() or 1) as own_threads, _resume_hint(options):
            grower = RemoteGrower(data, settings, pool, threads=own_threads, n_docs=summaries[TRAIN].n_docs)
            return BoostingRun(
                params=settings,
                data=data,
                base=base,
                parts=Parts(RemoteLists(pool), grower, lambda *_: settings.learning_rate),
                state=State([], RemoteScores(pool), TrainingRows.of(data.lists, None)),
                valid_sets=_valid_sets(pool, summaries, settings.trees),
                callbacks=callbacks,
                checkpoint=options,
                fingerprint=lambda: made_with,
            ).train()
    finally:
        pool.close()


def _config(
    sets: dict[str, PartitionedData],
    params: Params,
    binning: Binning | None,
    missing: str,
    most_rows: int,
    copies: bool,
) -> RunConfig:
    """The settings for all workers; checks that all data sets have the features of the training set."""
    binning = binning or sets[TRAIN].learn_binning()
    unnamed = default_names(binning.n_features)
    names = sets[TRAIN].names or unnamed
    for found in sets.values():
        check_feature_names(found.names or unnamed, names, found.partitions[0].name)
    metric = metric_of(params)
    return RunConfig(
        params=params,
        metric=metric,
        own_metric=None if metric.name in BUILT_IN else METRICS[metric.name],
        binning=binning,
        feature_names=names,
        missing=missing,
        highest={name: found.highest for name, found in sets.items()},
        most_rows=most_rows,
        copies=copies,
    )


def _base(init: Any, data: Binned, config: RunConfig, summary: SetSummary) -> Base:
    """The model to start from. Labels and parameters are checked here, so that errors do not come from a worker."""
    params = config.params
    _check_grades(summary, data.source, pairs=needs_pairs(params))
    constant = constant_of(summary.sums, summary.weights) if starts_at_mean(params) else 0.0
    base = make_base(init, constant, data, None)
    if isinstance(base, ScoresBase):
        raise ParameterError(
            param("init"), " is an array of scores; on a cluster give a model or the name of a feature"
        )
    check_start(params, base)
    return base


def _valid_sets(pool: WorkerPool, summaries: Mapping[str, SetSummary], n_trees: int) -> list[RemoteValidationSet]:
    return [
        RemoteValidationSet(name, pool, found.query_weights if len(found.query_weights) else None, n_trees)
        for name, found in summaries.items()
        if name != TRAIN
    ]


@contextmanager
def _resume_hint(options: CheckpointOptions) -> Iterator[None]:
    """Add to errors of the cluster that there is a checkpoint."""
    try:
        yield
    except ClusterError as error:
        if options.folder is None:
            raise
        raise error.with_suffix("; continue from the checkpoint with ", param("resume")) from error


def _check(params: Params, missing: str, exchange: str) -> None:
    check_missing(missing)
    if exchange not in EXCHANGE:
        raise ParameterError(param("exchange"), f" is {exchange!r}; expected one of {', '.join(map(repr, EXCHANGE))}")
    able = [algo for algo, one in FORESTS.items() if one.grower == "best-first"]
    if params.algo not in able:
        raise ParameterError(
            param("algo", params.algo), f" trains on one machine only; on a cluster use one of {', '.join(able)}"
        )
    alone = {"collapse": params.collapse > 0, "step": getattr(params.step_rule, "one_machine_only", False)}
    for name, is_chosen in alone.items():
        if is_chosen:
            raise ParameterError(
                param(name, getattr(params, name)), " works on one machine only; on a cluster leave it out"
            )
    if getattr(params.selection_rule, "needs_all_queries", False):
        raise ParameterError(
            param("selection", params.selection), " compares documents of all queries and works on one machine only; "
            "choose a selection that looks at each query alone",
        )  # fmt: skip


def _named_sets(valid: Any) -> Mapping[str, Any]:
    if valid is None:
        return {}
    named = valid if isinstance(valid, Mapping) else {"valid": valid}
    if TRAIN in named:
        raise ParameterError(
            param("valid"), f" has a set with the name {TRAIN!r}, which is the training set's; give it another name"
        )
    return named


def _check_grades(summary: SetSummary, source: str, *, pairs: bool) -> None:
    """`check_grades` on lists of the lowest and the highest label of each query."""
    labels = np.stack([summary.lowest, summary.highest], axis=1).ravel()
    n_queries = len(summary.lowest)
    check_grades(Lists(labels, 2 * np.arange(n_queries + 1), np.arange(n_queries)), source, pairs=pairs)


def _fingerprint(config: RunConfig, summaries: dict[str, SetSummary], starts: np.ndarray) -> dict[str, Any]:
    """What a checkpoint must have been made with; it does not depend on the number of workers."""
    sums = {
        name: [found.n_docs, len(found.checksums), zlib.crc32(found.checksums.tobytes())]
        for name, found in summaries.items()
    }
    return {
        "training data": [*sums.pop(TRAIN), zlib.crc32(config.binning.thresholds.tobytes())],
        "validation data": sums,
        "init": zlib.crc32(starts.tobytes()),
        **choices(config.feature_names, config.params),
    }
