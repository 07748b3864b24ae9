"""Input of the rankers that use feature values: data sets in memory, and standardised features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve.boosting.job import TrainingJob, named_sets
from ranksieve.data.dataset import Dataset
from ranksieve.data.lists import Lists
from ranksieve.data.read import read, read_like
from ranksieve.errors import DataError
from ranksieve.evaluation.evaluate import evaluate
from ranksieve.evaluation.metrics import metric_of
from ranksieve.forest.model import Model
from ranksieve.params import Params

BLOCK_ROWS = 65_536  # rows of whole queries that are worked on together


def training_set(job: TrainingJob) -> Dataset:
    """The training set in memory."""
    return read(job.data, missing=job.missing)


def validation_sets(job: TrainingJob, train_set: Dataset) -> list[tuple[str, Dataset]]:
    """The validation sets by name, in memory, with the features of the training set."""
    sets = named_sets(job.valid)
    return [(name, read_like(given, train_set, missing=job.missing)) for name, given in sets.items()]


def measured(params: Params, model: Model, valid_sets: Sequence[tuple[str, Dataset]]) -> dict[str, Any]:
    """The metric of a finished model on the validation sets, for its `info`."""
    metric = metric_of(params)
    history = {
        name: {str(metric): [evaluate(model, data, metric, weighted=data.lists.weights is not None).mean()]}
        for name, data in valid_sets
    }
    first = next(iter(history.values()), None)
    return {"history": history, "best_score": None if first is None else first[str(metric)][0]}


def query_blocks(lists: Lists) -> Iterator[tuple[int, int]]:
    """Ranges of whole queries that hold about `BLOCK_ROWS` documents, at least one query each."""
    first = 0
    while first < lists.n_queries:
        last = int(np.searchsorted(lists.offsets, lists.offsets[first] + BLOCK_ROWS, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


@dataclass(frozen=True)
class Standard:
    """Means and standard deviations of the features, missing values left out; 0 where a feature does not vary."""

    means: np.ndarray
    scales: np.ndarray

    @classmethod
    def of(cls, data: Dataset) -> Standard:
        """Taken block by block in float64, so that neither a copy of the data nor a large sum of squares is made."""
        counts, means, squares = (np.zeros(data.n_features) for _ in range(3))
        row = 0
        for block in data.blocks():
            _check_finite(block, row, data.source)
            row += len(block)
            known = ~np.isnan(block)
            values = np.where(known, block.astype(np.float64), 0.0)
            n = known.sum(axis=0).astype(np.float64)
            here = values.sum(axis=0) / np.maximum(n, 1)
            away = here - means
            total = counts + n
            share = n / np.maximum(total, 1)
            squares += np.square((values - here) * known).sum(axis=0) + away**2 * counts * share
            means += away * share
            counts = total
        deviations = np.sqrt(squares / np.maximum(counts, 1))
        varies = deviations > 1e-6 * np.abs(means)  # float32 values that are all but equal
        return cls(means, np.where(varies, deviations, 0.0))

    @cached_property
    def factors(self) -> np.ndarray:
        """What differences from the mean are multiplied with; 0 takes a feature that does not vary out of the game."""
        return np.divide(1.0, self.scales, out=np.zeros_like(self.scales), where=self.scales > 0)

    def apply(self, rows: np.ndarray) -> np.ndarray:
        """float32 rows as differences from the mean in standard deviations; 0 where a value is missing."""
        values = (rows - self.means) * self.factors
        np.copyto(values, 0.0, where=np.isnan(values))
        return values


def _check_finite(block: np.ndarray, row: int, source: str) -> None:
    bad = np.isinf(block)
    if bad.any():
        at, feature = np.argwhere(bad)[0]
        raise DataError(
            f"{source}: feature {feature + 1} of row {row + at + 1} is infinite; "
            "features must be finite, or NaN where missing"
        )
