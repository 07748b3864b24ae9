"""Portions of the lists, each on its own, make the lessons of the whole."""

from __future__ import annotations

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.boosting.initial_scores import Constant
from ranksieve.boosting.lessons import Lessons, Sample
from ranksieve.boosting.registry import SELECTIONS
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.selections import WHOLE, Portion
from ranksieve.boosting.slots import make_rules
from ranksieve.boosting.tree import to_trees
from ranksieve.data.binned import Binned
from ranksieve.params import Params


def lessons_of(binned: Binned, trees: list, params: Params, portion: Portion) -> list:
    """The lessons of two steps, the second after a selection of its own."""
    scores = Scores(binned)
    maker = Lessons(binned.lists, make_rules(params, Constant(0.0), None, None, 4.0), params.seed, portion)
    lesson = maker.lesson(Sample.of(binned.lists, None), scores, 0)
    found = []
    for step, tree in enumerate(trees, start=1):
        scores.add(tree)
        lesson = maker.lesson(lesson.sample, scores, step)
        found.append(lesson)
    return found


@pytest.mark.parametrize("selection", sorted({*SELECTIONS} - {"goss"}))  # goss compares documents of all queries
@pytest.mark.parametrize("others", [{}, {"row_fraction": 0.7, "objective": "err"}], ids=["plain", "thinned"])
def test_portions_together_make_the_lesson_of_the_whole(data, binned, selection, others):
    params = Params(selection=selection, negatives=0.2, seed=5, **others)
    trees = to_trees(rs.train(binned, trees=3, leaves=5, max_bins=32, algo="lambdamart"), binned.binning)
    whole = lessons_of(binned, trees, params, WHOLE)
    n_queries, together = 0, []
    for queries in np.split(np.arange(data.n_queries), [5]):
        lists, rows = data.lists.take_queries(queries)
        part = Binned(binned.bins[rows], lists, binned.binning, binned.info)
        portion = Portion(n_queries, int(rows[0]), data.n_docs)
        together.append((rows, lessons_of(part, trees, params, portion)))
        n_queries += len(queries)
    for step, lesson in enumerate(whole):
        parts = [(rows, lessons[step]) for rows, lessons in together]
        chosen = [rows if part.rows is None else rows[part.rows] for rows, part in parts]
        expected = np.arange(data.n_docs) if lesson.rows is None else lesson.rows
        np.testing.assert_array_equal(np.concatenate(chosen), expected)
        np.testing.assert_array_equal(np.concatenate([part.grad for _, part in parts]), lesson.grad)
        np.testing.assert_array_equal(np.concatenate([part.hess for _, part in parts]), lesson.hess)
