"""A warning where a validation metric is high because equal scores keep an input order that is sorted by label."""

import tracemalloc
import warnings

import numpy as np
import pytest

import ranksieve as rs
from naive_trees import scores_of_trees
from ranksieve.boosting import train_forest
from ranksieve.boosting.callbacks import ValidationSet
from ranksieve.boosting.disk_scores import new_scores
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.tied_scores import warn_of_ties
from ranksieve.data import lists
from ranksieve.data.binned import bin_data
from ranksieve.errors import InterruptedTraining, TiedScoresWarning
from ranksieve.evaluation.metrics import parse_metric
from rule_samples import random_tree
from samples import coarse_lists, small_dataset

QUICK = {"trees": 30, "leaves": 4, "min_docs": 5, "early_stopping": 10, "threads": 2}


TRAIN, SORTED, SHUFFLED = (coarse_lists(seed, by_label=seed != 3) for seed in (1, 2, 3))


@pytest.mark.parametrize(
    "params",
    [{}, {"early_stopping": 0}, {"bag": 2}, {"init": "f1"}, {"metric": "map"}, {"memory": "64G"}, {"algo": "mart"}],
    ids=str,
)
def test_sorted_validation_lists_are_warned_of_with_the_values_of_the_model(params):
    params = QUICK | params
    with pytest.warns(TiedScoresWarning, match="sorted by label") as found:
        model = rs.train(TRAIN, valid=SORTED, **params)
    assert len(found) == 1
    name = params.get("metric", "ndcg@10")
    ordered, mean, worst = (
        rs.evaluate(model, SORTED, parse_metric(name, ties=ties)).mean() for ties in ("order", "mean", "worst")
    )
    assert (
        f"valid: {name} is {ordered:.4f} with equal scores in input order, {mean:.4f} in the mean over their orders, "
        f"{worst:.4f} in the worst;" in str(found[0].message)
    )


def test_the_remedies_work():
    with pytest.warns(TiedScoresWarning) as found:
        rs.train(TRAIN, valid=SORTED, **QUICK)
    message = found[0].message
    assert str(message).endswith("or use metric='ndcg(ties=mean)@10'")
    assert message.for_command_line().endswith("or use --metric 'ndcg(ties=mean)@10'")
    order = np.random.default_rng(0).permutation(600)
    order = order[np.argsort(order // 20, kind="stable")]
    shuffled = rs.Dataset.from_arrays(SORTED.features[order], SORTED.labels[order], order // 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = rs.train(TRAIN, valid=SORTED, **QUICK, metric="ndcg(ties=mean)@10")
        rs.train(TRAIN, valid=SORTED, **QUICK, metric="ndcg(ties=worst)@10")
        rs.train(TRAIN, valid=shuffled, **QUICK)
        rs.train(TRAIN, valid={"first": SHUFFLED, "second": SORTED}, **QUICK)  # the first set decides
    mean = rs.evaluate(model, SORTED, parse_metric("ndcg@10", ties="mean")).mean()
    assert model.info["best_score"] == pytest.approx(mean)


def test_scores_that_differ_and_metrics_of_the_user_are_not_warned_of():
    def label_of_first(labels, scores, offsets, k):
        return labels[offsets[:-1]]

    data = rs.synth.cubic(40)
    queries = np.repeat(np.arange(40), data.lists.sizes)
    by_label = np.lexsort((-data.labels, queries))
    lists = rs.Dataset.from_arrays(data.features[by_label], data.labels[by_label], queries)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rs.train(data, valid=lists, trees=40, leaves=16, min_docs=1)
        rs.train(TRAIN, valid=SORTED, **QUICK, metric=label_of_first)


def test_tuning_warns_once_and_checks_the_first_trial_alone(monkeypatch):
    pytest.importorskip("optuna")
    checked = []
    monkeypatch.setattr(train_forest, "warn_of_ties", lambda *given: checked.append(warn_of_ties(*given)))
    with pytest.warns(TiedScoresWarning) as found:
        rs.tune(TRAIN, valid=SORTED, trials=3, **QUICK)
    assert len(found) == len(checked) == 1


@pytest.mark.parametrize("name", ["ndcg@3", "map", "err@3"])
@pytest.mark.parametrize("kept_at", [(), (2,), (1, 3, 5)])
def test_the_values_under_the_first_trees_do_not_depend_on_the_scores_kept(monkeypatch, name, kept_at):
    monkeypatch.setattr(lists, "BLOCK_DOCS", 60)
    data = bin_data(small_dataset(9, most=60), max_bins=16)
    assert len(list(data.lists.query_blocks())) > 2
    rng = np.random.default_rng(4)
    trees = [random_tree(rng, data.bins.shape[1]) for _ in range(7)]
    valid = ValidationSet("valid", data, new_scores(data))
    for n in range(1, len(trees) + 1):
        valid.per_query(trees[:n], parse_metric("ndcg@3"))
        if n in kept_at:
            valid.keep_scores()
    orders = [parse_metric(name, ties=ties) for ties in ("order", "mean", "worst")]
    for n in (5, len(trees)):
        scores = scores_of_trees(trees[:n], data.bins)
        for metric, values in zip(orders, valid.measure_again(trees[:n], orders), strict=True):
            np.testing.assert_array_equal(values, metric.per_query(data.lists.labels, scores, data.lists.offsets))
    wider = orders[0].with_highest(data.lists.labels.max() + 1)  # the highest label is in another part of the set
    np.testing.assert_array_equal(valid.measure_again(trees, [wider])[0], valid.per_query(trees, wider))


@pytest.mark.parametrize("early_stopping", [0, 10])
def test_no_tree_is_added_twice_for_the_check(monkeypatch, early_stopping):
    added = []
    add = Scores.add
    monkeypatch.setattr(Scores, "add", lambda self, tree, leaves=None: (added.append(tree), add(self, tree, leaves)))
    with pytest.warns(TiedScoresWarning):
        model = rs.train(TRAIN, valid=SORTED, **QUICK | {"early_stopping": early_stopping, "metric": "ndcg"})
    assert len(added) == 2 * len(model.info["history"]["valid"]["ndcg"])  # once of each data set


def test_the_check_takes_the_memory_of_one_more_score_for_each_document():
    n_docs = 400_000
    rng = np.random.default_rng(0)
    labels, features = rng.integers(0, 3, n_docs), rng.integers(0, 4, (n_docs, 1)).astype(np.float32)
    data = bin_data(rs.Dataset.from_arrays(features, labels, np.arange(n_docs) // 100))
    valid = ValidationSet("valid", data, new_scores(data))
    tree = random_tree(rng, 1)
    orders = [parse_metric("ndcg@10", ties=ties) for ties in ("order", "mean", "worst")]
    valid.measure_again([tree], orders)  # compiles
    tracemalloc.start()
    valid.measure_again([tree], orders)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n_docs + 8_000_000


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_finished_model_is_not_lost_in_the_check(monkeypatch, error):
    def fails(*_):
        raise error

    monkeypatch.setattr(ValidationSet, "measure_again", fails)
    expected = rs.train(TRAIN, **QUICK | {"early_stopping": 0, "trees": 3})
    params = QUICK | {"early_stopping": 0, "trees": 3}
    if error is MemoryError:
        model = rs.train(TRAIN, valid=SORTED, **params)
    else:
        with pytest.raises(InterruptedTraining) as stopped:
            rs.train(TRAIN, valid=SORTED, **params)
        model = stopped.value.model
    assert (model.leaf_values == expected.leaf_values).all()
