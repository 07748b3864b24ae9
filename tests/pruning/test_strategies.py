"""Which trees are removed: the fast way against scoring every smaller forest anew."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_pruning
import ranksieve as rs
from ranksieve.errors import ParameterError
from ranksieve.evaluation.metric_names import register_metric
from ranksieve.evaluation.metrics import parse_metric
from ranksieve.pruning.leaves import find_leaves
from ranksieve.pruning.removals import Removals
from ranksieve.pruning.strategies import find_strategy
from ranksieve.pruning.tree_outputs import TreeOutputs
from ranksieve.rules import integer
from samples import small_dataset

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def data():
    return small_dataset(12, most=60)


@pytest.fixture(scope="module")
def forest(data):
    return rs.train(data, algo="lambdamart", trees=14, leaves=6, min_docs=2, learning_rate=0.3)


def outputs_of(forest, data, metric="ndcg@10", base=None) -> TreeOutputs:
    metric = metric if not isinstance(metric, str) else parse_metric(metric)
    return TreeOutputs(forest, replace(find_leaves(forest, data), base=base), metric)


def answer(name, outputs, n):
    found = find_strategy(name)(outputs, n, np.random.default_rng(3))
    return found if isinstance(found, np.ndarray) else list(found)[-1].trees


METRICS = [
    "ndcg@10", "ndcg@3", "ndcg", "dcg@5", "map", "map@4", "mrr", "mrr@2", "p@5", "recall@3", "rbp@7", "avg-p@4",
    "err@10", "avg-ndcg@5", "nDCG@10", "AP(rel=2)", "R(rel=2)@5",
]  # fmt: skip


@pytest.mark.parametrize("metric", METRICS)
def test_quality_loss_decides_as_scoring_anew_does(forest, data, metric):
    found = answer("quality-loss", outputs_of(forest, data, metric), 11)
    assert found.tolist() == naive_pruning.quality_loss(forest, data, parse_metric(metric), 11)


@pytest.mark.parametrize("options", [
    {"ties": "worst"}, {"ties": "mean"}, {"empty": 1}, {"one_label": "skip"}, {"gain": (0, 1, 2, 5, 9)},
])  # fmt: skip
def test_the_conventions_of_the_metric_hold(data, options):
    # few bins and shallow trees: many equal scores
    forest = rs.train(data, algo="lambdamart", trees=8, leaves=3, max_bins=4, min_docs=2, learning_rate=0.3)
    labels = data.labels.copy()
    labels[data.offsets[3] : data.offsets[4]] = 0  # a query without positives
    labels[data.offsets[5] : data.offsets[6]] = 2  # and one with a single label
    lists = rs.Dataset.from_arrays(data.features, labels, group=data.lists.sizes)
    metric = parse_metric("ndcg@5", **options)
    found = answer("quality-loss", outputs_of(forest, lists, metric), 6)
    assert found.tolist() == naive_pruning.quality_loss(forest, lists, metric, 6)


def weighted(data, weights):
    return rs.Dataset.from_arrays(data.features, data.labels, group=data.lists.sizes, weights=weights)


@pytest.mark.parametrize("metric", ["ndcg@5", "map", "err@10"])
def test_queries_count_by_their_weights(forest, data, metric):
    weights = np.random.default_rng(3).choice([0.0, 0.3, 1.0, 40.0], data.lists.n_queries)
    heavy, metric = weighted(data, weights), parse_metric(metric)
    outputs = outputs_of(forest, heavy, metric)
    expected = rs.evaluate(forest, heavy, metric, weighted=True).mean()
    assert outputs.mean(outputs.total()) == pytest.approx(expected, abs=1e-11)
    found = answer("quality-loss", outputs, 9).tolist()
    assert found == naive_pruning.quality_loss(forest, heavy, metric, 9)
    assert found != answer("quality-loss", outputs_of(forest, data, metric), 9).tolist()


def test_equal_weights_change_no_bit_and_zero_weights_are_refused(forest, data):
    plain, same = outputs_of(forest, data), outputs_of(forest, weighted(data, np.full(data.lists.n_queries, 0.5)))
    assert same.total() == plain.total() and same.mean(same.total()) == plain.mean(plain.total())
    labels = np.where(np.arange(data.n_docs) < data.offsets[1], data.labels, 0)
    weights = np.arange(data.lists.n_queries) > 0
    only_first = rs.Dataset.from_arrays(data.features, labels, group=data.lists.sizes, weights=weights)
    with pytest.raises(rs.errors.DataError, match="every query on which the metric is defined has weight 0"):
        outputs_of(forest, only_first)


@pytest.mark.parametrize(("name", "options", "highest"), [
    ("dcg@3", {"gain": (0, 0, 5)}, 1), ("ndcg@3", {"empty": 0}, 0), ("map", {"empty": 0}, 0),
])  # fmt: skip
def test_a_metric_that_no_ranking_changes(forest, data, name, options, highest):
    labels = np.arange(data.n_docs) % (highest + 1)
    lists = rs.Dataset.from_arrays(data.features, labels, group=data.lists.sizes)
    outputs = outputs_of(forest, lists, parse_metric(name, **options))
    assert outputs.mean(outputs.total()) == 0
    assert answer("quality-loss", outputs, 3).tolist() == [13, 12, 11]
    pruned = rs.prune(forest, lists, judge_on="train", rate=0.5, metric=outputs.metric, rounds=2)
    assert pruned.n_trees == 7 and (pruned.weights == 1).all()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), leaves=st.integers(2, 9), rate=st.sampled_from([0.05, 0.3, 1.0]))
def test_totals_are_those_of_the_smaller_forests(seed, leaves, rate):
    data = small_dataset(6, seed=seed, most=40)
    forest = rs.train(data, algo="lambdamart", trees=20, leaves=leaves, min_docs=1, learning_rate=rate)
    outputs = outputs_of(forest, data, "ndcg@4")
    removals = Removals(outputs)
    for step in range(14):
        totals = removals.totals()
        kept = removals.alive
        expected = [outputs.total(np.setdiff1d(kept, tree)) for tree in kept]
        assert totals.tolist() == expected
        removals.remove(kept[(7 * step) % len(kept)])


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    metric=st.sampled_from(["ndcg@4", "map", "avg-ndcg@3"]),
    counts=st.lists(st.integers(0, 10), min_size=2, max_size=5).filter(lambda counts: sum(counts) < 24),
)
def test_any_number_of_trees_is_removed_between_two_totals(seed, metric, counts):
    data = small_dataset(6, seed=seed, most=40)
    forest = rs.train(data, algo="lambdamart", trees=24, leaves=5, min_docs=1, learning_rate=0.3)
    outputs, rng = outputs_of(forest, data, metric), np.random.default_rng(seed)
    removals = Removals(outputs)
    for count in counts:
        expected = [outputs.total(np.setdiff1d(removals.alive, tree)) for tree in removals.alive]
        assert removals.totals().tolist() == expected
        for tree in rng.choice(removals.alive, count, replace=False):
            removals.remove(tree)
            assert rng.random() < 0.5 or removals.total == outputs.total(removals.alive)
    assert removals.total == outputs.total(removals.alive)
    assert sorted([*removals.alive, *removals.removed]) == list(range(24))


def test_a_tree_is_removed_once(forest, data):
    removals = Removals(outputs_of(forest, data))
    removals.remove(3)
    for tree in (3, 14):
        with pytest.raises(ParameterError, match=f"tree {tree} is not in the forest, or removed already"):
            removals.remove(tree)
    assert removals.removed == [3] and len(removals.alive) == 13


def test_values_are_those_of_the_metric(forest, data):
    for name in METRICS:
        outputs = outputs_of(forest, data, name)
        assert outputs.mean(outputs.total()) == pytest.approx(rs.evaluate(forest, data, name).mean(), abs=1e-11)


@pytest.mark.usefixtures("nothing_registered")
def test_sums_of_large_values_do_not_overflow(forest):
    def high_values(labels, scores, offsets, k):
        return parse_metric(f"ndcg@{k}").per_query(labels, scores, offsets) * -1e12

    register_metric("high-values", high_values)
    lists = small_dataset(400, most=15)
    high = rs.Dataset.from_arrays(lists.features, 6.0 * lists.labels, group=lists.lists.sizes)  # gains up to 2^24
    for metric in ("dcg@10", parse_metric("dcg@10", ties="mean"), parse_metric("high-values@5")):
        outputs = outputs_of(forest, high, metric)
        assert outputs.mean(outputs.total()) == pytest.approx(rs.evaluate(forest, high, metric).mean(), rel=1e-11)
        removals = Removals(outputs)
        smaller = [forest.take(np.setdiff1d(np.arange(14), tree)) for tree in removals.alive]
        expected = [rs.evaluate(one, high, metric).mean() for one in smaller]
        assert [outputs.mean(int(total)) for total in removals.totals()] == pytest.approx(expected, rel=1e-11)
    found = rs.prune(forest, high, judge_on="train", rate=0.5, metric="dcg@10", rounds=2).info["pruning"]["before"]
    assert found["train"] == pytest.approx(rs.evaluate(forest, high, "dcg@10").mean(), rel=1e-11)


@pytest.mark.usefixtures("nothing_registered")
def test_random_sets_are_compared_by_metrics_below_zero_too(forest, data):
    def lowered(labels, scores, offsets, k):
        return parse_metric(f"ndcg@{k}").per_query(labels, scores, offsets) - 10.0

    register_metric("lowered", lowered)
    assert answer("random", outputs_of(forest, data, "lowered@10"), 6).tolist() == (
        answer("random", outputs_of(forest, data, "ndcg@10"), 6).tolist()
    )


def test_a_base_score_counts_below_the_trees(forest, data):
    first, rest = forest.first(5), forest.take(np.arange(5, 14))
    together = outputs_of(forest, data)
    on_top = outputs_of(rest, data, base=first.predict(data))
    assert on_top.mean(on_top.total()) == pytest.approx(together.mean(together.total()), abs=1e-12)
    found = answer("quality-loss", on_top, 3)
    expected, kept = [], list(range(9))
    for _ in range(3):
        values = {t: on_top.total([k for k in kept if k != t]) for t in kept}
        gone = max(t for t in kept if values[t] == max(values.values()))
        kept.remove(gone)
        expected.append(gone)
    assert found.tolist() == expected


def test_the_one_shot_variant_and_score_loss(forest, data):
    once = answer("quality-loss-once", outputs_of(forest, data), 6)
    assert once.tolist() == naive_pruning.quality_loss_once(forest, data, parse_metric("ndcg@10"), 6)
    assert answer("score-loss", outputs_of(forest, data), 6).tolist() == naive_pruning.score_loss(forest, data, 6)


def test_last_skip_and_low_weights(forest, data):
    outputs = outputs_of(forest.first(10), data)
    assert answer("last", outputs, 4).tolist() == [6, 7, 8, 9]
    assert answer("skip", outputs, 4).tolist() == [2, 4, 7, 9]  # positions 3, 5, 8, 10 = ceil(i / 0.4)
    assert answer("skip", outputs, 5).tolist() == [1, 3, 5, 7, 9]
    weights = np.array([3.0, 1, 2, 9, 1, 8, 7, 6, 5, 4])
    outputs = outputs_of(forest.first(10).reweighted(weights), data)
    assert answer("low-weights", outputs, 3).tolist() == [4, 1, 2]


def test_random_keeps_the_best_draw(forest, data):
    outputs = outputs_of(forest, data)
    answers = list(find_strategy("random")(outputs, 7, np.random.default_rng(3)))
    totals = [a.total for a in answers]
    assert len(answers) == 100 and totals == sorted(totals)
    kept = np.setdiff1d(np.arange(14), answers[-1].trees)
    assert outputs.total(kept) == totals[-1]
    rng = np.random.default_rng(3)
    draws = [np.sort(rng.choice(14, 7, replace=False)) for _ in range(100)]
    assert totals[-1] == max(outputs.total(np.setdiff1d(np.arange(14), trees)) for trees in draws)


@pytest.mark.usefixtures("nothing_registered")
def test_a_strategy_has_parameters_and_can_be_registered(forest, data):
    @dataclass(frozen=True)
    class Oldest:
        """The oldest trees from some place on."""

        first: int = integer(0, "The first tree to remove.")

        def __call__(self, outputs, n, rng):
            return np.arange(self.first, self.first + n)

    rs.pruning.register_strategy("oldest", Oldest)
    pruned = rs.prune(forest, data, judge_on="train", rate=0.5, strategy="oldest", first=3, reweight=False)
    assert pruned.info["pruning"]["kept"] == [0, 1, 2, 10, 11, 12, 13]
    with pytest.raises(ParameterError, match="first is not used by strategy='quality-loss', only by oldest"):
        rs.prune(forest, data, rate=0.5, first=3)
    assert len(list(find_strategy("random", draws=5)(outputs_of(forest, data), 7, np.random.default_rng(3)))) == 5
