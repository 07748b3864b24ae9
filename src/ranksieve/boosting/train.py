"""`train`: from data and parameters to a forest."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve import __version__
from ranksieve.boosting.callbacks import Monitor, Record, Watched
from ranksieve.boosting.checkpoint import FILE, fingerprint, load_checkpoint, save_checkpoint
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.loop import Sample, Slots, State, boost
from ranksieve.boosting.objectives import OBJECTIVES, Objective, fit_labels
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.selections import SELECTIONS, Selection
from ranksieve.boosting.tree import to_forest
from ranksieve.data.binned import Binned, bin_data
from ranksieve.data.binning import Binning
from ranksieve.data.dataset import check_feature_names
from ranksieve.data.read import MISSING
from ranksieve.errors import DataError, ParameterError
from ranksieve.evaluation.metrics import parse_metric
from ranksieve.forest.forest import Forest
from ranksieve.forest.scorer import using_threads
from ranksieve.params import ALGORITHMS, Params


def train(
    data: Any,
    *,
    valid: Any = None,
    callbacks: Sequence[Callable[[Record], None]] = (),
    selection: Selection | None = None,
    objective: Objective | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 50,
    checkpoint_minutes: float = 5.0,
    resume: bool = False,
    binning: Binning | None = None,
    missing: str = "zero",
    **params: Any,
) -> Forest:
    """Learn a forest that ranks.

    Parameters
    ----------
    data : Dataset, Binned or file name
        The training lists. A file is streamed into bins; its float matrix is never held whole.
    valid : the same, a list of them, or a mapping of names, optional
        Sets to measure after each tree. The first decides when to stop; the forest returned ends at its best tree.
    callbacks : functions of a `Record`
        Called after each tree.
    selection, objective : functions, optional
        Your own rule for who teaches, `(view) -> rows`, and for what the ranking wants of them,
        `(labels, scores, offsets) -> (gradients, second derivatives)`, in place of the algorithm's.
    checkpoint : folder, optional
        Where the state is kept every `checkpoint_every` trees and every `checkpoint_minutes` minutes; `resume=True`
        goes on from there to the same model bit for bit.
    binning : Binning, optional
        Thresholds to use in place of learned ones.
    missing : "zero" or "nan"
        What a feature absent from a LETOR line means.
    **params
        Everything in `Params`: algo, trees, leaves, learning_rate, negatives, …

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.cubic(20)
    >>> model = rs.train(data, algo="selgb", negatives=0.2, trees=5, leaves=4)
    >>> model.n_trees
    5
    """
    settings = Params.from_mapping(params)
    if missing not in MISSING:
        raise ParameterError(f"missing is {missing!r}; expected one of {', '.join(MISSING)}")
    threads = settings.threads or os.cpu_count() or 1
    with using_threads(threads) as threads:
        train_set = bin_data(data, max_bins=settings.max_bins, binning=binning, missing=missing)
        _check_training_set(train_set, settings, objective)
        valid_sets = list(_valid_sets(valid, train_set, missing))
        slots = _slots(train_set, settings, selection, objective, threads)
        watched = [Watched(name, binned, Scores(binned, start=slots.start)) for name, binned in valid_sets]
        state = State([], Scores(train_set, start=slots.start), Sample.of(train_set.lists, None))
        metric = parse_metric(settings.metric)
        monitor = Monitor(watched, metric, settings.trees, settings.early_stopping, callbacks)
        after_tree: list[Callable[[State], None]] = [monitor]
        if checkpoint is not None:
            folder = _folder(checkpoint)
            if not resume and (folder / FILE).exists():
                raise ParameterError(
                    f"{folder} holds a checkpoint; resume=True (--resume) goes on from it; to start anew, delete it or "
                    "choose another folder"
                )
            mark = fingerprint(train_set, [(w.name, w.data) for w in watched], settings, selection, objective)
            if resume:
                state = load_checkpoint(folder, state, train_set, settings, mark)
                state.stopped = monitor.too_late(state)
            after_tree.append(_Checkpointer(folder, train_set, settings, mark, checkpoint_every, checkpoint_minutes))
        elif resume:
            raise ParameterError("resume needs a checkpoint folder; give checkpoint=... (--checkpoint DIR)")
        boost(train_set, slots, state, n_trees=settings.trees, seed=settings.seed, after_tree=after_tree)
        return _finish(state, train_set, settings, monitor, slots.start)


def _slots(
    data: Binned, params: Params, selection: Selection | None, objective: Objective | None, threads: int
) -> Slots:
    selection_name, objective_name = ALGORITHMS[params.algo]
    chosen = OBJECTIVES[objective_name](params) if objective is None else _on_copies(objective)
    start = 0.0
    if objective is None and objective_name == "squared":
        start = float(np.average(data.lists.labels.astype(np.float64), weights=data.lists.weights))
    return Slots(
        select=selection or SELECTIONS[selection_name](params),
        every=params.every,
        objective=chosen,
        first_objective=fit_labels if params.first_tree == "labels" and objective_name == "lambda" else chosen,
        grower=Grower(data, params, threads=threads),
        learning_rate=params.learning_rate,
        start=start,
    )


def _on_copies(objective: Objective) -> Objective:
    """A user's objective, which may write into the scores it gets."""
    return lambda labels, scores, offsets: objective(labels, scores.copy(), offsets)


def _finish(state: State, data: Binned, params: Params, monitor: Monitor, start: float) -> Forest:
    best = monitor.best_step or len(state.trees)
    trees = state.trees[: best if params.early_stopping else len(state.trees)]
    if trees and start:
        trees[0].leaf_values[:] += start
    settings = params.as_dict()
    settings.pop("threads")  # the model does not depend on it
    info = {
        "params": settings,
        "history": state.history,
        "seconds": state.seconds,
        "best_iteration": best,
        "best_score": monitor.best_value,
        "ranksieve": __version__,
        "first_stage": data.first_stage,
        "missing": "nan" if np.isnan(data.absent) else "zero",
    }
    return to_forest(trees, data.binning, data.feature_names, info)


class _Checkpointer:
    """Saves the state every so many trees or minutes, and at the end."""

    def __init__(
        self, folder: Path, data: Binned, params: Params, mark: dict[str, Any], every: int, minutes: float
    ) -> None:
        self._folder, self._data, self._params, self._mark = folder, data, params, mark
        self._every, self._seconds = every, 60.0 * minutes
        self._saved = time.monotonic()

    def __call__(self, state: State) -> None:
        n_trees = len(state.trees)
        late = time.monotonic() - self._saved > self._seconds
        if n_trees % self._every == 0 or late or state.stopped or n_trees == self._params.trees:
            save_checkpoint(self._folder, state, self._data, self._mark)
            self._saved = time.monotonic()


def _check_training_set(data: Binned, params: Params, objective: Objective | None) -> None:
    labels, offsets = data.lists.labels, data.lists.offsets
    if labels.min() == labels.max():
        raise DataError(f"{data.source}: every label is {labels[0]:g}; learning needs documents of at least two grades")
    highest, lowest = (ufunc.reduceat(labels, offsets[:-1]) for ufunc in (np.maximum, np.minimum))
    if objective is None and ALGORITHMS[params.algo][1] == "lambda" and (highest == lowest).all():
        raise DataError(
            f"{data.source}: no query has documents of two grades, so there is no pair to learn from; "
            "check the query ids, or use algo=mart"
        )


def _valid_sets(valid: Any, train_set: Binned, missing: str) -> Iterator[tuple[str, Binned]]:
    if valid is None:
        named: Mapping[str, Any] = {}
    elif isinstance(valid, Mapping):
        named = valid
    elif isinstance(valid, (list, tuple)):
        named = {f"valid_{i}": data for i, data in enumerate(valid)}
    else:
        named = {"valid": valid}
    for name, data in named.items():
        binned = bin_data(data, binning=train_set.binning, missing=missing)
        check_feature_names(binned.feature_names, train_set.feature_names, binned.source)
        yield name, binned


def _folder(path: str | os.PathLike[str]) -> Path:
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot be made ({error.strerror}); choose another checkpoint folder") from error
    return folder
