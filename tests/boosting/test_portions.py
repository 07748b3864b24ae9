"""Portions of the lists, each on its own, select the rows and compute the gradients of the whole."""

from __future__ import annotations

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.training_rows import WHOLE, Portion, TrainingLists
from ranksieve.boosting.tree import to_trees
from ranksieve.data.binned import Binned
from ranksieve.evaluation.metrics import metric_of
from ranksieve.params import Params
from ranksieve.rules import SELECTIONS


def targets_of(binned: Binned, trees: list, params: Params, portion: Portion) -> list:
    """What the trees of some steps are fitted to, each after a selection of its own."""
    scores = Scores(binned)
    lists = TrainingLists(binned.lists, params, metric_of(params), 1, portion, 4.0)
    rows, found = lists.all_rows, []
    for step, tree in enumerate(trees, start=1):
        scores.add(tree)
        rng = np.random.default_rng([params.seed, step])
        rows = lists.select_rows(rows, scores, step, rng)
        found.append(lists.gradients(rows, scores, step, rng))
    return found


@pytest.mark.parametrize("selection", sorted({*SELECTIONS} - {"goss"}))  # goss compares documents of all queries
@pytest.mark.parametrize("others", [{}, {"row_fraction": 0.7, "objective": "err"}], ids=["plain", "thinned"])
def test_portions_together_make_the_targets_of_the_whole(data, binned, selection, others):
    params = Params(selection=selection, negatives=0.2, min_negatives=1, seed=5, **others)
    trees = to_trees(rs.train(binned, trees=3, leaves=5, max_bins=32, algo="lambdamart"), binned.binning)
    whole = targets_of(binned, trees, params, WHOLE)
    n_queries, together = 0, []
    for queries in np.split(np.arange(data.n_queries), [5]):
        lists, rows = data.lists.take_queries(queries)
        part = Binned(binned.bins[rows], lists, binned.binning, binned.info)
        portion = Portion(n_queries, int(rows[0]), data.n_docs)
        together.append((rows, targets_of(part, trees, params, portion)))
        n_queries += len(queries)
    for step, target in enumerate(whole):
        parts = [(rows, targets[step]) for rows, targets in together]
        chosen = [rows if part.rows is None else rows[part.rows] for rows, part in parts]
        expected = np.arange(data.n_docs) if target.rows is None else target.rows
        np.testing.assert_array_equal(np.concatenate(chosen), expected)
        np.testing.assert_array_equal(np.concatenate([part.grad for _, part in parts]), target.grad)
        np.testing.assert_array_equal(np.concatenate([part.hess for _, part in parts]), target.hess)
