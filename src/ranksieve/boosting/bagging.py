"""A bag: several forests on samples of the queries, grown in turn and averaged into one.

Tree s of the whole belongs to forest s % n. Its leaf values are divided by n, so the sum of all trees is the mean of
the forests. After each tree the mean is measured and saved, and early stopping uses its metric. Each forest is trained
on its own scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic

import numpy as np

from ranksieve.boosting.disk_scores import new_scores
from ranksieve.boosting.grower import KnownLeaves
from ranksieve.boosting.loop import Rows, StepSize, TrainedLists, TrainScores
from ranksieve.boosting.training_rows import TrainingLists, TrainingRows, TreeTarget
from ranksieve.boosting.tree import Tree
from ranksieve.data.binned import Binned
from ranksieve.dtypes import ROW
from ranksieve.errors import ParameterError, param
from ranksieve.params import Params
from ranksieve.rules import RANKERS, Selected, traits_of

SAMPLE = 2  # separates the random numbers of a forest's sample from those of its trees


def check_bag(params: Params, *, has_biases: bool) -> None:
    """Refuse what a bag cannot do."""
    if params.bag == 1:
        return
    alone = [
        (param("step", params.step), traits_of(params.step_rule).one_machine_only),
        (param("position_rate", params.position_rate), has_biases),
        (param("device", params.device), params.device == "cuda"),
        (param("algo", params.algo), traits_of(RANKERS.get(params.algo)).has_base),
    ]
    for name in (name for name, is_given in alone if is_given):
        raise ParameterError(param("bag", params.bag), " does not work with ", name, "; use one of the two")


@dataclass(frozen=True)
class BaggedRows:
    """The rows of each forest; `current` is the number of the forest whose tree comes next or was the last."""

    members: tuple[TrainingRows, ...]
    current: int = 0

    @property
    def rows(self) -> np.ndarray | None:
        return self.members[self.current].rows

    @property
    def offsets(self) -> np.ndarray:
        return self.members[self.current].offsets


class BaggedScores:
    """Scores of the training set under each forest of a bag."""

    def __init__(self, data: Binned, n: int, *, start: float | np.ndarray = 0.0) -> None:
        self.members = [new_scores(data, start=start) for _ in range(n)]

    @property
    def n_trees(self) -> int:
        return sum(member.n_trees for member in self.members)

    def add(self, tree: Tree, leaves: KnownLeaves | None = None) -> None:
        """Add a tree of the mean to its forest."""
        n = len(self.members)
        self.members[self.n_trees % n].add(replace(tree, leaf_values=n * tree.leaf_values), leaves)

    def all(self) -> np.ndarray:
        """The mean scores of every document."""
        return np.mean([member.all() for member in self.members], axis=0)


class BaggedLists:
    """The training lists of each forest of a bag: the same lists, of which a forest sees a sample."""

    def __init__(self, lists: TrainingLists) -> None:
        params = lists.params
        self.metric = lists.metric
        self._whole = lists
        self._members = [replace(lists, params=params.replace(seed=params.seed + n)) for n in range(params.bag)]
        self._samples = [self._sample(number) for number in range(params.bag)]

    def _sample(self, number: int) -> np.ndarray:
        """Which rows a forest sees. It depends on the numbers of queries in the whole training set."""
        params, portion, lists = self._whole.params, self._whole.portion, self._whole.lists
        draws = np.random.default_rng([params.seed, number, SAMPLE]).random(portion.first_query + lists.n_queries)
        draws[0] = 0.0  # a forest sees at least one query
        return np.repeat(draws[portion.first_query :] < params.bag_fraction, lists.sizes)

    @property
    def all_rows(self) -> BaggedRows:
        every = self._whole.all_rows
        return BaggedRows(tuple(self._in_sample(number, every) for number in range(len(self._members))))

    def _in_sample(self, number: int, rows: TrainingRows) -> TrainingRows:
        """Those rows that a forest sees."""
        seen, lists, more = self._samples[number], self._whole.lists, rows.selected
        if seen.all():
            return rows
        if rows.rows is None:
            return TrainingRows.of(lists, np.flatnonzero(seen).astype(ROW))
        kept = seen[rows.rows]
        if more is None:
            return TrainingRows.of(lists, rows.rows[kept])
        weights = None if more.weights is None else np.asarray(more.weights)[kept]
        return TrainingRows.of(lists, Selected(rows.rows[kept], weights, more.full_lists))

    def selects_at(self, step: int) -> bool:
        """Whether a selection is due at this step."""
        return self._whole.selects_at(step // len(self._members))

    def set_biases(self, biases: np.ndarray) -> None:
        for member in self._members:
            member.set_biases(biases)

    def select_rows(self, last: BaggedRows, scores: BaggedScores, step: int, rng: np.random.Generator) -> BaggedRows:
        """The rows for the tree of this step."""
        step, number = divmod(step, len(self._members))
        before = last.members[number]
        rows = self._members[number].select_rows(before, scores.members[number], step, rng)
        if rows is not before:
            rows = self._in_sample(number, rows)
        return BaggedRows((*last.members[:number], rows, *last.members[number + 1 :]), number)

    def gradients(self, rows: BaggedRows, scores: BaggedScores, step: int, rng: np.random.Generator) -> TreeTarget:
        """What the tree of this step is fitted to."""
        step, number = divmod(step, len(self._members))
        return self._members[number].gradients(rows.members[number], scores.members[number], step, rng)


@dataclass
class TrainingPart(Generic[Rows, TrainScores]):
    """Training lists of a part of the data, their scores, and the rows of the last tree."""

    lists: TrainedLists[Rows, TrainScores, TreeTarget]
    scores: TrainScores
    rows: Rows


def part_of(lists: TrainingLists, data: Binned, start: float | np.ndarray) -> TrainingPart[Any, Any]:
    """The part of these lists, of each forest where there is a bag."""
    if lists.params.bag == 1:
        return TrainingPart(lists, new_scores(data, start=start), lists.all_rows)
    bagged = BaggedLists(lists)
    return TrainingPart(bagged, BaggedScores(data, lists.params.bag, start=start), bagged.all_rows)


def bagged_step(step_size: StepSize, n: int) -> StepSize:
    """The step of a tree in the mean of n forests."""
    return lambda tree, leaves, state: step_size(tree, leaves, state) / n
