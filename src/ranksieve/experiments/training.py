"""What a cell learns from, and its training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.boosting.callbacks import Record, Tally
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.tree import to_trees
from ranksieve.data.binned import Binned
from ranksieve.data.dataset import Dataset
from ranksieve.data.sampling import best_rows, truncated_rows, undersampled_rows
from ranksieve.evaluation.evaluate import evaluate
from ranksieve.evaluation.metrics import parse_metric
from ranksieve.experiments.data import BACKGROUND, Loaded, Part, load_values
from ranksieve.experiments.spec import Cell
from ranksieve.forest.forest import Forest
from ranksieve.forest.model import Model
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
    history = {name: {metric: [evaluate(model, data, metric).mean()]} for name, data in sets.items()}
    return replace(model, info={**model.info, "history": history, "best_score": history["valid"][metric][0]})


def trained(
    cell: Cell,
    out: Path,
    loaded: Loaded,
    taught: Part,
    rows: np.ndarray | None,
    valid: Sequence[str],
    threads: int,
    callbacks: Sequence[Callable[[Record], None]] = (),
    tally: Tally | None = None,
) -> Any:
    """The model of the cell's parameters, watched on the parts named `valid`; forests in rounds tell of no tree.

    `taught` are the training lists with `rows` alone, which rankers that see feature values take from those.
    """
    settings = {**cell.params.as_dict(), "threads": threads or cell.params.threads}
    if not cell.on_bins:
        values = load_values(cell.data)
        sets = {name: values[name] for name in valid}
        if cell.blended:
            return interpolated(cell, [read_model(out, one) for one in cell.blended], sets)
        init = None if cell.init is None else read_model(out, cell.init)
        return train(taught_values(cell, rows), valid=sets, init=init, callbacks=callbacks, **settings)
    heard = () if cell.in_rounds else callbacks
    binned = {name: getattr(loaded, name).binned for name in valid}
    forest: Forest = train(taught.binned, valid=binned, callbacks=heard, tally=tally, **settings)
    if forest.info.get("interrupted"):  # X-CLEaVER returns what it has, which is not what the cell asks for
        raise KeyboardInterrupt
    return forest
