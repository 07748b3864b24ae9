"""Training a boosted forest: from a job to a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve.boosting.bagging import bagged, bagged_step, check_bag, training_scores
from ranksieve.boosting.callbacks import ForestValidation, Monitor, ValidationSet
from ranksieve.boosting.checkpoint import Checkpointer, fingerprint, finished
from ranksieve.boosting.disk_grower import DiskGrower
from ranksieve.boosting.disk_scores import new_scores
from ranksieve.boosting.disk_training import listener_of, report_disk_time, store_of
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.initial_scores import TRAIN, Base, make_base
from ranksieve.boosting.job import TrainingJob, model_info, named_sets, report_data, sizes_of
from ranksieve.boosting.loop import Parts, State, boost
from ranksieve.boosting.oblivious import ObliviousGrower
from ranksieve.boosting.position_bias import PositionBiases, count_positions, learned_biases, uses_biases
from ranksieve.boosting.query_labels import QueryLabels
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.selections.fields import Minimum
from ranksieve.boosting.tied_scores import BestScores, depends_on_input_order, warn_of_ties
from ranksieve.boosting.training_rows import TrainingLists
from ranksieve.boosting.tree import Tree, to_forest
from ranksieve.data.bin_store import BinStore
from ranksieve.data.binned import Binned, bin_data, bin_like
from ranksieve.data.lists import Lists
from ranksieve.data.read import open_data
from ranksieve.errors import ClusterError, InterruptedTraining, ParameterError, param
from ranksieve.evaluation.metrics import Metric, metric_of
from ranksieve.forest.forest import Forest
from ranksieve.models.blend import Blend
from ranksieve.params import Params
from ranksieve.rules import AUTO, fields_of, traits_of
from ranksieve.text_formats import counted

GROWERS: dict[str, type[Grower]] = {"best-first": Grower, "oblivious": ObliviousGrower}


def train_forest(job: TrainingJob) -> Forest | Blend:
    """Train a boosted forest.

    A file is streamed into bins; its float matrix is never held whole. The forest ends at the best tree of the first
    validation set. With `job.init` the trees correct the errors of a base model (LambdaSMART).
    """
    params = job.params
    given, store = open_data(job.data, missing=job.missing), store_of(params, job.callbacks)
    train_set = bin_data(given, **params.bin_limits, binning=job.binning, store=store)
    report_data(job.callbacks, TRAIN, train_set)
    _note_no_effect(train_set.lists, params, job.callbacks)
    base = checked_base(job, train_set, given, QueryLabels.of(train_set.lists))
    has_biases = uses_biases(train_set.lists, params)
    check_bag(params, has_biases=has_biases)
    backend = backend_of(job, has_biases=has_biases, has_categories=bool(train_set.binning.codes))
    start = backend.scores(train_set, base.scores(TRAIN, given, train_set), is_trained_on=True)
    valid_sets = list(_validation_sets(job, train_set, base, backend, store))
    lists = backend.lists(train_set, metric_of(params), first_selection(base))
    step_size = params.step_rule((train_set, start), [(one.data, one.scores) for one in valid_sets], lists.metric)
    grower = backend.grower(train_set)
    report_disk_time(train_set, params, job.callbacks, threads=job.threads)
    biases = PositionBiases.of(lists, count_positions(train_set.lists.positions), params)
    starts = [start, *(one.scores for one in valid_sets)]
    if job.counter is not None:
        job.counter.begin(train_set.lists, resume=job.checkpoint.resume, row_fraction=params.row_fraction)
    return BoostingRun(
        job=job,
        data=train_set,
        base=base,
        parts=Parts(lists, grower, bagged_step(step_size, params.bag), biases),
        state=State([], start, lists.all_rows),
        valid_sets=valid_sets,
        fingerprint=lambda: fingerprint(train_set, valid_sets, starts, params),
        sizes={**sizes_of(train_set.lists), "valid": {one.name: sizes_of(one.data.lists) for one in valid_sets}},
    ).train()


def _note_no_effect(lists: Lists, params: Params, callbacks: Sequence[Any]) -> None:
    """Say that no tree can split so few documents, or that a selection selects all documents of lists so short."""
    listener, rule = listener_of(callbacks), params.selection_rule
    if lists.n_docs < 2 * params.min_docs:
        listener.note(
            f"no tree can split {counted(document=lists.n_docs)} into leaves of at least {params.min_docs}: all "
            "documents get one score; lower ", param("min_docs"),
        )  # fmt: skip
    if isinstance(rule, Minimum) and listener in callbacks:  # of interest to who watches, not in every log
        most = int(np.add.reduceat(lists.stored_labels == 0, lists.offsets[:-1], dtype=np.int64).max())
        if most <= rule.min_negatives:
            listener.note(
                f"all lists have at most {counted(negative=most)}, and ", param("min_negatives", rule.min_negatives),
                f" selects all of them: {params.algo} trains each tree on all documents, as lambdamart",
            )  # fmt: skip


@dataclass
class BoostingRun:
    """A forest in training, with everything that happens after a tree.

    `fingerprint` describes the data and parameters that a checkpoint must match. `sizes` are those of the data sets.
    """

    job: TrainingJob
    data: Binned
    base: Base
    parts: Parts
    state: State
    valid_sets: Sequence[ForestValidation]
    fingerprint: Callable[[], dict[str, Any]]
    sizes: Mapping[str, Any]

    def train(self) -> Forest | Blend:
        """Boost to the end; Ctrl-C raises `InterruptedTraining` with the model of the finished trees."""
        params, counter = self.job.params, self.job.counter
        limits = params.all_trees, params.trees_to_wait
        monitor = Monitor(self.valid_sets, metric_of(params), *limits, self.job.callbacks, bag=params.bag)
        if self.parts.biases is not None:
            self.parts.biases.begin(self.state, getattr(self.base, "model", None))
        if not self.base.is_constant:
            monitor.measure_base(self.state)
        after_tree: list[Callable[[State], None]] = [monitor]
        warns_of_ties = self.job.warns_of_ties and self.valid_sets and depends_on_input_order(monitor.metric)
        if warns_of_ties and params.early_stopping:
            after_tree.append(BestScores(self.valid_sets[0], monitor))
        if counter is not None:
            after_tree.append(counter)
        checkpointer = self._checkpointer(monitor)
        if checkpointer is not None:
            after_tree.append(checkpointer)
        try:
            boost(self.parts, self.state, n_trees=params.all_trees, seed=params.seed, callbacks=after_tree)
        except (ClusterError, KeyboardInterrupt) as error:
            self.state = finished(self.state)  # finished trees are kept even if workers were lost
            if checkpointer is not None and self.state.trees:
                checkpointer.save(self.state)
            if isinstance(error, KeyboardInterrupt) and self.state.trees:
                raise InterruptedTraining(self._model(monitor)) from None
            raise
        model = self._model(monitor)
        if warns_of_ties:
            try:
                warn_of_ties(self.valid_sets[0], self._kept_trees(monitor), monitor.metric)
            except KeyboardInterrupt:
                raise InterruptedTraining(model) from None
        return model

    def _checkpointer(self, monitor: Monitor) -> Checkpointer | None:
        options = self.job.checkpoint
        if options.folder is None:
            if options.resume:
                raise ParameterError(param("resume"), " needs a checkpoint folder; give ", param("checkpoint"))
            return None
        checkpointer = Checkpointer(options, self.data, self.job.params, self.fingerprint())
        if options.resume:
            self.state = checkpointer.load(self.state)
            if self.parts.biases is not None:
                self.parts.biases.resume(self.state)
            self.state.stopped = monitor.should_stop(self.state)
        else:
            checkpointer.refuse_to_overwrite()
        return checkpointer

    def _kept_trees(self, monitor: Monitor) -> list[Tree]:
        trees = self.state.trees
        return trees[: monitor.facts(self.state)["best_iteration"]] if self.job.params.early_stopping else trees

    def _model(self, monitor: Monitor) -> Forest | Blend:
        """The base and the new trees, up to the best of them where there is validation data."""
        params, state, base = self.job.params, self.state, self.base
        facts, trees = monitor.facts(state), self._kept_trees(monitor)
        info = model_info(
            params,
            self.data.info,
            data=self.sizes,
            **facts,
            **({"init": {**base.describe(), "score": monitor.base_value}} if not base.is_constant else {}),
            **({"steps": state.steps} if params.step == "optimal" else {}),
            **learned_biases(state.biases, len(trees)),
        )
        return base.join(to_forest(trees, self.data.binning, self.data.feature_names, info))


class CpuBackend:
    """Trains on the CPU; `boosting.gpu.backend.GpuBackend` has the same parts on a GPU."""

    def __init__(self, job: TrainingJob) -> None:
        self._params, self._threads, self._listener = job.params, job.threads, listener_of(job.callbacks)

    def scores(self, data: Binned, start: float | np.ndarray, *, is_trained_on: bool = False) -> Any:
        """The scores of a data set."""
        return training_scores(data, self._params, start) if is_trained_on else new_scores(data, start=start)

    def validation_set(self, name: str, data: Binned, scores: Scores, start: float | np.ndarray = 0.0) -> ValidationSet:
        return ValidationSet(name, data, scores, start)

    def lists(self, data: Binned, metric: Metric, first_selection: int) -> Any:
        return bagged(TrainingLists(data.lists, self._params, metric, first_selection))

    def grower(self, data: Binned) -> Grower:
        if data.disk is not None:
            return DiskGrower(data, self._params, self._listener, threads=self._threads)
        return GROWERS[self._params.forest_algorithm.grower](data, self._params, threads=self._threads)


def backend_of(job: TrainingJob, *, has_biases: bool = False, has_categories: bool = False) -> Any:
    """Where a forest is trained: on the CPU, or on a GPU."""
    only_cpu = has_biases or has_categories or job.params.bag > 1
    if job.params.device == "cpu" or (job.params.device == AUTO and only_cpu):
        return CpuBackend(job)
    from ranksieve.cuda import device

    if not device.is_chosen(job.params.device):
        return CpuBackend(job)
    if has_biases:
        raise ParameterError(
            param("device", job.params.device), " does not support position biases; use ", param("device", "cpu"),
            ", or ", param("position_rate", 0), " to ignore positions",
        )  # fmt: skip
    if has_categories:
        raise ParameterError(
            param("device", job.params.device), " does not support categorical features; use ", param("device", "cpu"),
            ", or leave these features out",
        )  # fmt: skip
    from ranksieve.boosting.gpu.backend import GpuBackend

    return GpuBackend(job)


def first_selection(base: Base) -> int:
    """The first tree that a selection is made for: without a base there are no scores to rank by at step 0."""
    return 1 if base.is_constant else 0


def checked_base(job: TrainingJob, train_set: Binned, given: Any, labels: QueryLabels) -> Base:
    """What boosting starts from. Labels and parameters are checked; `given` is the training set as the user gave it."""
    objective = job.params.objective_rule
    traits = traits_of(objective)
    labels.check_grades(train_set.source, pairs=traits.needs_pairs)
    constant = labels.mean if traits.starts_at_mean else 0.0
    base = make_base(job.init, constant, train_set, given)
    if not base.is_constant and fields_of(objective).get("first_tree") == "labels":
        raise ParameterError(
            param("first_tree", "labels"), " ignores scores and cannot be used with ", param("init"), "; leave it out"
        )
    return base


def _validation_sets(
    job: TrainingJob, train_set: Binned, base: Base, backend: Any, store: BinStore | None
) -> Iterator[Any]:
    """The validation sets with their initial scores."""
    for name, data in named_sets(job.valid).items():
        names, categories = train_set.feature_names, train_set.categories
        given = open_data(data, missing=job.missing, wanted=names, categories=categories)
        binned = bin_like(given, train_set, store=store)
        report_data(job.callbacks, name, binned)
        start = base.scores(name, given, binned)
        again = start[:1].copy() if base.is_constant else start  # a constant needs no memory
        yield backend.validation_set(name, binned, backend.scores(binned, start), again)
