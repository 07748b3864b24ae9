"""Partitions in every form, and queries in two of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ranksieve as rs
from ranksieve.cluster.layout import make_shares, reassign
from ranksieve.cluster.partitions import Partition, PartitionedData, PartitionScan, list_partitions
from ranksieve.data.features import FeatureInfo
from ranksieve.errors import DataError
from samples import small_dataset

SMALL = {"trees": 4, "leaves": 6, "min_docs": 3, "negatives": 0.2, "min_negatives": 1}


def frame_of(data: rs.Dataset) -> pd.DataFrame:
    frame = pd.DataFrame(data.features, columns=[f"f{i + 1}" for i in range(data.n_features)])
    frame["label"] = data.labels
    frame["qid"] = [f"q{q}" for q in np.repeat(data.query_ids, data.lists.sizes)]
    return frame


def data_of(*partitions: dict[str, int]) -> PartitionedData:
    """A data set with the given sizes of queries in each partition."""
    scans = [
        PartitionScan(list(queries), np.array(list(queries.values())), FeatureInfo(("a",)), 1.0, None)
        for queries in partitions
    ]
    return PartitionedData([Partition(f"part-{i}", None) for i in range(len(scans))], scans)


def test_shares_are_balanced_in_order_and_split_no_query():
    data = data_of({"a": 10, "b": 10}, {"b": 5, "c": 30}, {"d": 20, "e": 21})
    shares = make_shares(data, [1, 1])
    assert [share.pieces for share in shares] == [((0, None), (1, None)), ((2, None),)], "55 and 41 documents"
    assert [share.portion.first_row for share in shares] == [0, 55]
    shares = make_shares(data, [1, 1, 2])
    assert [share.n_docs for share in shares] == [25, 30, 41]
    assert shares[0].pieces == ((0, None), (1, range(1))), "the query in two partitions is whole in one share"
    assert [share.portion.first_query for share in shares] == [0, 2, 3]
    assert sum(share.n_docs > 0 for share in make_shares(data_of({"a": 10, "b": 10}), [1] * 5)) == 2


def test_lost_shards_are_assigned_to_workers_with_their_copies():
    assert reassign({0: ["b"], 1: ["a"]}, ["a", "b", "c"], []) == {0: "b", 1: "a"}
    assert reassign({0: [], 1: ["a", "b"], 2: ["a"]}, ["a", "b", "c"], []) == {2: "a", 1: "b", 0: "c"}
    assert reassign({0: ["c"], 1: []}, ["a", "b", "c"], ["c"]) == {0: "a", 1: "b"}, "workers without a shard first"
    assert reassign({0: ["b"], 1: []}, ["a", "b"], ["a", "b"]) == {0: "b", 1: "a"}


def test_a_query_in_two_places_is_an_error_that_names_it():
    with pytest.raises(DataError, match="query a is in part-0 and again in part-1"):
        make_shares(data_of({"a": 1, "b": 2}, {"c": 1, "a": 2}), [1])


def test_files_are_found_by_pattern_and_folder(tmp_path):
    for name in ("b.parquet", "a.parquet", "c.txt"):
        (tmp_path / name).write_text("")
    for given in (tmp_path, str(tmp_path / "*.parquet")):
        assert [part.data for part in list_partitions(given)] == [
            str(tmp_path / "a.parquet"),
            str(tmp_path / "b.parquet"),
        ]
    assert [part.data for part in list_partitions(tmp_path / "c.txt")] == [str(tmp_path / "c.txt")]


@pytest.mark.parametrize("kind", ["parquet", "letor", "dask", "scattered"])
def test_the_model_does_not_depend_on_the_form_of_partitions(client, tmp_path, kind):
    data = small_dataset(n_queries=20)
    data = rs.Dataset.from_arrays(np.nan_to_num(data.features), data.labels, group=data.lists.sizes)
    one = rs.train(data, **SMALL)
    parts = [data.take_queries(np.arange(start, start + 5)) for start in range(0, 20, 5)]
    if kind == "dask":
        import dask.dataframe

        frame = pd.concat([frame_of(part) for part in parts], ignore_index=True)
        given = dask.dataframe.from_pandas(frame, npartitions=3, sort=False)  # splits queries
    elif kind == "scattered":
        given = [tmp_path / "whole.parquet"]  # one file for all workers
        rs.io.write_parquet(data, given[0])
    else:
        given = tmp_path
        write = rs.io.write_parquet if kind == "parquet" else rs.io.write_letor
        for i, part in enumerate(parts):
            write(part, tmp_path / f"part-{i}.parquet")
    model = rs.cluster.train(client, given, **SMALL)
    for name in ("feature", "threshold", "left", "right", "default_left", "leaf_values", "gain"):
        np.testing.assert_array_equal(getattr(model, name), getattr(one, name))


def test_errors_on_workers_are_raised_unchanged(client, tmp_path):
    with pytest.raises(DataError, match="not-there"):
        rs.cluster.train(client, [tmp_path / "not-there.parquet"], **SMALL)
    data = small_dataset()
    with pytest.raises(DataError, match="query 0 is in"):
        rs.cluster.train(client, [data, data], **SMALL)
    narrow = rs.Dataset.from_arrays(data.features[:, :3], data.labels, group=data.lists.sizes)
    with pytest.raises(DataError, match="features"):
        rs.cluster.train(client, [data], valid=[narrow], **SMALL)
    flat = rs.Dataset.from_arrays(data.features, np.ones(data.n_docs), group=data.lists.sizes)
    with pytest.raises(DataError, match="every label is 1"):
        rs.cluster.train(client, [flat], **SMALL)
