"""A bag is the mean of forests on samples of the queries: same trees as training each alone."""

from dataclasses import replace

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.boosting.bagging import SAMPLE
from ranksieve.data.binned import bin_data

LISTS, VALID = rs.synth.cubic(24), rs.synth.cubic(12, start=24)
OPTIONS = {"trees": 4, "leaves": 6, "verbose": False}


def sample_of(number, n_queries, fraction=0.8, seed=0):
    """The queries that a forest of a bag sees."""
    draws = np.random.default_rng([seed, number, SAMPLE]).random(n_queries)
    draws[0] = 0.0
    return np.flatnonzero(draws < fraction)


def test_each_forest_is_the_one_that_its_sample_gives():
    binned = bin_data(LISTS)
    options = {**OPTIONS, "algo": "lambdamart", "gain": "variance"}  # nothing is random but the sample
    bag = rs.train(LISTS, bag=3, binning=binned.binning, **options)
    assert bag.n_trees == 12
    for number in range(3):
        alone = rs.train(LISTS.take_queries(sample_of(number, 24)), binning=binned.binning, **options)
        mine = bag.take(np.arange(number, 12, 3))
        assert mine.feature.tolist() == alone.feature.tolist()
        assert mine.threshold.tolist() == alone.threshold.tolist()
        assert np.allclose(3 * mine.leaf_values, alone.leaf_values, rtol=1e-12)


def test_scores_are_the_mean_of_the_forests():
    bag = rs.train(LISTS, bag=2, negatives=0.3, **OPTIONS)
    halves = [bag.take(np.arange(number, 8, 2)).predict(VALID) for number in range(2)]
    assert np.allclose(bag.predict(VALID), np.mean([2 * half for half in halves], axis=0))


def test_a_bag_stops_by_the_mean():
    bag = rs.train(LISTS, valid=VALID, bag=3, trees=40, leaves=8, early_stopping=2, verbose=False)
    curve = bag.info["history"]["valid"]["ndcg@10"]
    assert 6 <= len(curve) - bag.info["best_iteration"] < 9 or len(curve) == 120
    assert bag.n_trees == bag.info["best_iteration"]
    assert bag.n_trees % 3 == 0  # all forests have as many
    assert rs.evaluate(bag, VALID, "ndcg@10").mean() == pytest.approx(max(curve[2::3]))


@pytest.mark.parametrize("every", [1, 3])
def test_a_resumed_bag_is_the_same(tmp_path, every):
    options = {**OPTIONS, "algo": "selgb", "negatives": 0.2, "every": every, "bag": 3, "feature_fraction": 0.5}
    whole = rs.train(LISTS, **{**options, "trees": 9})
    rs.train(LISTS, checkpoint=tmp_path, **{**options, "trees": 5})
    resumed = rs.train(LISTS, checkpoint=tmp_path, resume=True, **{**options, "trees": 9})
    assert resumed.leaf_values.tolist() == whole.leaf_values.tolist()
    assert resumed.threshold.tolist() == whole.threshold.tolist()


def test_the_number_of_threads_changes_nothing():
    models = [rs.train(LISTS, bag=2, threads=threads, feature_fraction=0.5, **OPTIONS) for threads in (1, 2)]
    assert models[0].leaf_values.tolist() == models[1].leaf_values.tolist()


def test_a_selection_counter_counts_the_rows_of_each_forest():
    counter = rs.callbacks.SelectionCounter()
    rs.train(LISTS, bag=2, negatives=0.1, counter=counter, **OPTIONS)
    unseen = [query for query in range(24) if all(query not in sample_of(number, 24) for number in range(2))]
    rows = np.repeat(np.arange(24), 50)
    assert not counter.counts[np.isin(rows, unseen)].any()
    assert counter.n_trees == 8  # the first trees too: they see a sample


@pytest.mark.filterwarnings("ignore:.*the first 5 trees are returned")
def test_a_forest_is_pruned_to_a_size():
    small = rs.train(LISTS, valid=VALID, bag=3, size=5, **OPTIONS)
    assert small.n_trees == 5
    assert small.info["params"]["bag"] == 3
    assert "pruning" in small.info
    assert "history" in small.info


@pytest.mark.filterwarnings("ignore:.*the first 5 trees are returned")
@pytest.mark.parametrize("phase", [None, "reweight"])
def test_training_that_is_interrupted_while_it_prunes_has_all_trees(monkeypatch, phase):
    def interrupted(*given, **named):
        if phase is None:
            raise KeyboardInterrupt
        pruned = rs.prune(*given, **named)
        return replace(pruned, info={**pruned.info, "pruning": {"interrupted": phase}})

    monkeypatch.setattr("ranksieve.rankers.train.prune", interrupted)
    whole = rs.train(LISTS, valid=VALID, bag=3, **OPTIONS)
    with pytest.raises(rs.errors.InterruptedTraining) as stopped:
        rs.train(LISTS, valid=VALID, bag=3, size=5, **OPTIONS)
    assert stopped.value.model.leaf_values.tolist() == whole.leaf_values.tolist()


def test_what_a_bag_cannot_do_is_refused():
    with pytest.raises(rs.errors.ParameterError, match=r"bag=2 does not work with step='?optimal'?; use one"):
        rs.train(LISTS, bag=2, step="optimal", **OPTIONS)
    with pytest.raises(rs.errors.ParameterError, match="size needs validation data"):
        rs.train(LISTS, size=2, **OPTIONS)
