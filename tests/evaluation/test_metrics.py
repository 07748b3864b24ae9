"""Metrics against peers, and by their laws; `kernels/test_metrics.py` has plain Python."""

from __future__ import annotations

import ir_measures
import numba
import numpy as np
import pytest
from sklearn.metrics import dcg_score, ndcg_score

from naive import metric_of_list
from ranksieve import metrics as functions
from ranksieve.errors import DataError, ParameterError
from ranksieve.evaluation.metric_table import BUILT_IN
from ranksieve.evaluation.metrics import Metric, mean, parse_metric


def random_lists(seed, *, n_queries=20, n_docs=60, distinct=True):
    """Lists without empty queries, for the peers: they disagree about those, and about ties."""
    rng = np.random.default_rng(seed)
    labels = rng.choice([0, 0, 0, 0, 1, 2, 3, 4], size=(n_queries, n_docs))
    labels[:, 7] = 4
    scores = rng.permuted(np.arange(labels.size).reshape(labels.shape), axis=1) / 7
    if not distinct:
        scores = np.floor(scores / 5)
    return labels, scores, np.arange(0, labels.size + 1, n_docs)


@pytest.mark.parametrize("ties", ["order", "mean"])
def test_thread_count_changes_no_bit(ties):
    labels, scores, offsets = random_lists(3, n_queries=50, distinct=False)
    metrics = [Metric(name, 10, ties=ties) for name in BUILT_IN]
    values = []
    for threads in (1, numba.config.NUMBA_NUM_THREADS):
        numba.set_num_threads(threads)
        values.append([metric.per_query(labels.ravel(), scores.ravel(), offsets) for metric in metrics])
    np.testing.assert_array_equal(*values)


IR_MEASURES = [
    "nDCG", "nDCG@10", "nDCG@3", "nDCG(dcg='exp-log2')@10", "nDCG(gains={0:0,1:1,2:3,3:7,4:15})@10", "nDCG(cutoff=5)",
    "AP", "AP@10", "AP(rel=2)", "AP(rel=4)@20", "RR", "RR(rel=3)", "RR@10", "RR(rel=2)@10", "RR@5",
    "P@5", "P(rel=2)@10", "P(judged_only=False)@5", "P@100", "R@10", "R(rel=2)@10", "R@100", "ERR@10",
]  # fmt: skip


@pytest.mark.parametrize("name", IR_MEASURES)
def test_the_names_of_ir_measures_mean_what_it_computes(name):
    labels, scores, offsets = random_lists(1)
    labels[3], labels[4] = 0, np.minimum(labels[4], 1)  # no positives, and none from grade 2 on
    theirs = ir_measures.parse_measure(name)
    cells = [(q, d) for q in range(labels.shape[0]) for d in range(labels.shape[1])]
    qrels = [ir_measures.Qrel(f"{q:03}", f"{d:03}", int(labels[q, d])) for q, d in cells]
    run = [ir_measures.ScoredDoc(f"{q:03}", f"{d:03}", float(scores[q, d])) for q, d in cells]
    try:
        results = {result.query_id: result.value for result in ir_measures.iter_calc([theirs], qrels, run)}
    except RuntimeError as error:  # no Perl here
        pytest.skip(str(error))
    metric = parse_metric(name)
    values = metric.per_query(labels.ravel(), scores.ravel(), offsets)
    tolerance = 6e-6 if name in ("ERR@10", "nDCG(dcg='exp-log2')@10") else 1e-9  # gdeval prints five digits
    np.testing.assert_allclose(values, [results[q] for q in sorted(results)], atol=tolerance)
    assert mean(values) == pytest.approx(ir_measures.calc_aggregate([theirs], qrels, run)[theirs], abs=tolerance)
    assert parse_metric(str(metric)) == metric and metric.describe().startswith(f"{metric}: as in ir-measures, ")
    assert str(metric).partition("(")[0] in str(theirs)


def test_our_names_keep_our_definitions():
    labels, scores, offsets = [3, 0, 1, 0, 0], [0.1, 0.9, 0.8, 3.0, 2.0], [0, 3, 5]
    assert np.isnan(parse_metric("ndcg@10").per_query(labels, scores, offsets)[1])
    ours, theirs = (parse_metric(name).per_query(labels, scores, offsets)[0] for name in ("ndcg@10", "nDCG@10"))
    assert ours == pytest.approx(metric_of_list("ndcg", labels[:3], scores[:3], 10)) and ours != theirs
    assert parse_metric("map").per_query([0.5, 0], [1, 2], [0, 2]).tolist() == [0.5]  # label > 0
    assert parse_metric("recall(rel=2)@1").per_query([2, 3, 1], [3, 2, 1], [0, 3]).tolist() == [0.5]
    assert parse_metric("AP").per_query([0.5, 0], [1, 2], [0, 2]).tolist() == [0.0]  # label >= 1
    assert parse_metric("ERR").describe() == (
        "ERR: as in ir-measures, stop chance (2^label-1)/2^4, ties in input order, queries without positives count 0"
    )
    with pytest.raises(DataError, match="a label is 5, and the highest grade of ERR is 4"):
        parse_metric("ERR").per_query([5.0], [1.0], [0, 1])


@pytest.mark.parametrize("k", [None, 1, 10])
def test_ties_mean_equals_sklearn(k):
    labels, scores, offsets = random_lists(2, distinct=False)
    gains = 2.0**labels - 1
    for name, peer in (("ndcg", ndcg_score), ("dcg", dcg_score)):
        values = Metric(name, k, ties="mean").per_query(labels.ravel(), scores.ravel(), offsets)
        expected = [peer(gains[q : q + 1], scores[q : q + 1], k=k) for q in range(len(labels))]
        np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_err_with_a_large_tied_group_is_stable():
    n_docs, n_draws = 1000, 400
    labels = np.tile([0, 1, 4, 0], n_docs // 4)
    value = Metric("err", ties="mean").per_query(labels, np.zeros(n_docs), [0, n_docs])[0]
    scores = np.random.default_rng(0).random(n_docs * n_draws)
    draws = Metric("err").per_query(np.tile(labels, n_draws), scores, np.arange(n_draws + 1) * n_docs)
    assert abs(value - draws.mean()) < 4 * draws.std() / np.sqrt(n_draws)


@pytest.mark.parametrize("name", BUILT_IN)
def test_empty_and_one_label_queries(name):
    lists = ([0, 0, 1, 1, 0, 1], [6, 5, 4, 3, 2, 1], [0, 2, 4, 6, 6])
    left_out = np.isnan(Metric(name, 2).per_query(*lists))
    assert left_out.tolist() == [True, False, False, True]
    assert Metric(name, 2, empty=1).per_query(*lists)[[0, 3]].tolist() == [1, 1]
    assert Metric(name, 2, empty=0.0).per_query(*lists)[[0, 3]].tolist() == [0, 0]
    skipped = np.isnan(Metric(name, 2, one_label="skip", empty=1).per_query(*lists))
    assert skipped.tolist() == [True, True, False, True]


def test_mean_of_nothing_is_nan_without_a_warning():
    assert np.isnan(mean(np.array([np.nan, np.nan])))
    assert mean(np.array([np.nan, 1.0, 0.0])) == 0.5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ndcg@10", Metric("ndcg", 10)),
        ("nDCG@10", Metric("ndcg", 10, gain="linear", empty=0, spelling="ir-measures")),
        ("ap@10", Metric("map", 10)),
        ("rr", Metric("mrr")),
        ("precision@5", Metric("p", 5)),
        ("r@10", Metric("recall", 10)),
        ("P(rel=2)@5", Metric("p", 5, rel=2, empty=0, spelling="ir-measures")),
        ("p(rel=2)@5", Metric("p", 5, rel=2)),
        ("RBP(p=0.5)@3", Metric("rbp", 3, p=0.5, rel=1, empty=0, spelling="ir-measures")),
        ("rbp(p=0.5)@3", Metric("rbp", 3, p=0.5)),
        ("DCG@3", Metric("dcg", 3)),
        ("avg_ndcg@5", Metric("avg-ndcg", 5)),
    ],
)
def test_parse(text, expected):
    assert parse_metric(text) == expected
    assert parse_metric(str(expected)) == expected


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("ndgc@10", {}, r"unknown metric 'ndgc'; did you mean 'ndcg'\? known: ndcg, dcg, .*rr "),
        ("ndcg@ten", {}, "integer"),
        ("ndcg@0", {}, "the cut-off of 'ndcg@0' is '0'"),
        ("ndcg@10@5", {}, "cannot be read"),
        ("p", {}, "needs a cut-off.*'p@10'"),
        ("P", {}, "P needs a cut-off.*'P@10'"),
        ("nDCG(rel=2)", {}, "option rel=2 of metric 'nDCG.rel=2.' is unknown"),
        ("AP(judged_only=True)", {}, "option judged_only=True"),
        ("AP(rel=0)", {}, "rel of map is 0; expected a number above 0"),
        ("AP(2)", {}, "cannot be read"),
        ("AP(rel=2(", {}, "cannot be read"),
        (
            "NDCG@10",
            {},
            r"can mean ndcg@10 \(gain 2\^label-1\) or, as in ir-measures, nDCG@10 \(gain = label\); write one",
        ),
        ("NDCG(ties=mean)@5", {}, r"can mean ndcg\(ties=mean\)@5 .* nDCG\(ties=mean\)@5"),
        ("MAP", {}, r"'MAP' can mean map \(queries .* are left out\) or, as in ir-measures, AP \(they count 0\)"),
        ("MRR@5", {}, r"can mean mrr@5 .* RR@5"),
        ("Precision@5", {}, r"can mean p@5 .* P@5"),
        ("Recall@5", {}, r"can mean recall@5 .* R@5"),
        ("ndcg", {"rel": 2}, "ndcg has no option rel; it is for map, mrr, p"),
        ("map", {"highest": 2}, "map has no option highest; it is for err"),
        ("rbp(p=x)", {}, "between 0 and 1"),
        ("rbp", {"p": 1.0}, "between 0 and 1"),
        ("ndcg", {"cutoff": 3}, "no option 'cutoff'; known: k, gain"),
        ("ndcg@10", {"k": 5}, "twice"),
        ("ndcg", {"gain": (0, 2, 1)}, "never fall"),
        ("ndcg", {"gain": "cubic"}, "'exp', 'linear'"),
        ("ndcg", {"ties": "best"}, "'order', 'mean' or 'worst'"),
        ("ndcg", {"empty": 0.5}, "'skip', 0 or 1"),
        ("ndcg", {"one_label": None}, "'count' or 'skip'"),
        (Metric("ndcg"), {"k": 5}, "Metric already"),
    ],
)
def test_bad_metrics_are_refused(text, options, message):
    with pytest.raises(ParameterError, match=message):
        parse_metric(text, **options)


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        (([0, 1], [1.0, np.nan], [0, 2]), "score of row 1 is NaN"),
        (([0, 1], [1.0], [0, 2]), "shape"),
        (([0, -1], [1.0, 2.0], [0, 2]), "label of row 1"),
        (([0, np.inf], [1.0, 2.0], [0, 2]), "label of row 1"),
        (([0, 1e300], [1.0, 2.0], [0, 2]), "label of row 1 is inf"),
        (([0, 1], [1.0, 2.0], [0, 1]), "from 0 to the number of documents, 2"),
        (([0, 1], [1.0, 2.0], [0, 2, 1, 2]), "fall after query 1"),
        (([0, 2000], [1.0, 2.0], [0, 2]), r"use metric='nDCG@10' \(its gain is the label; ndcg@10 has"),
    ],
)
def test_bad_lists_are_refused(lists, message):
    with pytest.raises(DataError, match=message):
        Metric("ndcg", 10).per_query(*lists)


def test_large_labels_work_where_nothing_overflows():
    lists = ([0, 2000, 1000], [1.0, 2.0, 3.0], [0, 3])
    assert 0 < Metric("ndcg", gain="linear").per_query(*lists)[0] < 1
    assert Metric("err").per_query(*lists)[0] == 0.5
    with pytest.raises(DataError, match="label 2000 has no entry in the gain table of 2"):
        Metric("ndcg", gain=[0, 1]).per_query(*lists)
    with pytest.raises(DataError, match=r"label 0\.5 has no entry"):
        Metric("dcg", gain=[0, 1]).per_query([0.5], [1], [0, 1])


def test_descriptions():
    assert Metric("ndcg", 10).describe() == (
        "ndcg@10: gain 2^label-1, ties in input order, queries without positives left out"
    )
    metric = Metric("ndcg", gain=(0, 1), ties="mean", empty=0, one_label="skip")
    assert metric.describe() == (
        "ndcg: gain table (0, 1), mean over the orders of ties, queries without positives count 0, "
        "queries with one label left out"
    )


def test_functions_take_offsets_ids_or_sizes():
    labels, scores = np.array([1, 0, 2, 0, 1]), np.array([0.1, 0.5, 0.3, 0.4, 0.2])
    by_offsets = functions.ndcg(labels, scores, [0, 2, 5])
    np.testing.assert_array_equal(by_offsets, functions.ndcg(labels, scores, group=[2, 3]))
    apart = [2, 0, 3, 1, 4]
    ids = np.array(["a", "a", "b", "b", "b"])
    np.testing.assert_array_equal(
        by_offsets[::-1], functions.ndcg(labels[apart], scores[apart], qid=ids[apart], k=10, ties="order")
    )
    assert functions.reciprocal_rank(labels, scores).tolist() == [1 / 3]
    with pytest.raises(ParameterError, match="qid and group"):
        functions.dcg(labels, scores, qid=ids, group=[5])
    with pytest.raises(DataError, match="query ids of shape"):
        functions.rbp(labels, scores, qid=ids[:3])


def test_a_name_may_have_an_order_for_equal_scores():
    assert parse_metric("ndcg(ties=mean)@10") == parse_metric("ndcg@10", ties="mean")
    assert parse_metric("RBP(p=0.5,ties='worst')") == parse_metric("RBP(p=0.5)", ties="worst")
    with pytest.raises(ParameterError, match="ties of ndcg is 'best'; expected 'order', 'mean' or 'worst'"):
        parse_metric("ndcg(ties=best)@10")
    with pytest.raises(ParameterError, match="is given twice"):
        parse_metric("map(ties=mean)", ties="worst")
