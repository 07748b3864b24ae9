"""Eight traversals side by side, against one after the other."""

import numpy as np
import pytest

from naive_forest import naive_leaf, naive_scores, random_forest
from ranksieve.forest.scorer import make_raw_trees
from ranksieve.kernels import traverse_raw

pytestmark = pytest.mark.skipif(np.__version__ < "2", reason="older versions make floats of uint64 and int")


@pytest.mark.parametrize(("seed", "n_trees", "by_column"), [(0, 1, False), (1, 8, True), (2, 13, False)])
def test_traversals_side_by_side_end_where_single_ones_do(interpreted, seed, n_trees, by_column):
    module, rng = interpreted(traverse_raw), np.random.default_rng(seed)
    forest = random_forest(rng, n_trees=n_trees, max_leaves=9, n_features=3, zero_missing=True)
    X = rng.choice([np.nan, 0.0, 1e-36, -1e-30, np.inf, *rng.normal(size=9), *forest.threshold], (25, 3))
    flat, steps = (X.T.ravel(), (1, 25)) if by_column else (X.ravel(), (3, 1))
    trees = make_raw_trees(forest)
    for n in {n_trees, n_trees // 2}:
        scores, leaves = np.ones(25), np.empty((25, n), np.int32)
        module.add_scores(flat, *steps, 3, 25, n, trees, scores)
        module.leaves_of_raw(flat, *steps, 3, 25, n, trees, leaves)
        assert leaves.tolist() == [[naive_leaf(forest, tree, row) for tree in range(n)] for row in X]
        np.testing.assert_allclose(scores - 1, naive_scores(forest.first(n), X) if n else np.zeros(25), atol=1e-14)
        parts = np.ones(25)
        module.add_scores_parallel(flat, *steps, 3, 25, n, trees, 10, parts)
        assert parts.tolist() == scores.tolist()
