"""Categories on a cluster: the model of one machine, though every partition numbers them in its own order."""

from __future__ import annotations

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.errors import DataError

pd = pytest.importorskip("pandas")
PARAMS = {"trees": 5, "leaves": 6, "min_docs": 3, "cat_smooth": 1.0, "cat_l2": 0.5, "min_docs_per_group": 3}


def frames(n_parts: int = 3):
    rng = np.random.default_rng(0)
    quality = rng.normal(size=20)
    parts = []
    for part in range(n_parts):
        brand, x = rng.integers(0, 20, 120), rng.normal(size=120)
        label = np.digitize(quality[brand] + 0.3 * x, [0.3, 1.0])
        names = np.array([f"b{k}" for k in range(20)], object)[brand]
        names[rng.random(120) < 0.1] = None
        qid = np.repeat(np.arange(4), 30) + 4 * part
        parts.append(pd.DataFrame({"label": label, "qid": qid, "x": x, "brand": names, "code": brand % 7}))
    return parts


@pytest.mark.parametrize("exchange", ["rows", "histograms"])
def test_the_model_is_that_of_one_machine(client, exchange):
    *train, valid = frames(4)
    expected = rs.train(pd.concat(train), valid=valid, categorical="brand,code", verbose=False, **PARAMS)
    cluster = rs.cluster.Cluster(client, exchange=exchange)
    model = rs.train(train, valid=valid, categorical=["brand", "code"], cluster=cluster, verbose=False, **PARAMS)
    assert expected.categorical.any() and model.categories == expected.categories
    for name in ("feature", "threshold", "set_offsets", "set_codes", "leaf_values", "left", "right"):
        np.testing.assert_array_equal(getattr(model, name), getattr(expected, name), err_msg=name)
    assert model.info["history"] == expected.info["history"]
    scores = rs.cluster.predict(client, model, [valid])
    np.testing.assert_array_equal(np.concatenate(scores), model.predict(valid))


def test_partitions_with_other_categorical_features_are_refused(client):
    one, other, _ = frames()
    parts = [rs.DataFile(one, categorical="brand"), rs.DataFile(other, categorical="code", ignore="brand")]
    with pytest.raises(DataError, match="features"):
        rs.train(parts, cluster=rs.cluster.Cluster(client), verbose=False, **PARAMS)
    parts = [rs.DataFile(one, ignore="brand"), rs.DataFile(other, categorical="code", ignore="brand")]
    with pytest.raises(DataError, match="other categorical features than"):
        rs.train(parts, cluster=rs.cluster.Cluster(client), verbose=False, **PARAMS)
