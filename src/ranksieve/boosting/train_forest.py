"""Training a boosted forest: from a job to a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from ranksieve.boosting.backend import AllScores, Backend, LocalScores, backend_of
from ranksieve.boosting.bagging import bagged_step, check_bag
from ranksieve.boosting.callbacks import ForestValidation, Monitor, ValidationSet
from ranksieve.boosting.checkpoint import Checkpointer, fingerprint, finished
from ranksieve.boosting.disk_training import listener_of, report_disk_time, store_of
from ranksieve.boosting.initial_scores import TRAIN, Base, make_base
from ranksieve.boosting.job import TrainingJob, model_info, named_sets, report_data, sizes_of
from ranksieve.boosting.loop import BoostingParts, Rows, State, Target, TrainScores, boost
from ranksieve.boosting.position_bias import PositionBiases, count_positions, learned_biases, uses_biases
from ranksieve.boosting.query_labels import QueryLabels
from ranksieve.boosting.tied_scores import BestScores, depends_on_input_order, warn_of_ties
from ranksieve.boosting.tree import Tree, to_forest
from ranksieve.data.bin_store import BinStore
from ranksieve.data.binned import Binned, bin_data, bin_like
from ranksieve.data.features import choose_features, monotone_signs
from ranksieve.data.lists import Lists
from ranksieve.data.read import open_data
from ranksieve.errors import ClusterError, InterruptedTraining, ParameterError, param
from ranksieve.evaluation.metrics import metric_of
from ranksieve.forest.forest import Forest
from ranksieve.models.blend import Blend
from ranksieve.params import Params
from ranksieve.rules import fields_of, traits_of
from ranksieve.text_formats import counted


def train_forest(job: TrainingJob) -> Forest | Blend:
    """Train a boosted forest.

    A file is streamed into bins; its float matrix is never held whole. The forest ends at the best tree of the first
    validation set. With `job.init` the trees correct the errors of a base model (LambdaSMART).
    """
    params = job.params
    given, store = open_data(job.data, missing=job.missing), store_of(params, job.callbacks)
    check_early(params, given.feature_names)
    train_set = bin_data(given, **params.bin_limits, binning=job.binning, store=store)
    report_data(job.callbacks, TRAIN, train_set)
    _note_few_documents(train_set.lists, params, job.callbacks)
    base = checked_base(job, train_set, given, QueryLabels.of(train_set.lists))
    has_biases = uses_biases(train_set.lists, params)
    check_bag(params, has_biases=has_biases)
    backend = backend_of(job, has_biases=has_biases, has_categories=bool(train_set.binning.codes))
    return _prepared(backend, job, given, train_set, base, store).train()


def _prepared(
    backend: Backend[Rows, LocalScores, Target],
    job: TrainingJob,
    given: Any,
    train_set: Binned,
    base: Base,
    store: BinStore | None,
) -> BoostingRun[Rows, LocalScores, Target]:
    """The run of a job on a backend; `given` is the training set as the user gave it."""
    params = job.params
    start = backend.training_scores(train_set, base.scores(TRAIN, given, train_set))
    valid_sets = list(_validation_sets(job, train_set, base, backend, store))
    lists = backend.lists(train_set, metric_of(params), first_selection(base))
    step_size = params.step_rule((train_set, start), [(one.data, one.scores) for one in valid_sets], lists.metric)
    grower = backend.grower(train_set)
    report_disk_time(train_set, params, job.callbacks, threads=job.threads)
    biases = PositionBiases.of(lists, count_positions(train_set.lists.positions), params)
    starts: list[AllScores] = [start, *(one.scores for one in valid_sets)]
    if job.counter is not None:
        job.counter.begin(train_set.lists, resume=job.checkpoint.resume, row_fraction=params.row_fraction)
    return BoostingRun(
        job=job,
        data=train_set,
        base=base,
        parts=BoostingParts(lists, grower, bagged_step(step_size, params.bag), biases),
        state=State([], start, lists.all_rows),
        valid_sets=valid_sets,
        fingerprint=lambda: fingerprint(train_set, valid_sets, starts, params),
        sizes={**sizes_of(train_set.lists), "valid": {one.name: sizes_of(one.data.lists) for one in valid_sets}},
    )


def check_early(params: Params, names: Sequence[str] | None) -> None:
    """Refuse, before the data is read, a GPU that is missing, and features that are not among the names, if known."""
    if params.device == "cuda":
        from ranksieve.cuda import device

        device.is_chosen(params.device)
    if names:
        choose_features(params.features, names)
        monotone_signs(params.monotone, names)


def _note_few_documents(lists: Lists, params: Params, callbacks: Sequence[Any]) -> None:
    """Say that no tree can split so few documents."""
    if lists.n_docs < 2 * params.min_docs:
        listener_of(callbacks).note(
            f"no tree can split {counted(document=lists.n_docs)} into leaves of at least {params.min_docs}: all "
            "documents get one score; lower ", param("min_docs"),
        )  # fmt: skip


@dataclass
class BoostingRun(Generic[Rows, TrainScores, Target]):
    """A forest in training, with everything that happens after a tree.

    `fingerprint` describes the data and parameters that a checkpoint must match. `sizes` are those of the data sets.
    """

    job: TrainingJob
    data: Binned
    base: Base
    parts: BoostingParts[Rows, TrainScores, Target]
    state: State[Rows, TrainScores]
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
        after_tree: list[Callable[[State[Rows, TrainScores]], None]] = [monitor]
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
        options.check()
        if options.folder is None:
            return None
        checkpointer = Checkpointer(options, self.data, self.job.params, self.fingerprint())
        if options.resume:
            self.state = checkpointer.load(self.state)
            if self.parts.biases is not None:
                self.parts.biases.resume(self.state)
            self.state.stopped = monitor.should_stop(self.state)
        return checkpointer

    def _kept_trees(self, monitor: Monitor) -> list[Tree]:
        return self.state.trees[: monitor.facts(self.state)["best_iteration"]]

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
            **({"steps": state.steps} if traits_of(params.step_rule).varies else {}),
            **learned_biases(state.biases, len(trees)),
        )
        return base.join(to_forest(trees, self.data.binning, self.data.feature_names, info))


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
    job: TrainingJob, train_set: Binned, base: Base, backend: Backend[Any, Any, Any], store: BinStore | None
) -> Iterator[ValidationSet]:
    """The validation sets with their initial scores."""
    for name, data in named_sets(job.valid).items():
        names, categories = train_set.feature_names, train_set.categories
        given = open_data(data, missing=job.missing, wanted=names, categories=categories)
        binned = bin_like(given, train_set, store=store)
        report_data(job.callbacks, name, binned)
        start = base.scores(name, given, binned)
        restart_scores = start[:1].copy() if base.is_constant else start  # a constant needs no memory
        yield backend.validation_set(name, binned, start, restart_scores)
