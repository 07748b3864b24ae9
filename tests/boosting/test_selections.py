import numpy as np
import pytest

import naive
import ranksieve as rs
from naive_trees import scores_of_trees
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.selections.random import RandomNegatives, RandomRows
from ranksieve.boosting.selections.top import TopNegatives
from ranksieve.data.binned import bin_data
from ranksieve.data.negatives import Negatives
from ranksieve.errors import ParameterError
from ranksieve.forest.formats.lightgbm_writer import to_text
from rule_samples import random_tree, training_lists, view_of
from samples import small_dataset


@pytest.mark.parametrize("seed", range(3))
def test_top_negatives_are_the_naive_ones_after_every_tree(seed):
    """Two queries and more with shifted offsets: ranks come from each query's own scores."""
    binned = bin_data(small_dataset(seed=seed), max_bins=32)
    lists = binned.lists
    rng = np.random.default_rng(seed)
    scores, trees = Scores(binned), []
    select, training = TopNegatives(negatives=0.1, min_negatives=2), training_lists(lists)
    counts = Negatives(lists).counts(0.1, 2)
    for step in range(1, 25):
        tree = random_tree(rng, binned.binning.n_features)
        trees.append(tree)
        scores.add(tree)
        if step % 3 == 0:
            continue  # several trees may be pending
        rows = select(view_of(training, scores, step, rng))
        known = scores_of_trees(trees, binned.bins)
        assert rows.tolist() == naive.top_negatives(lists.labels, known, lists.offsets, counts)
        np.testing.assert_array_equal(scores.at(rows), known[rows])
    np.testing.assert_array_equal(scores.all(), scores_of_trees(trees, binned.bins))


def test_a_rule_gets_scores_of_rows_in_any_order_and_none_of_rows_that_do_not_exist(binned):
    scores, trees, rng = Scores(binned), [], np.random.default_rng(1)
    for _ in range(3):
        trees.append(random_tree(rng, binned.binning.n_features))
        scores.add(trees[-1])
    view = view_of(training_lists(binned.lists), scores, 3, rng)
    known, n = scores_of_trees(trees, binned.bins), binned.lists.n_docs
    rows = np.array([n - 1, 3, 3, 0, 3, n - 1])
    for kind in (np.int64, np.uint32, np.uint8):
        np.testing.assert_array_equal(view.scores.at((rows % 256).astype(kind)), known[rows % 256])
    for none in (rows[:0], []):
        np.testing.assert_array_equal(view.scores.at(none), [])
    for wrong in (n, -1):
        with pytest.raises(ParameterError, match=f"asked for the scores of row {wrong}; rows run from 0 to {n - 1}"):
            view.scores.at(np.array([2, wrong]))
    with pytest.raises(ParameterError, match=r"asked for the scores of float64 of shape \(2,\); expected row numbers$"):
        view.scores.at(np.array([0.0, 1.0]))


def test_laziness_skips_documents_that_cannot_matter(binned):
    """Not a speed test: the scores of hopeless documents are really left alone."""
    lists, scores = binned.lists, Scores(binned)
    rng = np.random.default_rng(0)
    select, training = TopNegatives(negatives=0.02, min_negatives=1), training_lists(lists)
    for step in range(1, 31):
        tree = random_tree(rng, binned.binning.n_features)
        tree.leaf_values[:] = np.where(tree.leaf_values > 0, 0.001, -1.0)
        scores.add(tree)
        select(view_of(training, scores, step, rng))
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
        view = view_of(training_lists(lists), Scores(binned), step, np.random.default_rng([0, step]))
        rows = RandomNegatives(negatives=0.2, min_negatives=1)(view)
        assert set(negatives.positives) <= set(rows.tolist())
        chosen = np.add.reduceat((lists.labels[rows] == 0).astype(int), np.searchsorted(rows, lists.offsets[:-1]))
        assert chosen.tolist() == negatives.counts(0.2, 1).tolist()
        seen.append(tuple(rows))
    assert len(set(seen)) == 3


def test_random_rows_are_a_share_of_all(binned):
    view = view_of(training_lists(binned.lists), Scores(binned), 1, np.random.default_rng(0))
    rows = RandomRows(negatives=0.25)(view)
    assert len(rows) == np.ceil(0.25 * binned.lists.n_docs)
    assert (np.diff(rows) > 0).all()


def test_a_rule_used_for_two_data_sets_selects_from_each():
    """What depends on the lists belongs to the run, not to the rule."""
    rule = TopNegatives(negatives=0.2, min_negatives=2)
    for seed in (1, 2):
        data = small_dataset(seed=seed)
        shared = rs.train(data, selection=rule, trees=4, leaves=5, min_docs=2)
        alone = rs.train(data, algo="selgb", negatives=0.2, min_negatives=2, trees=4, leaves=5, min_docs=2)
        np.testing.assert_array_equal(shared.predict(data), alone.predict(data))
        assert shared.info["params"]["selection"] == "top" and shared.info["params"]["negatives"] == 0.2


@pytest.mark.parametrize(
    "options",
    [
        {"algo": "selgb"},
        {"algo": "selgb", "every": 3},
        {"algo": "selgb", "row_fraction": 0.5},
        {"algo": "selgb", "bag": 2},
        {"algo": "selgb", "collapse": 0.2},
        {"algo": "lambdamart", "selection": "top+bottom"},
        {"algo": "lambdamart", "selection": "adaptive"},
        {"algo": "selgb", "step": "optimal"},
    ],
)
def test_rows_that_take_leaf_values_have_the_scores_of_rows_that_traverse_trees(monkeypatch, options):
    data = rs.synth.two_stage(6, start=3)
    given = {"trees": 9, "leaves": 8, "min_docs": 3, "verbose": False, **options}
    if options["algo"] == "selgb":
        given |= {"negatives": 0.05, "min_negatives": 10}
    model = rs.train(data, **given)
    add = Scores.add
    monkeypatch.setattr(Scores, "add", lambda self, tree, leaves=None: add(self, tree))
    assert to_text(rs.train(data, **given)) == to_text(model)
