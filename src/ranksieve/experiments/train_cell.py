"""Training a cell: the rows of its sample, and its model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.boosting.callbacks import SelectionCounter
from ranksieve.boosting.job import TrainingJob
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.tree import to_trees
from ranksieve.data.binned import Binned
from ranksieve.data.dataset import Dataset
from ranksieve.evaluation.metrics import metric_of
from ranksieve.experiments.data_sets import BACKGROUND, DataPart, Loaded, load, load_values
from ranksieve.experiments.run_options import sample_rule
from ranksieve.experiments.spec import Cell
from ranksieve.forest.forest import Forest
from ranksieve.forest.model import Model
from ranksieve.models.load import load as load_model
from ranksieve.pruning.prune import prune, reweight
from ranksieve.rankers.inputs import measured
from ranksieve.rankers.interpolation import interpolate
from ranksieve.rankers.train import run

CELLS = "cells"  # the folder of their results
MODEL = "model.txt"


@dataclass(frozen=True)
class CellData:
    """The data set of a cell, and the training rows that its sample keeps."""

    cell: Cell
    loaded: Loaded
    rows: np.ndarray | None  # None: all

    @cached_property
    def train(self) -> DataPart:
        """The training lists, with the rows of the sample."""
        part = self.loaded.train
        if self.rows is None:
            return part
        first_stage = None if part.first_stage is None else part.first_stage[self.rows]
        return replace(part, binned=part.binned.take_rows(self.rows), first_stage=first_stage)

    def binned(self, name: str) -> Binned:
        """`train`, `valid` or `test` in bins."""
        return self.train.binned if name == "train" else getattr(self.loaded, name).binned

    def values(self, name: str) -> Dataset:
        """The same with feature values; `train` is the background data if the cell trains on it."""
        values = load_values(self.cell.data)
        if name == "train" and self.cell.background:
            return values[BACKGROUND]
        return values["train"].take_rows(self.rows) if name == "train" and self.rows is not None else values[name]


@dataclass(frozen=True)
class TrainOptions:
    """How a cell is trained; the model does not depend on it.

    The metric is followed on the parts named `sets`. Callbacks are called after each tree, or after each phase of
    forests that are pruned or made in rounds.
    """

    sets: tuple[str, ...] = ("valid",)
    threads: int = 0
    callbacks: tuple[Callable[[Any], None], ...] = ()
    counter: SelectionCounter | None = None


def load_cell(cell: Cell, out: Path) -> CellData:
    """Load a cell's data and draw its sample."""
    loaded = load(cell.data, cell.params.bin_limits)
    return CellData(cell, loaded, _sampled_rows(cell, out, loaded.train))


def _sampled_rows(cell: Cell, out: Path, part: DataPart) -> np.ndarray | None:
    """The rows of the training lists that the cell's sample keeps; None for all."""
    sample, lists = cell.sample, part.binned.lists
    if sample is None:
        return None
    values = part.first_stage if part.first_stage is not None else np.empty(0)
    if sample["how"] == "by-model":
        assert cell.model_cell is not None
        model = read_model(out, cell.model_cell)
        values = (
            scores_on_bins(model, part.binned)
            if cell.model_cell.on_bins
            else scores_on_values(model, load_values(cell.data)["train"])
        )
    return sample_rule(sample).rows(lists, values, cell.seed)


def scores_on_bins(forest: Forest, data: Binned) -> np.ndarray:
    """Scores of binned documents under a forest grown on the same bins, bit for bit those of its `predict`."""
    scores = Scores(data)
    for tree in to_trees(forest, data.binning):
        scores.add(tree)
    return scores.all()


def scores_on_values(model: Model, data: Dataset) -> np.ndarray:
    """Scores of documents in the order of their lists."""
    return data.lists.ordered(model.predict(data))


def read_model(out: Path, cell: Cell) -> Any:
    """The model of a finished cell."""
    return load_model(out / CELLS / cell.key / MODEL)


def train_cell(cell: Cell, out: Path, data: CellData, options: TrainOptions) -> Any:
    """The model of the cell's parameters."""
    threads = options.threads or cell.params.threads
    if cell.prune is not None:
        return _finished(_pruned(cell, out, data, replace(options, threads=threads)), "pruning")
    if cell.interpolated:
        models = [read_model(out, one) for one in cell.interpolated]
        return interpolated(cell, models, {name: data.values(name) for name in options.sets})
    read = data.binned if cell.on_bins else data.values
    job = TrainingJob(
        read("train"),
        cell.params.replace(threads=threads).load_files(),
        valid={name: read(name) for name in options.sets},
        init=None if cell.init is None else read_model(out, cell.init),
        callbacks=options.callbacks,
        counter=options.counter,
    )
    model = run(job)
    return _finished(model) if cell.on_bins else model


def _finished(forest: Forest, story: str | None = None) -> Forest:
    """A forest, unless Ctrl-C ended its training: then it is not what the cell describes."""
    if (forest.info if story is None else forest.info[story]).get("interrupted"):
        raise KeyboardInterrupt
    return forest


def interpolated(cell: Cell, models: Sequence[Any], sets: Mapping[str, Dataset]) -> Any:
    """The models' sum with the weights that are best on validation lists, and its metric on all sets."""
    model = interpolate(models, sets["valid"], metric_of(cell.params)).model(models)
    return replace(model, info={**model.info, **measured(cell.params, model, list(sets.items()))})


def _pruned(cell: Cell, out: Path, data: CellData, options: TrainOptions) -> Forest:
    """Prune the first trees of another cell's forest. Only re-weight them if `rate` is less than one tree."""
    assert cell.prune is not None and cell.model_cell is not None
    forest: Forest = read_model(out, cell.model_cell)
    forest = forest.first(cell.prune.get("first", forest.n_trees))
    common: dict[str, Any] = {"valid": data.binned("valid"), "metric": metric_of(cell.params)}
    common |= {"threads": options.threads, "callbacks": options.callbacks, "judge_on": cell.prune["judge-on"]}
    if int(cell.params.rate * forest.n_trees + 1e-9) == 0:
        return reweight(forest, data.binned("train"), **common)
    common |= {"rate": cell.params.rate, "strategy": cell.params.strategy, **cell.strategy_params}
    # every strategy as it is, so that they can be compared
    return prune(forest, data.binned("train"), seed=cell.seed, fallback=False, **common)
