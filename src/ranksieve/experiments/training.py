"""What a cell learns from, and its training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.boosting.callbacks import Record, Tally
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.tree import to_trees
from ranksieve.data.binned import Binned
from ranksieve.data.sampling import best_rows, truncated_rows, undersampled_rows
from ranksieve.experiments.data import Part
from ranksieve.experiments.spec import Cell
from ranksieve.forest.forest import Forest
from ranksieve.forest.lightgbm_text import read_lightgbm
from ranksieve.rankers.train import train

CELLS = "cells"  # the folder of their results


def taught_part(cell: Cell, out: Path, part: Part) -> Part:
    """The training lists, or the sample of them that the cell asks for."""
    sample, lists = cell.sample, part.binned.lists
    if sample is None:
        return part
    values = part.first_stage if part.first_stage is not None else np.empty(0)
    if sample["how"] == "truncate":
        rows = truncated_rows(lists, values, sample["k"], positives=sample.get("positives", "keep"))
    elif sample["how"] == "undersample":
        rows = undersampled_rows(
            lists,
            values,
            n=sample.get("n"),
            share=sample.get("share"),
            order=sample.get("order", "random"),
            seed=cell.seed,
        )
    else:
        assert cell.teacher is not None
        teacher = read_lightgbm(out / CELLS / cell.teacher.key / "model.txt")
        rows = best_rows(lists, scores_of(teacher, part.binned), sample["share"])
    first_stage = None if part.first_stage is None else part.first_stage[rows]
    return replace(part, binned=part.binned.take_rows(rows), first_stage=first_stage)


def scores_of(forest: Forest, data: Binned) -> np.ndarray:
    """Scores of binned documents under a forest grown on the same bins, bit for bit those of its `predict`."""
    scores = Scores(data)
    for tree in to_trees(forest, data.binning):
        scores.add(tree)
    return scores.all()


def trained(
    cell: Cell,
    taught: Part,
    valid: Any,
    threads: int,
    callbacks: Sequence[Callable[[Record], None]] = (),
    tally: Tally | None = None,
) -> Forest:
    """The forest of the cell's parameters; callbacks hear of single trees, so not of forests made in rounds."""
    settings = {**cell.params.as_dict(), "threads": threads or cell.params.threads}
    heard = () if cell.in_rounds else callbacks
    forest: Forest = train(taught.binned, valid=valid, callbacks=heard, tally=tally, **settings)
    if forest.info.get("interrupted"):  # X-CLEaVER returns what it has, which is not what the cell asks for
        raise KeyboardInterrupt
    return forest
