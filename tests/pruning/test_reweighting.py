"""Line search: the fast way against scoring every candidate anew, and its laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import naive_pruning
import ranksieve as rs
from ranksieve.evaluation.metric_names import register_metric
from ranksieve.evaluation.metrics import parse_metric
from ranksieve.pruning.leaves import find_leaves
from ranksieve.pruning.reweighting import WeightSearch, search_weights
from ranksieve.pruning.tree_outputs import TreeOutputs
from samples import small_dataset

SEARCH = {"samples": 6, "window": 2.0, "shrink": 0.8, "patience": 5, "rounds": 4}


@pytest.fixture(scope="module")
def data():
    return small_dataset(9, seed=5, most=50)


@pytest.fixture(scope="module")
def forest(data):
    return rs.train(data, algo="lambdamart", trees=6, leaves=5, min_docs=2, learning_rate=0.3)


@pytest.mark.parametrize(
    ("metric", "weighted"), [("ndcg@5", False), ("map", False), ("mrr@3", False), ("err@5", False), ("ndcg@5", True)]
)
def test_weights_are_those_of_scoring_anew(forest, data, metric, weighted):
    metric = parse_metric(metric)
    if weighted:
        weights = np.random.default_rng(1).random(data.n_docs)
        data = rs.Dataset.from_arrays(data.features, data.labels, group=data.lists.sizes, weights=weights)
    outputs = TreeOutputs(forest, find_leaves(forest, data), metric)
    found = [w.weights for w in search_weights(outputs, None, WeightSearch(**SEARCH))]
    expected = naive_pruning.reweight(forest, data, metric, 6, 2.0, 0.8, 4)
    assert len(found) >= 2
    for ours, naive in zip(found, expected, strict=False):
        np.testing.assert_allclose(ours, naive, rtol=0, atol=1e-12)


def test_the_training_metric_never_falls_and_is_reported_correctly(forest, data):
    outputs = TreeOutputs(forest, find_leaves(forest, data), parse_metric("ndcg@10"))
    found = list(
        search_weights(outputs, None, WeightSearch(samples=20, window=2.0, shrink=0.95, patience=6, rounds=30))
    )
    totals = [w.total for w in found]
    assert totals == sorted(totals) and totals[-1] > totals[0]
    for step in found:
        assert outputs.total(weights=step.weights) == step.total
        mean = rs.evaluate(forest.reweighted(step.weights), data).mean()
        assert outputs.mean(step.total) == pytest.approx(mean, abs=1e-11)


@pytest.mark.usefixtures("nothing_registered")
def test_rounds_with_a_metric_below_zero_are_counted_alike(forest, data):
    def lowered(labels, scores, offsets, k):
        return parse_metric(f"ndcg@{k}").per_query(labels, scores, offsets) - 10.0

    register_metric("lowered", lowered)
    search, found = WeightSearch(**SEARCH | {"patience": 1}), []
    for name in ("ndcg@10", "lowered@10"):
        outputs = TreeOutputs(forest, find_leaves(forest, data), parse_metric(name))
        found.append([w.weights.tolist() for w in search_weights(outputs, outputs, search)])
    assert found[0] == found[1] and len(found[0]) > 1


def test_it_stops_when_validation_has_not_improved_for_long_enough(forest, data):
    valid = small_dataset(9, seed=6, most=50)
    outputs, watched = (TreeOutputs(forest, find_leaves(forest, d), parse_metric("ndcg@10")) for d in (data, valid))
    found = list(
        search_weights(outputs, watched, WeightSearch(samples=8, window=2.0, shrink=0.95, patience=3, rounds=50))
    )
    values = [w.valid_total for w in found]
    best = int(np.argmax(values))
    assert len(values) == min(best + 4, 51)


def test_weights_relative_to_the_mean(forest, data):
    """The window follows the scale of the weights, so a forest scaled by a power of two is searched alike."""
    scaled = forest.reweighted(4.0 * forest.weights)
    same = [
        rs.pruning.reweight(model, data, judge_on="train", rounds=4, samples=6).weights for model in (forest, scaled)
    ]
    np.testing.assert_allclose(4.0 * same[0], same[1], rtol=1e-12)


def test_weights_of_monotone_trees_are_never_negative(forest, data):
    upside_down = rs.Dataset.from_arrays(data.features, data.labels == 0, group=data.lists.sizes)
    bound, free = (replace(forest, info={"params": {"monotone": text}}) for text in ("f1:+1", "none"))
    lowest = []
    for one in (bound, free):
        outputs = TreeOutputs(one, find_leaves(one, upside_down), parse_metric("ndcg@5"))
        found = list(search_weights(outputs, None, WeightSearch(**SEARCH)))
        assert found[-1].total == outputs.total(weights=found[-1].weights) > found[0].total
        lowest.append(min(step.weights.min() for step in found))
    assert lowest[0] >= 0 > lowest[1]
