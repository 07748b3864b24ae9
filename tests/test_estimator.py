"""`Ranker` inside scikit-learn, and with every kind of table."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

import ranksieve as rs
from ranksieve.errors import DataError, ParameterError
from ranksieve.other_names import ALIASES
from ranksieve.parameter_table import table

SMALL = {"algo": "lambdamart", "trees": 8, "leaves": 6, "learning_rate": 0.2, "min_docs": 3, "threads": 1}
N_QUERIES, SIZE = 24, 15


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(3)
    X = rng.random((N_QUERIES * SIZE, 4)).astype(np.float32)
    y = np.floor(3 * X[:, 2] * X[:, 0] + 0.3 * rng.random(len(X)))
    return X, y, np.repeat(np.arange(N_QUERIES), SIZE)


@pytest.fixture(scope="module")
def fitted(arrays):
    X, y, qid = arrays
    return rs.Ranker(**SMALL).fit(X, y, qid=qid)


def test_parameters_are_those_of_train():
    defaults = {name: one.default for name, one in table().items()}
    signature = inspect.signature(rs.Ranker).parameters
    assert {name: p.default for name, p in signature.items()} == defaults
    assert all(p.kind is p.KEYWORD_ONLY for p in signature.values())
    assert rs.Ranker().get_params() == defaults


def test_other_names_of_parameters():
    ranker = rs.Ranker(n_estimators=7, num_leaves=5, random_state=3, n_jobs=-1)
    assert [ranker.get_params()[name] for name in ("trees", "leaves", "seed", "threads")] == [7, 5, 3, 0]
    assert (ranker.n_estimators, ranker.set_params(num_leaves=9).leaves, clone(ranker).trees) == (7, 9, 7)
    assert rs.Ranker(min_data_in_leaf=3, lambda_l2=2.0, num_threads=-1).get_params()["l2"] == 2.0
    assert all(plain in table() and alias not in table() for alias, plain in ALIASES.items())
    with pytest.raises(TypeError, match="unknown parameter 'n_leaves'; did you mean 'num_leaves'"):
        rs.Ranker(n_leaves=3)
    with pytest.raises(TypeError, match=r"'categorical' is not a parameter of Ranker; give it to fit\(categorical=…\)"):
        rs.Ranker(categorical="brand")
    with pytest.raises(rs.errors.ParameterError, match="trees is given twice"):
        rs.train(rs.synth.cubic(4), trees=3, n_estimators=4)


@pytest.mark.parametrize(
    ("method", "name", "advice"),
    [
        ("fit", "early_stopping_rounds", "it is a parameter of the estimator, Ranker(early_stopping=…)"),
        ("fit", "trees", "it is a parameter of the estimator, Ranker(trees=…)"),
        ("fit", "eval_at", "the rank is part of the metric's name, as in eval_metric='ndcg@10'"),
        ("fit", "init_score", "training starts from scores or from a model with rs.train(data, init=…)"),
        ("fit", "eval_names", "evals_result_ names one validation set valid, and several valid_0, valid_1, …;"),
        ("fit", "categorical_feature", "did you mean 'categorical'?"),
        ("fit", "evals_result", "values after each tree are in the model's info['history']"),
        ("fit", "sample_weights", "did you mean 'sample_weight'?"),
        ("fit", "no_such_thing", "known: qid, group, sample_weight"),
        ("predict", "pred_contrib", "use contributions=True"),
        ("predict", "pred_leaf", "use model_.predict_leaves(X)"),
        ("predict", "num_iteration", "the model ends at its best number of trees; for n trees give model_.first(n)."),
        ("predict", "n_jobs", "it is a parameter of the estimator, Ranker(threads=…)"),
        ("predict", "no_such_thing", "known: contributions"),
    ],
)
def test_arguments_of_other_libraries_are_refused_with_advice(arrays, fitted, method, name, advice):
    X, y, qid = arrays
    with pytest.raises(ParameterError) as error:
        fitted.predict(X, **{name: 3}) if method == "predict" else rs.Ranker(**SMALL).fit(X, y, qid=qid, **{name: 3})
    assert str(error.value).startswith(f"{method} has no argument {name!r}; {advice}")


def test_advice_on_arguments_is_right(arrays):
    X, y, qid = arrays
    sets = {"eval_set": [(X, y), (X, y)], "eval_qid": [qid, qid]}
    ranker = rs.Ranker(**SMALL).fit(X, y, qid=qid, **sets)
    assert list(ranker.evals_result_) == ["valid_0", "valid_1"]
    assert ranker.model_.first(3).predict(X).shape == y.shape
    assert ranker.model_.predict_leaves(X).shape == (len(X), ranker.model_.n_trees)


def test_both_names_of_a_parameter_are_an_error():
    for use in (rs.Ranker, rs.Ranker().set_params):
        with pytest.raises(ParameterError, match="trees is given twice, as trees and as n_estimators; give one"):
            use(trees=3, n_estimators=4)


def test_aliases_can_be_assigned(arrays):
    X, y, qid = arrays
    ranker = rs.Ranker(**SMALL)
    ranker.n_estimators = 3
    ranker.n_jobs = -2
    assert ranker.get_params()["trees"] == 3 and ranker.threads == 0
    assert "n_estimators" not in vars(ranker)
    assert ranker.fit(X, y, qid=qid).model_.n_trees == 3


def test_repr_shows_what_was_set():
    assert repr(rs.Ranker()) == "Ranker()"
    assert repr(rs.Ranker(n_estimators=5)) == "Ranker(trees=5)"
    assert repr(clone(rs.Ranker(n_estimators=5, algo="mart"))) == "Ranker(algo='mart', trees=5)"
    parameters = inspect.signature(rs.Ranker.__init__).parameters
    assert list(parameters) == ["self", *table()]
    assert list(inspect.signature(rs.Ranker().__init__).parameters) == list(table())


@dataclass(frozen=True)
class Near:
    """A rule whose default of a known parameter is another one."""

    margin: float = 3.0

    def __call__(self, view):
        return None


def test_clones_keep_the_defaults_of_a_rule(arrays):
    X, y, qid = arrays
    options = SMALL | {"algo": "selgb"}
    for ranker in (rs.Ranker(selection=Near, **options), rs.Ranker(selection=Near(margin=9.0), **options)):
        expected = 9.0 if isinstance(ranker.selection, Near) else 3.0
        for one in (ranker, clone(ranker), clone(clone(ranker))):
            assert one.fit(X, y, qid=qid).model_.info["params"]["margin"] == expected


def test_fit_learns_and_tells(arrays, fitted):
    X, y, qid = arrays
    assert fitted.model_.n_trees == fitted.best_iteration_ == 8
    assert fitted.best_score_ is None
    assert fitted.evals_result_ == {}
    assert fitted.n_features_in_ == 4
    assert not hasattr(fitted, "feature_names_in_")
    assert fitted.feature_importances_.sum() == pytest.approx(1)
    assert set(np.argsort(fitted.feature_importances_)[-2:]) == {0, 2}
    labels, scores = np.asarray(y), fitted.predict(X)
    assert fitted.score(X, y, qid=qid) == pytest.approx(np.nanmean(rs.metrics.ndcg(labels, scores, qid=qid, k=10)))
    assert fitted.score(X, y, group=[SIZE] * N_QUERIES) == fitted.score(X, y, qid=qid) > 0.8


def test_group_and_scattered_qid_give_the_same_model(arrays, fitted):
    X, y, qid = arrays
    by_group = rs.Ranker(**SMALL).fit(X, y, group=[SIZE] * N_QUERIES)
    assert np.array_equal(by_group.predict(X), fitted.predict(X))
    # Round-robin order keeps the queries' order and the order inside each, so regrouping restores the same lists.
    mixed = np.argsort(np.tile(np.arange(SIZE), N_QUERIES), kind="stable")
    scattered = rs.Ranker(**SMALL).fit(X[mixed], y[mixed], qid=qid[mixed])
    assert np.array_equal(scattered.predict(X), fitted.predict(X))
    assert scattered.score(X[mixed], y[mixed], qid=qid[mixed]) == pytest.approx(fitted.score(X, y, qid=qid))


def test_eval_set_as_pyterrier_gives_it(arrays):
    X, y, _ = arrays
    half = len(X) // 2
    groups = np.full(N_QUERIES // 2, SIZE)
    ranker = rs.Ranker(**SMALL)
    same = ranker.fit(X[:half], y[:half], group=groups, eval_set=[(X[half:], y[half:])], eval_group=[groups])
    assert same is ranker
    curve = ranker.evals_result_["valid"]["ndcg@10"]
    assert len(curve) == 8
    assert ranker.best_score_ == max(curve)
    assert ranker.best_iteration_ == ranker.model_.n_trees == int(np.argmax(curve)) + 1
    assert ranker.predict(X).shape == y.shape


def test_several_eval_sets_another_metric_and_callbacks(arrays):
    X, y, qid = arrays
    seen = []
    pairs, qids = [(X[:150], y[:150]), (X[150:], y[150:])], [qid[:150], qid[150:]]
    ranker = rs.Ranker(**SMALL).fit(
        X, y, qid=qid, eval_set=pairs, eval_qid=qids, eval_metric="map", callbacks=[seen.append]
    )
    assert [list(values) for values in ranker.evals_result_.values()] == [["map"], ["map"]]
    assert [record.step for record in seen] == list(range(1, 9))
    one = rs.Ranker(**SMALL).fit(X, y, qid=qid, eval_set=pairs[0], eval_qid=qids[0])
    assert list(one.evals_result_) == ["valid"]
    with pytest.raises(ParameterError, match="eval_qid has 1 entries for 2 pairs"):
        ranker.fit(X, y, qid=qid, eval_set=pairs, eval_qid=qids[:1])
    with pytest.raises(ParameterError, match="eval_set, which is missing"):
        ranker.fit(X, y, qid=qid, eval_qid=qids)


def test_weights_are_used(arrays, fitted):
    X, y, qid = arrays
    ones = rs.Ranker(**SMALL).fit(X, y, qid=qid, sample_weight=np.ones(len(X)))
    assert np.array_equal(ones.predict(X), fitted.predict(X))
    other = rs.Ranker(**SMALL).fit(X, y, qid=qid, sample_weight=np.where(qid < 4, 1.0, 0.01))
    assert not np.array_equal(other.predict(X), fitted.predict(X))


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_tables_with_a_qid_column(arrays, fitted, kind):
    X, y, qid = arrays
    names = ["bm25", "pagerank", "clicks", "age"]
    columns = {"qid": qid, **{name: X[:, i] for i, name in enumerate(names)}}
    table = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[kind](columns)
    ranker = rs.Ranker(**SMALL).fit(table, y)
    assert ranker.feature_names_in_.tolist() == names
    assert ranker.model_.feature_names == tuple(names)
    assert np.array_equal(ranker.predict(table), fitted.predict(X))
    assert ranker.score(table, y) == fitted.score(X, y, qid=qid)
    moved = pd.DataFrame(X[:, [0, 2, 1, 3]], columns=["bm25", "clicks", "pagerank", "age"])
    assert np.array_equal(ranker.predict(moved), fitted.predict(X))
    renamed = pd.DataFrame(X, columns=["bm25", "clicks", "rank", "age"])
    with pytest.raises(
        DataError, match=r"lacks 1 of the 4 features of the training data \(pagerank\); .*did you mean 'rank'"
    ):
        ranker.predict(renamed)


def test_sparse_equals_dense(arrays):
    X, y, qid = arrays
    X = np.where(X > 0.3, X, 0)
    dense = rs.Ranker(**SMALL).fit(X, y, qid=qid)
    for matrix in (scipy.sparse.csr_matrix(X), scipy.sparse.csc_array(X)):
        ranker = rs.Ranker(**SMALL).fit(matrix, y, qid=qid)
        assert np.array_equal(ranker.predict(matrix), dense.predict(X))


def test_clone_and_pickle(arrays, fitted):
    X, _, _ = arrays
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "model_")
    with pytest.raises(NotFittedError):
        copy.predict(X)
    back = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(back.predict(X), fitted.predict(X))
    assert back.feature_importances_.tolist() == fitted.feature_importances_.tolist()


def test_grid_search_routes_query_ids(arrays):
    X, y, qid = arrays
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = rs.Ranker(**SMALL).set_fit_request(qid=True).set_score_request(qid=True)
        grid = {"leaves": np.array([2, 6]), "learning_rate": [0.1, 0.2]}
        search = GridSearchCV(ranker, grid, cv=GroupKFold(3), error_score="raise")
        search.fit(X, y, qid=qid, groups=qid)
    assert set(search.best_params_) == set(grid)
    assert 0.7 < search.best_score_ <= 1
    assert search.predict(X).shape == y.shape


def test_cross_validation_with_a_qid_column(arrays):
    X, y, qid = arrays
    frame = pd.DataFrame(X, columns=list("abcd")).assign(qid=qid)
    scores = cross_val_score(rs.Ranker(**SMALL), frame, y, groups=qid, cv=GroupKFold(3), error_score="raise")
    assert scores.shape == (3,)
    assert (scores > 0.7).all()


def test_bad_input_is_refused_with_words(arrays, fitted):
    X, y, qid = arrays
    with pytest.raises(
        DataError, match=r"exactly one of qid.*; in cross-validation keep a column 'qid' in X, or enable"
    ):
        rs.Ranker(**SMALL).fit(X, y)
    with pytest.raises(DataError, match=r"or a DataFrame with a 'qid' column$"):
        rs.Ranker(**SMALL).fit(X, y, qid=qid, group=[len(y)])
    with pytest.raises(DataError, match="X has 3 features but the model was trained on 4"):
        fitted.predict(X[:, :3])
    with pytest.raises(ParameterError, match=r"^leaves is 1"):
        rs.Ranker(leaves=1).fit(X, y, qid=qid)
    with pytest.raises(ParameterError, match="unknown metric"):
        rs.Ranker(metric="nonsense@3").fit(X, y, qid=qid)
    with pytest.raises(DataError, match="y has 3 values"):
        rs.Ranker(**SMALL).fit(X, y[:3], qid=qid)


def test_refitting_forgets_the_old_names(arrays):
    X, y, qid = arrays
    ranker = rs.Ranker(**SMALL).fit(pd.DataFrame(X, columns=list("abcd")), y, qid=qid)
    assert ranker.feature_names_in_.tolist() == list("abcd")
    ranker.fit(X, y, qid=qid)
    assert not hasattr(ranker, "feature_names_in_")
