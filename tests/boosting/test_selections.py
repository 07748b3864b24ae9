import numpy as np
import pytest

import naive
from ranksieve.boosting.objectives import lambda_ndcg
from ranksieve.boosting.registry import SELECTIONS
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.selections import Negatives, View, random_negatives, random_rows, top_negatives
from ranksieve.boosting.tree import Tree
from ranksieve.data.binned import bin_data
from ranksieve.heeding import SELECTING
from ranksieve.params import Params
from samples import small_dataset

LAMBDA = lambda_ndcg(truncation=10)


def random_tree(rng: np.random.Generator, n_features: int, n_leaves: int = 5) -> Tree:
    """A chain of random splits; some hang on the left, some on the right."""
    splits = np.zeros((n_leaves - 1, 5), np.int32)
    for i in range(n_leaves - 1):
        following = i + 1 if i + 1 < n_leaves - 1 else ~(n_leaves - 1)
        children = (following, ~i) if rng.random() < 0.5 else (~i, following)
        splits[i] = (rng.integers(n_features), rng.integers(25), rng.integers(2), *children)
    values = rng.standard_normal(n_leaves) * 0.1
    ones = np.ones(n_leaves)
    return Tree(splits, np.zeros(n_leaves - 1), np.zeros(n_leaves - 1, np.int64), values, ones.astype(np.int64), ones)


def naive_scores(bins: np.ndarray, trees: list[Tree], start: float = 0.0) -> np.ndarray:
    scores = np.full(len(bins), start)
    for tree in trees:
        for i, row in enumerate(bins):
            node = 0
            while node >= 0:
                feature, split_bin, missing_left, left, right = tree.splits[node]
                goes_left = missing_left == 1 if row[feature] == 255 else row[feature] <= split_bin
                node = left if goes_left else right
            scores[i] += tree.leaf_values[~node]
    return scores


@pytest.mark.parametrize("seed", range(3))
def test_top_negatives_are_the_naive_ones_after_every_tree(seed):
    """Two queries and more with shifted offsets: ranks come from each query's own scores."""
    binned = bin_data(small_dataset(seed=seed), max_bins=32)
    lists = binned.lists
    rng = np.random.default_rng(seed)
    scores, trees = Scores(binned), []
    select = top_negatives(share=0.1, at_least=2)
    counts = Negatives(lists).counts(0.1, 2)
    for step in range(1, 25):
        tree = random_tree(rng, binned.binning.n_features)
        trees.append(tree)
        scores.add(tree)
        if step % 3 == 0:
            continue  # several trees may be pending
        rows = select(View(lists, scores, step, rng, LAMBDA))
        known = naive_scores(binned.bins, trees)
        assert rows.tolist() == naive.top_negatives(lists.labels, known, lists.offsets, counts)
        np.testing.assert_array_equal(scores.at(rows), known[rows])
    np.testing.assert_array_equal(scores.all(), naive_scores(binned.bins, trees))


def test_laziness_skips_documents_that_cannot_matter(binned):
    """Not a speed test: the scores of hopeless documents are really left alone."""
    lists, scores = binned.lists, Scores(binned)
    rng = np.random.default_rng(0)
    select = top_negatives(share=0.02)
    for step in range(1, 31):
        tree = random_tree(rng, binned.binning.n_features)
        tree.leaf_values[:] = np.where(tree.leaf_values > 0, 0.001, -1.0)
        scores.add(tree)
        select(View(lists, scores, step, rng, LAMBDA))
    assert (scores._done < scores.n_trees).mean() > 0.3


def test_counts_round_up_and_keep_at_least_one():
    sizes = [1, 5, 30, 100, 301]
    labels = np.concatenate([np.r_[1, np.zeros(n)] for n in sizes]).astype(np.float32)
    offsets = np.concatenate([[0], np.cumsum([n + 1 for n in sizes])])
    from ranksieve.data.lists import Lists

    negatives = Negatives(Lists(labels, offsets, np.arange(5)))
    assert negatives.counts(0.01, 1).tolist() == [1, 1, 1, 1, 4]
    assert negatives.counts(0.1, 1).tolist() == [1, 1, 3, 10, 31]
    assert negatives.counts(0.01, 20).tolist() == [1, 5, 20, 20, 20]
    assert negatives.counts(1.0, 1).tolist() == sizes


def test_random_negatives_keep_positives_and_counts(binned):
    lists = binned.lists
    negatives = Negatives(lists)
    seen = []
    for step in range(3):
        view = View(lists, Scores(binned), step, np.random.default_rng([0, step]), LAMBDA)
        rows = random_negatives(share=0.2)(view)
        assert set(negatives.positives) <= set(rows.tolist())
        chosen = np.add.reduceat((lists.labels[rows] == 0).astype(int), np.searchsorted(rows, lists.offsets[:-1]))
        assert chosen.tolist() == negatives.counts(0.2, 1).tolist()
        seen.append(tuple(rows))
    assert len(set(seen)) == 3


def test_random_rows_are_a_share_of_all(binned):
    view = View(binned.lists, Scores(binned), 1, np.random.default_rng(0), LAMBDA)
    rows = random_rows(share=0.25)(view)
    assert len(rows) == np.ceil(0.25 * binned.lists.n_docs)
    assert (np.diff(rows) > 0).all()


@pytest.mark.parametrize("name", SELECTING)
def test_a_rule_heeds_what_it_is_said_to(name):
    read = set()

    class Noted:
        def __getattr__(self, parameter):
            read.add(parameter)
            return getattr(Params(), parameter)

    SELECTIONS[name](Noted())
    assert read == set(SELECTING[name]) - {"every"}
