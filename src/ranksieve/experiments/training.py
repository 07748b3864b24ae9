"""What a cell learns from, and its training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.boosting.callbacks import Tally
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.tree import to_trees
from ranksieve.data.binned import Binned
from ranksieve.data.dataset import Dataset
from ranksieve.data.sampling import best_rows, truncated_rows, undersampled_rows
from ranksieve.evaluation.evaluate import evaluate
from ranksieve.evaluation.metrics import metric_of, parse_metric
from ranksieve.experiments.data import BACKGROUND, Loaded, Part, load_values
from ranksieve.experiments.spec import Cell
from ranksieve.forest.forest import Forest
from ranksieve.forest.model import Model
from ranksieve.pruning.prune import prune, reweight
from ranksieve.rankers.interpolation import interpolate
from ranksieve.rankers.load import load as load_model
from ranksieve.rankers.train import train

CELLS = "cells"  # the folder of their results
MODEL = "model.txt"


def taught_rows(cell: Cell, out: Path, part: Part) -> np.ndarray | None:
    """The rows of the training lists that the cell's sample keeps; None for all."""
    sample, lists = cell.sample, part.binned.lists
    if sample is None:
        return None
    values = part.first_stage if part.first_stage is not None else np.empty(0)
    if sample["how"] == "truncate":
        return truncated_rows(lists, values, sample["k"], positives=sample.get("positives", "keep"))
    if sample["how"] == "undersample":
        return undersampled_rows(
            lists,
            values,
            n=sample.get("n"),
            share=sample.get("share"),
            order=sample.get("order", "random"),
            seed=cell.seed,
        )
    assert cell.teacher is not None
    teacher = read_model(out, cell.teacher)
    if cell.teacher.on_bins:
        assert isinstance(teacher, Forest)
        scores = scores_of(teacher, part.binned)
    else:
        scores = scores_by_values(teacher, load_values(cell.data)["train"])
    return best_rows(lists, scores, sample["share"])


def taught_part(part: Part, rows: np.ndarray | None) -> Part:
    """The training lists with these rows alone."""
    if rows is None:
        return part
    first_stage = None if part.first_stage is None else part.first_stage[rows]
    return replace(part, binned=part.binned.take_rows(rows), first_stage=first_stage)


def scores_of(forest: Forest, data: Binned) -> np.ndarray:
    """Scores of binned documents under a forest grown on the same bins, bit for bit those of its `predict`."""
    scores = Scores(data)
    for tree in to_trees(forest, data.binning):
        scores.add(tree)
    return scores.all()


def scores_by_values(model: Model, data: Dataset) -> np.ndarray:
    """Scores of documents in the order of their lists."""
    scores = model.predict(data)
    return scores if data.lists.order is None else scores[data.lists.order]


def read_model(out: Path, cell: Cell) -> Any:
    """The model of a finished cell."""
    return load_model(out / CELLS / cell.key / MODEL)


def taught_values(cell: Cell, rows: np.ndarray | None) -> Dataset:
    """The lists with feature values that a cell learns from."""
    values = load_values(cell.data)
    if cell.background:
        return values[BACKGROUND]
    return values["train"] if rows is None else values["train"].take_rows(rows)


def interpolated(cell: Cell, models: Sequence[Any], sets: Mapping[str, Dataset]) -> Any:
    """The models' sum with the weights that are best on validation lists, and what it is worth on all sets."""
    model = interpolate(models, sets["valid"], cell.params.metric).model(models)
    metric = str(parse_metric(cell.params.metric))
    history = {
        name: {metric: [evaluate(model, data, metric, weighted=data.lists.weights is not None).mean()]}
        for name, data in sets.items()
    }
    return replace(model, info={**model.info, "history": history, "best_score": history["valid"][metric][0]})


def trained(
    cell: Cell,
    out: Path,
    loaded: Loaded,
    taught: Part,
    rows: np.ndarray | None,
    valid: Sequence[str],
    threads: int,
    callbacks: Sequence[Callable[[Any], None]] = (),
    tally: Tally | None = None,
) -> Any:
    """The model of the cell's parameters, watched on the parts named `valid`; `train` are the lists that taught it.

    `taught` are the training lists with `rows` alone, which rankers that see feature values take from those. Callbacks
    hear of trees, or of phases where a forest is made whole.
    """
    settings = {**cell.params.as_dict(), "threads": threads or cell.params.threads}
    if not cell.on_bins:
        values = load_values(cell.data)
        sets = {name: taught_values(cell, rows) if name == "train" else values[name] for name in valid}
        if cell.blended:
            return interpolated(cell, [read_model(out, one) for one in cell.blended], sets)
        init = None if cell.init is None else read_model(out, cell.init)
        return train(taught_values(cell, rows), valid=sets, init=init, callbacks=callbacks, tally=tally, **settings)
    binned = {name: taught.binned if name == "train" else getattr(loaded, name).binned for name in valid}
    if cell.prune is not None:
        forest = _pruned(cell, out, taught.binned, binned["valid"], settings["threads"], callbacks)
    else:
        forest = train(taught.binned, valid=binned, callbacks=callbacks, tally=tally, **settings)
    story = forest.info["pruning"] if cell.prune is not None else forest.info
    if story.get("interrupted"):  # what there is then is not what the cell asks for
        raise KeyboardInterrupt
    return forest


def _pruned(
    cell: Cell, out: Path, data: Binned, valid: Binned, threads: int, callbacks: Sequence[Callable[[Any], None]]
) -> Forest:
    """The teacher's first trees without the share `rate` of them, re-weighted; less than one tree is none."""
    assert cell.prune is not None and cell.teacher is not None
    forest: Forest = read_model(out, cell.teacher)
    forest = forest.first(cell.prune.get("first", forest.n_trees))
    common: dict[str, Any] = {
        "valid": valid, "metric": metric_of(cell.params), "threads": threads, "callbacks": callbacks,
    }  # fmt: skip
    if int(cell.params.rate * forest.n_trees + 1e-9) == 0:
        return reweight(forest, data, **common)
    return prune(forest, data, rate=cell.params.rate, strategy=cell.params.strategy, seed=cell.seed, **common)
