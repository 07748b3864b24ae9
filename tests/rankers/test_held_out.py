import numpy as np
import pytest

import ranksieve as rs
from ranksieve.data.binned import bin_data
from ranksieve.data.sampling import split_queries
from ranksieve.errors import ParameterError
from ranksieve.params import Params

SMALL = {"leaves": 4, "min_docs": 3, "early_stopping": 3, "learning_rate": 0.3}


@pytest.fixture(scope="module")
def lists():
    return rs.synth.cubic(30)


def predictions(model, data):
    return model.predict(data).tolist()


def test_a_fifth_of_the_queries_stops_training(lists):
    train, valid = (lists.take_queries(part) for part in split_queries(lists.n_queries, (0.8, 0.2), seed=7))
    model, expected = rs.train(lists, seed=7, **SMALL), rs.train(train, valid=valid, seed=7, **SMALL)
    assert model.info["history"] == expected.info["history"] and predictions(model, lists) == predictions(
        expected, lists
    )
    assert model.info["data"] == {
        "documents": 1200,
        "queries": 24,
        "valid": {"valid": {"documents": 300, "queries": 6}},
    }
    assert model.n_trees < 1000


def test_the_same_queries_of_arrays_bins_files_and_tables(lists, tmp_path):
    rs.io.write_parquet(lists, tmp_path / "lists.parquet")
    rs.io.write_letor(lists, tmp_path / "lists.txt")
    table = rs.read(tmp_path / "lists.parquet")
    given = [lists, tmp_path / "lists.parquet", tmp_path / "lists.txt", table]
    models = [rs.train(data, seed=3, **SMALL) for data in given]
    assert len({tuple(predictions(model, lists)) for model in models}) == 1
    binned = rs.train(bin_data(lists), seed=3, **SMALL)  # thresholds were learned from all queries
    assert binned.info["data"] == models[0].info["data"]
    assert predictions(rs.train(lists, seed=4, **SMALL), lists) != predictions(models[0], lists)


def test_which_parameters_hold_out_queries():
    assert Params().held_out == Params(leaves=4).held_out == 0.2
    assert Params(trees=10).held_out == Params(early_stopping=0).held_out == Params(valid_fraction=0).held_out == 0
    assert Params(trees=10, early_stopping=5).held_out == 0.2
    assert Params(trees=10, valid_fraction=0.5).held_out == 0.5
    assert Params(algo="lambdarank").held_out == 0.2 and Params(algo="lambdarank", epochs=5).held_out == 0
    assert Params(algo="mcrank").held_out == Params(algo="lightgbm").held_out == Params(algo="xcleaver").held_out == 0.2
    assert Params(algo="ranksvm").held_out == 0


def test_nothing_is_held_out_where_each_document_has_a_value(lists):
    counter = rs.callbacks.SelectionCounter()
    model = rs.train(lists, counter=counter, trees=2, valid_fraction=0.2, leaves=4, min_docs=3)
    assert model.info["data"]["queries"] == 30 and len(counter.counts) == lists.n_docs
    model = rs.train(lists, init=np.zeros(lists.n_docs), trees=2, valid_fraction=0.2, leaves=4, min_docs=3)
    assert model.info["data"]["queries"] == 30


def test_a_handful_of_queries_is_not_divided(caplog):
    with caplog.at_level("INFO", logger="ranksieve"):
        model = rs.train(rs.synth.cubic(4), trees=2, valid_fraction=0.2, leaves=4, min_docs=3)
    assert model.info["data"]["queries"] == 4 and "4 queries are too few to hold out" in caplog.text


def test_size_prunes_on_held_out_queries(lists):
    assert rs.train(lists, size=3, **SMALL | {"early_stopping": 20}).n_trees == 3
    with pytest.raises(ParameterError, match="size needs validation data"):
        rs.train(lists, size=3, trees=10, leaves=4)


def test_a_cluster_asks_for_validation_data(lists):
    with pytest.raises(ParameterError, match=r"no queries are held out on a cluster; give valid .*, or trees"):
        rs.cluster.train(None, [lists], leaves=4)


def test_the_estimator_holds_out_queries(lists):
    qid = np.repeat(np.arange(30), np.diff(lists.offsets))
    ranker = rs.Ranker(validation_fraction=0.3, **SMALL).fit(lists.features, lists.labels, qid=qid)
    assert ranker.model_.info["data"]["queries"] == 21
    assert 0 < ranker.best_iteration_ < 1000 and ranker.best_score_ is not None
