"""`train` on a cluster: the boosting loop of one machine, with data and scores on the workers."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.boosting.bagging import bagged_step, check_bag
from ranksieve.boosting.checkpoint import CheckpointOptions, choices
from ranksieve.boosting.initial_scores import TRAIN, ScoresBase
from ranksieve.boosting.job import TrainingJob, named_sets, report_data
from ranksieve.boosting.loop import BoostingParts, State
from ranksieve.boosting.position_bias import PositionBiases, count_positions
from ranksieve.boosting.train_forest import BoostingRun, checked_base
from ranksieve.boosting.training_rows import TrainingRows
from ranksieve.cluster.connect import workers_of
from ranksieve.cluster.coordinator import RemoteGrower, RemoteLists, RemoteScores, RemoteTarget, RemoteValidationSet
from ranksieve.cluster.layout import assign
from ranksieve.cluster.messages import RunConfig, SetSummary
from ranksieve.cluster.partitions import PartitionedData, category_options
from ranksieve.cluster.worker_pool import WorkerPool
from ranksieve.data.binned import Binned
from ranksieve.data.features import check_feature_names, default_names
from ranksieve.data.read import check_missing
from ranksieve.errors import ClusterError, ParameterError, check_choice, param
from ranksieve.evaluation.metric_table import BUILT_IN, METRICS
from ranksieve.evaluation.metrics import metric_of
from ranksieve.parameter_table import FORESTS
from ranksieve.rankers import train as one_machine
from ranksieve.rankers.early_stopping import check_cluster_has_valid
from ranksieve.rules import AUTO, traits_of

if TYPE_CHECKING:
    from distributed import Client

# A worker with more training rows sends histograms, which are fewer bytes.
MOST_ROWS = 131_072
Run = BoostingRun[TrainingRows, RemoteScores, RemoteTarget]
EXCHANGE = {"auto": MOST_ROWS, "rows": np.iinfo(np.int64).max, "histograms": -1}


def train(
    client: Client,
    partitions: Any,
    /,
    *,
    workers: Sequence[str] | None = None,
    exchange: str = "auto",
    copies: bool = True,
    **options: Any,
) -> Any:
    """Train on the workers of a Dask cluster. The forest is the one that `ranksieve.train` trains on one machine.

    Parameters
    ----------
    client : distributed.Client
        The cluster. Its workers need ranksieve, and access to the files.
    partitions : file, folder, pattern, Dask DataFrame, or list of files, Datasets or delayed DataFrames
        The training data. Every worker holds the bins of some queries. No query is split between workers.
    workers : addresses, optional
        The workers to use, in this order. The default is all.
    exchange : "auto", "rows" or "histograms"
        How a tree is grown on selected rows. With "rows" the workers send each row once and the client's process grows
        the tree. With "histograms" the workers send histograms, whose sums decide the splits. "auto" sends rows if
        they are few. The model is the same.
    copies : bool
        Whether each worker also writes its bins to its local directory, one byte for each feature of each document. A
        worker that is restarted on that machine reads them in place of the source. They are removed after the run.
    **options
        Everything else that `ranksieve.train` takes, with these differences. `valid` is partitions, or a mapping of
        names to partitions; a list is one validation set in several partitions. `init` is a model file, a feature
        name or a fitted ranker. `threads` are those of the client's process; each worker uses all its own threads.
        User-defined selections and objectives run on the workers and see the queries of one worker at a time.

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
    return one_machine.train(partitions, cluster=Cluster(client, workers, exchange, copies), **options)


@dataclass(frozen=True)
class Cluster:
    """A Dask cluster as the argument `cluster` of `ranksieve.train`; the fields are parameters of `cluster.train`.

    Examples
    --------
    >>> import ranksieve as rs
    >>> from dask.distributed import Client
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
    ...     rs.train([rs.synth.cubic(10)], cluster=rs.cluster.Cluster(client), trees=2, leaves=4).n_trees
    2
    """

    client: Client
    workers: Sequence[str] | None = None
    exchange: str = "auto"
    copies: bool = True

    def train(self, job: TrainingJob) -> Any:
        """Train the forest of a job, whose data sets are partitions."""
        self._check(job)
        threads = workers_of(self.client, self.workers)
        options: dict[str, Any] = {"missing": job.missing}
        sets = {
            TRAIN: PartitionedData.scan(self.client, job.data, options, {} if job.binning else job.params.bin_limits)
        }
        options = options | category_options(sets[TRAIN].names, sets[TRAIN].categories)
        for name, given in _partitions_of(job.valid).items():
            sets[name] = PartitionedData.scan(self.client, given, options, {})
        config = self._config(job, sets)
        pool = WorkerPool(self.client, config, sets, assign(self.client, threads, sets, config))
        try:
            run = _load(job, pool, config, sets[TRAIN].without_documents(config.binning, config.feature_names))
            with _resume_hint(job.checkpoint):
                return run.train()
        finally:
            pool.close()

    def _check(self, job: TrainingJob) -> None:
        """Raise an error for parameters that work on one machine only."""
        params = job.params
        check_missing(job.missing)
        check_choice("exchange", self.exchange, EXCHANGE)
        supported = [algo for algo, one in FORESTS.items() if one.grower == "best-first"]
        if params.algo not in supported:
            raise ParameterError(
                param("algo", params.algo),
                f" trains on one machine only; on a cluster use one of {', '.join(supported)}",
            )
        unsupported = [
            (param("collapse", params.collapse), params.collapse > 0),
            (param("step", params.step), traits_of(params.step_rule).one_machine_only),
            (param("counter"), job.counter is not None),
        ]
        for name in (name for name, is_given in unsupported if is_given):
            raise ParameterError(name, " works on one machine only; on a cluster leave it out")
        if traits_of(params.selection_rule).needs_all_queries:
            raise ParameterError(
                param("selection", params.selection), " compares documents of all queries and works on one machine "
                "only; choose a selection that looks at each query alone",
            )  # fmt: skip
        check_cluster_has_valid(params, named_sets(job.valid))

    def _config(self, job: TrainingJob, sets: dict[str, PartitionedData]) -> RunConfig:
        """The settings for all workers; checks that all data sets have the features of the training set."""
        binning = job.binning or sets[TRAIN].learn_binning()
        unnamed = default_names(binning.n_features)
        names = sets[TRAIN].names or unnamed
        for found in sets.values():
            check_feature_names(found.names or unnamed, names, found.partitions[0].name)
        metric = metric_of(job.params)
        return RunConfig(
            params=job.params,
            metric=metric,
            user_metric=None if metric.name in BUILT_IN else METRICS[metric.name],
            binning=binning,
            feature_names=names,
            categories=sets[TRAIN].categories,
            missing=job.missing,
            highest_labels={name: found.highest_label for name, found in sets.items()},
            max_sent_rows=EXCHANGE[self.exchange],
            copies=self.copies and job.params.memory == AUTO,  # with limited memory bins are in files already
        )


def _load(job: TrainingJob, pool: WorkerPool, config: RunConfig, data: Binned) -> Run:
    """Load the data on the workers, and check labels and `init` on the client."""
    params, summaries = job.params, pool.load()
    base = checked_base(job, data, None, summaries[TRAIN])
    if isinstance(base, ScoresBase):
        raise ParameterError(
            param("init"), " is an array of scores; on a cluster give a model or the name of a feature"
        )
    fingerprint = _fingerprint(config, summaries, pool.begin(base))
    scores = RemoteScores(pool)
    grower = RemoteGrower(data, params, pool, threads=job.threads, n_docs=summaries[TRAIN].n_docs)
    valid_sets = [
        RemoteValidationSet(name, pool, found.query_weights if len(found.query_weights) else None, params.all_trees)
        for name, found in summaries.items()
        if name != TRAIN
    ]
    lists, last = RemoteLists(pool), summaries[TRAIN].last_positions
    check_bag(params, has_biases=bool(len(last)))
    biases = PositionBiases.of(lists, count_positions(last if len(last) else None), params)
    step_size = bagged_step(params.step_rule((data, scores), [], config.metric), params.bag)
    sizes: dict[str, Any] = {
        name: {"documents": found.n_docs, "queries": len(found.checksums)} for name, found in summaries.items()
    }
    report_data(job.callbacks, TRAIN, data, sizes[TRAIN])
    return BoostingRun(
        job=job,
        data=data,
        base=base,
        parts=BoostingParts(lists, grower, step_size, biases),
        state=State([], scores, TrainingRows.of(data.lists, None)),
        valid_sets=valid_sets,
        fingerprint=lambda: fingerprint,
        sizes={**sizes.pop(TRAIN), "valid": sizes},
    )


@contextmanager
def _resume_hint(options: CheckpointOptions) -> Iterator[None]:
    """Add to errors of the cluster how to continue from the checkpoint, if there is one."""
    try:
        yield
    except ClusterError as error:
        if options.folder is None:
            raise
        raise error.with_suffix("; continue from the checkpoint with ", param("resume")) from error


def _partitions_of(valid: Any) -> Mapping[str, Any]:
    """The validation sets by name; a list has the partitions of one set."""
    named = named_sets({"valid": valid} if isinstance(valid, list | tuple) else valid)
    if TRAIN in named:
        raise ParameterError(
            param("valid"), f" has a set with the name {TRAIN!r}, which is the training set's; give it another name"
        )
    return named


def _fingerprint(config: RunConfig, summaries: dict[str, SetSummary], starts: np.ndarray) -> dict[str, Any]:
    """The data and parameters that a checkpoint belongs to; they do not depend on the number of workers."""
    sums = {
        name: [found.n_docs, len(found.checksums), zlib.crc32(found.checksums.tobytes())]
        for name, found in summaries.items()
    }
    return {
        "training data": [
            *sums.pop(TRAIN),
            zlib.crc32(config.binning.thresholds.tobytes()),
            *(zlib.crc32(config.binning.codes[n].tobytes()) for n in sorted(config.binning.codes)),
        ],
        "validation data": sums,
        "init": zlib.crc32(starts.tobytes()),
        **choices(config.feature_names, config.params),
    }
