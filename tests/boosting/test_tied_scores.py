"""A warning where a validation metric is high because equal scores keep an input order that is sorted by label."""

import warnings

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.boosting.callbacks import ValidationSet
from ranksieve.errors import InterruptedTraining, TiedScoresWarning
from ranksieve.evaluation.metrics import parse_metric
from samples import coarse_lists

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


def test_tuning_warns_once():
    pytest.importorskip("optuna")
    with pytest.warns(TiedScoresWarning) as found:
        rs.tune(TRAIN, valid=SORTED, trials=3, **QUICK)
    assert len(found) == 1


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
