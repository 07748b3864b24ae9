"""`train`: from data and parameters to a forest."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import numpy as np

from ranksieve import __version__
from ranksieve.boosting.callbacks import Monitor, Record, Tally, Watch, Watched, named_sets
from ranksieve.boosting.checkpoint import Checkpointer, Keep, fingerprint, finished
from ranksieve.boosting.initial_scores import TRAIN, Base, make_base
from ranksieve.boosting.lessons import Sample
from ranksieve.boosting.loop import Slots, State, boost
from ranksieve.boosting.objectives import Objective
from ranksieve.boosting.registry import named_selection
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.selections import Selection
from ranksieve.boosting.slots import make_slots, settle
from ranksieve.boosting.steps import named_step
from ranksieve.boosting.tree import to_forest
from ranksieve.data.binned import Binned, bin_data
from ranksieve.data.binning import Binning
from ranksieve.data.features import check_feature_names
from ranksieve.data.lists import Lists
from ranksieve.data.read import open_data
from ranksieve.errors import ClusterError, DataError, InterruptedTraining, ParameterError
from ranksieve.evaluation.metrics import metric_of
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.model_files import load_forest
from ranksieve.forest.sum import Sum
from ranksieve.params import ALGORITHMS, Params
from ranksieve.threads import using_threads


@overload
def train(data: Any, *, init: None = None, **options: Any) -> Forest: ...


@overload
def train(data: Any, *, init: Any, **options: Any) -> Any: ...


def train(
    data: Any,
    *,
    valid: Any = None,
    init: Any = None,
    callbacks: Sequence[Callable[[Record], None]] = (),
    selection: Selection | str | None = None,
    objective: Objective | str | None = None,
    tally: Tally | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 50,
    checkpoint_minutes: float = 5.0,
    resume: bool = False,
    binning: Binning | None = None,
    read_model: Callable[..., Any] = load_forest,
    missing: str = "zero",
    **params: Any,
) -> Forest | Sum:
    """Learn a forest that ranks.

    Parameters
    ----------
    data : Dataset, Binned or file name
        The training lists. A file is streamed into bins; its float matrix is never held whole.
    valid : the same, a list of them, or a mapping of names, optional
        Sets to measure after each tree. The first decides when to stop; the forest returned ends at its best tree.
    init : model file, feature name, fitted ranker, or array of scores, optional
        What to start from in place of zero scores: the trees then mend its mistakes (LambdaSMART). A model is a file,
        a `Forest` or anything with `predict(X)`; the result scores as base plus new trees, in one forest where the
        base is one, else as a `Sum`. Scores are an array for the training set, or a mapping with one array for
        `"train"` and for each validation set; the forest returned then holds the new trees alone.
    callbacks : functions of a `Record`
        Called after each tree.
    selection : name or function, optional
        Who teaches a tree, in place of the algorithm's choice: a name (see `Params.selection`), or your own rule
        `(view) -> rows`.
    objective : name or function, optional
        What the ranking wants of them: the metric whose λ-gradients are fitted (see `Params.objective`), or your own
        rule `(labels, scores, offsets) -> (gradients, second derivatives)`.
    tally : Tally, optional
        Counts how many trees each document taught.
    checkpoint : folder, optional
        Where the state is kept every `checkpoint_every` trees and every `checkpoint_minutes` minutes; `resume=True`
        goes on from there to the same model bit for bit.
    binning : Binning, optional
        Thresholds to use in place of learned ones.
    read_model : function
        Reads the model file that `init` names.
    missing : "zero" or "nan"
        What a feature absent from a LETOR line means.
    **params
        Everything in `Params`: algo, trees, leaves, learning_rate, negatives, …

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> model = rs.train(data, algo="selgb", negatives=0.2, trees=5, leaves=4)
    >>> model.n_trees
    5
    """
    settings, own_rule, own_objective = settle(params, selection, objective)
    if settings.algo not in ALGORITHMS:
        raise ParameterError(f"--algo={settings.algo} makes no boosted forest; expected one of {', '.join(ALGORITHMS)}")
    rule = own_rule or named_selection(settings)
    keep = Keep(checkpoint, checkpoint_every, checkpoint_minutes, resume)
    threads = settings.threads or os.cpu_count() or 1
    with using_threads(threads) as threads:
        given = open_data(data, missing=missing)
        train_set = bin_data(given, max_bins=settings.max_bins, binning=binning)
        check_grades(train_set.lists, train_set.source, pairs=own_objective is None and _has_pairs(settings))
        base = make_base(init, _constant(train_set, settings, own_objective), train_set, given, read_model)
        start = Scores(train_set, start=base.scores(TRAIN, given, train_set))
        state = State([], start, Sample.of(train_set.lists, None))
        watched = list(_watched(valid, train_set, base, missing))
        step = named_step(settings, (train_set, start), [(w.data, w.scores) for w in watched])
        slots = make_slots(train_set, settings, threads, base, step, rule, own_objective)

        def mark() -> dict[str, Any]:
            sets = [(w.name, w.data) for w in watched]
            starts = [start, *(w.scores for w in watched)]
            return fingerprint(train_set, sets, starts, settings, own_rule, own_objective)

        others: list[Callable[[State], None]] = []
        if tally is not None:
            tally.begin(train_set.lists, resume=resume, row_fraction=settings.row_fraction)
            others.append(tally)
        return watch_and_boost(slots, state, train_set, base, settings, watched, callbacks, keep, mark, others)


def watch_and_boost(
    slots: Slots,
    state: State,
    data: Binned,
    base: Base,
    params: Params,
    watched: Sequence[Watch],
    callbacks: Sequence[Callable[[Record], None]],
    keep: Keep,
    mark: Callable[[], dict[str, Any]],
    others: Sequence[Callable[[State], None]] = (),
) -> Forest | Sum:
    """Boost with everything that happens after a tree; `mark` tells what a checkpoint must have been made with."""
    monitor = Monitor(watched, metric_of(params), params.trees, params.early_stopping, callbacks)
    if base.ranks:
        monitor.measure_base(state)
    after_tree: list[Callable[[State], None]] = [monitor, *others]
    keeper = None
    if keep.folder is not None:
        keeper = Checkpointer(keep.folder, data, params, mark(), keep.every, keep.minutes)
        if keep.resume:
            state = keeper.load(state)
            state.stopped = monitor.too_late(state)
        else:
            keeper.refuse_to_overwrite()
        after_tree.append(keeper)
    elif keep.resume:
        raise ParameterError("--resume needs a checkpoint folder; give --checkpoint")
    try:
        boost(slots, state, n_trees=params.trees, seed=params.seed, after_tree=after_tree)
    except (ClusterError, KeyboardInterrupt) as error:
        state = finished(state)  # the trees are here, whatever was lost
        if keeper is not None and state.trees:
            keeper.save(state)
        if isinstance(error, KeyboardInterrupt) and state.trees:
            raise InterruptedTraining(base.join(_forest(state, data, params, monitor, base))) from None
        raise
    return base.join(_forest(state, data, params, monitor, base))


def _constant(data: Binned, params: Params, objective: Objective | None) -> float:
    return constant_of(*label_sums(data.lists)) if starts_at_mean(params, objective) else 0.0


def starts_at_mean(params: Params, objective: Objective | None) -> bool:
    """Regression starts at the best constant; a ranking does not care."""
    return objective is None and ALGORITHMS[params.algo][1] == "squared"


def label_sums(lists: Lists) -> tuple[np.ndarray, np.ndarray]:
    """The weighted sum of each query's labels, and its sum of weights."""
    weights = np.ones(lists.n_docs) if lists.weights is None else lists.weights
    starts = lists.offsets[:-1]
    return np.add.reduceat(lists.labels * weights, starts), np.add.reduceat(weights, starts)


def constant_of(sums: np.ndarray, weights: np.ndarray) -> float:
    """The mean label; the sums come per query, so that it is the same number however queries are spread."""
    return float(sums.sum() / weights.sum())


def _forest(state: State, data: Binned, params: Params, monitor: Monitor, base: Base) -> Forest:
    """The new trees, up to the best of them where that was watched for."""
    best = len(state.trees) if monitor.best_step is None else monitor.best_step
    trees = state.trees[: best if params.early_stopping else len(state.trees)]
    settings = params.as_dict()
    settings.pop("threads")  # the model does not depend on it
    info = {
        "params": settings,
        "history": state.history,
        "seconds": state.seconds,
        "best_iteration": best,
        "best_score": monitor.best_value,
        **({"init": {**base.describe(), "score": monitor.base_value}} if base.ranks else {}),
        **({"steps": state.steps} if params.step == "optimal" else {}),
        "ranksieve": __version__,
        **data.info.for_model(),
    }
    return to_forest(trees, data.binning, data.feature_names, info)


def _has_pairs(params: Params) -> bool:
    return ALGORITHMS[params.algo][1] == "lambda"


def check_grades(lists: Lists, source: str, *, pairs: bool) -> None:
    """Refuse labels from which nothing can be learned; `pairs` of different grades must stand within a query."""
    labels = lists.labels
    if labels.min() == labels.max():
        raise DataError(f"{source}: every label is {labels[0]:g}; learning needs documents of at least two grades")
    highest, lowest = (ufunc.reduceat(labels, lists.offsets[:-1]) for ufunc in (np.maximum, np.minimum))
    if pairs and (highest == lowest).all():
        raise DataError(
            f"{source}: no query has documents of two grades, so there is no pair to learn from; "
            "check the query ids, or use --algo=mart"
        )


def _watched(valid: Any, train_set: Binned, base: Base, missing: str) -> Iterator[Watched]:
    """The validation sets, with the scores they start from."""
    for name, data in named_sets(valid).items():
        given = open_data(data, missing=missing)
        binned = bin_data(given, binning=train_set.binning)
        check_feature_names(binned.feature_names, train_set.feature_names, binned.source)
        yield Watched(name, binned, Scores(binned, start=base.scores(name, given, binned)))
