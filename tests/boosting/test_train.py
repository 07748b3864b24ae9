import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse

import ranksieve as rs
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.selections.top import TopNegatives
from ranksieve.boosting.training_rows import TreeTarget
from ranksieve.boosting.tree import to_trees
from ranksieve.data.binned import bin_data
from ranksieve.errors import DataError, ParameterError, UnusedParameterWarning
from ranksieve.forest.formats.lightgbm_writer import to_text
from rule_samples import lambda_gradients
from samples import small_dataset

SMALL = {"trees": 12, "leaves": 6, "min_docs": 3, "learning_rate": 0.2}
ALGORITHMS = ["lambdamart", "selgb", "negsgb", "sgb", "mart"]


@pytest.mark.parametrize(
    "as_valid", [lambda X, y: (X, y), lambda X, y: X, lambda X, y: {"v": scipy.sparse.csr_array(X)}]
)
def test_arrays_as_validation_data_are_refused_by_name(as_valid):
    data = small_dataset()
    with pytest.raises(ParameterError, match=r"valid has an array \(.*; give .* Dataset.from_arrays\(X, y, qid\)"):
        rs.train(data, valid=as_valid(data.features, data.labels), **SMALL)


def trees_of(forest: rs.Forest) -> dict[str, list]:
    return {name: getattr(forest, name).tolist() for name in ("feature", "threshold", "left", "right", "leaf_values")}


def file_of(forest: rs.Forest) -> str:
    """The model file; it holds no times."""
    return to_text(forest)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_learns_and_scores_as_it_measured(data, algo):
    model = rs.train(data, valid=data, algo=algo, negatives=0.3, min_negatives=1, early_stopping=0, **SMALL)
    curve = model.evals_result_["valid"]["ndcg@10"]
    assert len(curve) == model.n_trees == 12
    assert curve[-1] > 0.5
    assert rs.evaluate(model, data).mean() == pytest.approx(curve[-1], abs=1e-12)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_thread_count_changes_no_byte(data, algo):
    models = [rs.train(data, valid=data, algo=algo, negatives=0.3, min_negatives=1, threads=n, **SMALL) for n in (1, 2)]
    assert file_of(models[0]) == file_of(models[1])


@pytest.mark.parametrize("algo", ["selgb", "negsgb"])
def test_selecting_everything_is_lambdamart_bit_for_bit(data, algo):
    everything = rs.train(data, algo=algo, negatives=1.0, **SMALL)
    assert trees_of(everything) == trees_of(rs.train(data, algo="lambdamart", **SMALL))


def test_selgb_is_lambdamart_on_the_reduced_lists(data):
    """λ, ranks and the tree of step 2 see D* only: same as boosting on a data set of those rows alone."""
    binned = bin_data(data)
    options = {"leaves": 6, "min_docs": 3, "truncation": 10, "normalize": False}
    first = rs.train(binned, algo="lambdamart", trees=1, **options)
    both = rs.train(binned, algo="selgb", negatives=0.2, min_negatives=1, trees=2, **options)
    known = first.predict(data)
    rows = np.array(_selected(data, known, 0.2))
    offsets = np.searchsorted(rows, data.offsets)
    grad, hess = lambda_gradients(data.labels[rows], known[rows], offsets)
    params = rs.params.Params(**options)
    tree, _ = Grower(binned, params, threads=1).grow(
        TreeTarget(rows.astype(np.int32), grad, hess), np.random.default_rng(0)
    )
    np.testing.assert_array_equal(both.leaf_values[both.leaf_offsets[1] :], tree.leaf_values * 0.05)
    assert both.split_count[both.split_offsets[1]] == len(rows)


def _selected(data, scores, share):
    import naive
    from ranksieve.data.negatives import Negatives

    counts = Negatives(data.lists).counts(share, 1)
    return naive.top_negatives(data.labels, scores, data.offsets, counts)


def test_selection_waits_for_its_turn(data):
    calls = []

    def select(view):
        calls.append(view.step)
        return TopNegatives(negatives=0.2, min_negatives=1)(view)

    rs.train(data, selection=select, every=5, **SMALL)
    assert calls == [5, 10]


def test_lazily_kept_scores_equal_a_fresh_scoring(data):
    binned = bin_data(data)
    model = rs.train(binned, algo="selgb", negatives=0.1, min_negatives=1, **SMALL)
    scores = Scores(binned)
    for tree in to_trees(model, binned.binning):
        scores.add(tree)
    np.testing.assert_array_equal(scores.all(), model.predict(data))


def test_permuting_queries_permutes_predictions(data):
    order = np.random.default_rng(3).permutation(data.n_queries)
    shuffled = data.take_queries(order)
    model, other = (rs.train(d, algo="selgb", negatives=0.3, min_negatives=1, **SMALL) for d in (data, shuffled))
    assert trees_of(model)["feature"] == trees_of(other)["feature"]
    np.testing.assert_allclose(model.leaf_values, other.leaf_values, rtol=1e-9)
    np.testing.assert_allclose(model.predict(data.take_queries(order)), other.predict(shuffled), rtol=1e-9)


def test_early_stopping_returns_to_the_best_tree(data):
    valid = small_dataset(seed=9)
    model = rs.train(data, valid=valid, algo="lambdamart", trees=60, leaves=8, early_stopping=5, learning_rate=0.3)
    curve = model.evals_result_["valid"]["ndcg@10"]
    assert model.n_trees == int(np.argmax(curve)) + 1 == model.info["best_iteration"]
    assert len(curve) == min(60, model.n_trees + 5)
    assert model.info["best_score"] == max(curve)


def test_progress_is_logged(data, caplog):
    with caplog.at_level("INFO", logger="ranksieve"):
        rs.train(data, valid=small_dataset(seed=1), early_stopping=0, **{**SMALL, "trees": 20})
    lines = [one.message for one in caplog.records if one.levelname == "INFO"]
    assert len(lines) == 10 and lines[0].startswith("2/20 trees  valid ndcg@10 0.") and "  best 0." in lines[-1]


def test_several_validation_sets_and_callbacks(data):
    records = []
    model = rs.train(
        data, valid={"a": small_dataset(seed=1), "b": small_dataset(seed=2)}, callbacks=[records.append], **SMALL
    )
    assert set(model.evals_result_) == {"a", "b"}
    assert [record.step for record in records] == list(range(1, len(records) + 1))
    assert records[-1].evaluations["a"]["ndcg@10"] == model.evals_result_["a"]["ndcg@10"][-1]


@pytest.mark.parametrize("metric", ["map", "ndcg@3", "mrr@5"])
def test_validation_on_partial_rankings_equals_full_scoring(data, metric):
    valid = small_dataset(seed=5)
    model = rs.train(data, valid=valid, metric=metric, early_stopping=0, **SMALL)
    for trees in (1, 7, 12):
        expected = rs.evaluate(model.predict(valid, trees=trees), valid, metrics=(metric,)).mean()
        assert model.evals_result_["valid"][metric][trees - 1] == pytest.approx(expected, abs=1e-12)


def test_own_selections_may_be_unsorted_and_bad_ones_are_refused(data):
    plain = rs.train(data, selection=lambda view: np.arange(50), **SMALL)
    shuffled = rs.train(data, selection=lambda view: np.r_[np.arange(50)[::-1], 7], **SMALL)
    assert trees_of(plain) == trees_of(shuffled)
    for rows, message in (([-1], "row"), ([10**6], "row 1000000"), ([0.5], "float64"), ([], "no rows")):
        with pytest.raises(ParameterError, match=message):
            rs.train(data, selection=lambda view, rows=rows: np.array(rows), **SMALL)


@pytest.mark.parametrize("given", [{"negatives": 0.3}, {"step": "optimal", "learning_rate": 0.3}, {"margin": 2.0}])
def test_parameters_without_effect_are_reported(data, given):
    name = list(given)[-1]
    options = {"trees": 1, "leaves": 4, "algo": "lambdamart"}
    with pytest.warns(UnusedParameterWarning, match=rf"^{name} is not used by algo='lambdamart', only by "):
        rs.train(data, **given, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rs.train(data, **options, every=2, selection=lambda view: np.arange(50))
        rs.train(data, **{**options, **rs.params.Params(**options).as_dict()})


def test_own_objective_gets_query_offsets(data):
    borders = []

    def objective(labels, scores, offsets):
        borders.append(len(offsets))
        return labels - scores, np.ones(len(labels))

    rs.train(data, objective=objective, algo="lambdamart", **SMALL)
    assert borders == [data.n_queries + 1] * 12


def test_weights_zero_silences_documents(data):
    weights = (np.arange(data.n_docs) < data.offsets[6]).astype(float)
    silenced = rs.Dataset.from_arrays(data.features, data.labels, group=np.diff(data.offsets), weights=weights)
    model = rs.train(silenced, algo="mart", gain="newton", trees=1, leaves=4, min_docs=1, min_hessian=1.0)
    assert model.leaf_weight.sum() == pytest.approx(data.offsets[6])


def test_bad_input(data):
    with pytest.raises(DataError, match="two grades"):
        rs.train(rs.Dataset.from_arrays(np.eye(3), [1, 1, 1], group=[3]))
    with pytest.raises(DataError, match="infinite"):
        rs.train(rs.Dataset.from_arrays(np.array([[1.0], [np.inf]]), [1, 0], group=[2]))
    with pytest.raises(DataError, match="undefined"):
        rs.train(data, valid=rs.Dataset.from_arrays(np.zeros((2, 7)), [0, 0], group=[2]), **SMALL)
    with pytest.raises(DataError, match="features"):
        rs.train(data, valid=small_dataset(n_features=5), **SMALL)
    with pytest.raises(ParameterError, match="did you mean 'leaves'"):
        rs.train(data, leafs=3)
    with pytest.raises(ParameterError, match="checkpoint"):
        rs.train(data, resume=True)


def test_fewer_documents_than_leaves():
    data = rs.Dataset.from_arrays(np.arange(6.0)[:, None], [0, 0, 1, 0, 0, 2], group=[3, 3])
    model = rs.train(data, trees=3, leaves=64, min_docs=1, algo="lambdamart")
    assert model.n_trees == 3
    assert rs.evaluate(model, data).mean() > 0.6


def test_features_in_another_order_are_matched_by_name(tmp_path, data):
    names = [f"x{i}" for i in range(7)]
    plain = np.nan_to_num(data.features)
    sizes = np.diff(data.offsets)
    train = rs.Dataset.from_arrays(plain, data.labels, group=sizes).with_features(names)
    turned = rs.Dataset.from_arrays(plain[:, ::-1], data.labels, group=sizes).with_features(names[::-1])
    rs.io.write_parquet(turned, tmp_path / "turned.parquet")
    model = rs.train(train, valid=train, **SMALL)
    for valid in (turned, tmp_path / "turned.parquet"):
        assert rs.train(train, valid=valid, **SMALL).info["history"] == model.info["history"]
    np.testing.assert_array_equal(model.predict(turned), model.predict(train))
    renamed = rs.Dataset.from_arrays(plain, data.labels, group=sizes).with_features(["y", *names[1:]])
    with pytest.raises(DataError, match="feature 1 is 'y', but was 'x0' in training"):
        rs.train(train, valid=renamed, **SMALL)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda n: (np.zeros(3), np.zeros(3)), r"shape \(3,\)"),
        (lambda n: (np.full(n, np.nan), np.ones(n)), "NaN"),
        (lambda n: (np.zeros(n), -np.ones(n)), "negative"),
    ],
)
def test_bad_objectives_are_refused(data, result, message):
    with pytest.raises(ParameterError, match=message):
        rs.train(data, objective=lambda labels, scores, offsets: result(len(labels)), algo="lambdamart", **SMALL)


def test_an_objective_may_write_into_its_scores(data):
    def objective(labels, scores, offsets):
        scores -= labels
        return -scores, np.ones(len(labels))

    own = rs.train(data, objective=objective, algo="lambdamart", **SMALL)
    same = rs.train(data, objective=lambda y, s, o: (y - s, np.ones(len(y))), algo="lambdamart", **SMALL)
    assert trees_of(own) == trees_of(same)


def test_bins_of_other_thresholds_are_refused(data):
    binned, other = bin_data(data), bin_data(small_dataset(seed=3))
    with pytest.raises(DataError, match="other thresholds"):
        rs.train(binned, valid=other, **SMALL)
    with pytest.raises(DataError, match="bin it again"):
        rs.train(binned, max_bins=4, **SMALL)


def test_lambda_follows_the_gain_of_the_metric(data):
    exponential = rs.train(data, algo="lambdamart", metric="ndcg@10", **SMALL)
    linear = rs.train(data, algo="lambdamart", metric="nDCG(dcg='log2')@10", **SMALL)
    assert trees_of(exponential) != trees_of(linear)


def test_lists_without_a_pair_are_refused():
    data = rs.Dataset.from_arrays(np.arange(4.0)[:, None], [0, 1, 0, 1], group=[1, 1, 1, 1])
    with pytest.raises(DataError, match="no pair"):
        rs.train(data, algo="selgb", trees=2)


def test_newton_gain_without_regularisation_survives_zero_hessians(data):
    def objective(labels, scores, offsets):
        return labels - scores, (data.features[:, 6] != 0).astype(float)

    model = rs.train(data, objective=objective, algo="lambdamart", gain="newton", l2=0.0, trees=1, leaves=8)
    assert model.n_leaves[0] > 1


def test_numpy_scalars_are_parameters(tmp_path, data):
    model = rs.train(data, trees=np.int64(2), learning_rate=np.float32(0.5), leaves=4, checkpoint=tmp_path)
    assert model.n_trees == 2


def test_the_metric_may_be_a_function(data):
    def first_is_positive(labels, scores, offsets, k):
        best = [a + np.argmax(scores[a:b]) for a, b in itertools.pairwise(offsets)]
        return (labels[best] > 0).astype(float)

    model = rs.train(data, valid=data, metric=first_is_positive, **SMALL)
    curve = model.evals_result_["valid"]["first-is-positive"]
    assert (
        curve[model.n_trees - 1]
        == max(curve)
        == np.mean(first_is_positive(data.labels, model.predict(data.features), data.offsets, None))
    )
