"""Queries that are in two data sets with the same labels and features."""

from __future__ import annotations

import numpy as np

import ranksieve as rs
from ranksieve.data.joined import JoinedSource, Piece
from ranksieve.data.leakage import feature_sums, same_documents, same_labels
from ranksieve.data.read import open_data
from samples import small_dataset


def changed(data: rs.Dataset, row: int) -> rs.Dataset:
    """The same with another value of a feature in a row."""
    features = data.features.copy()
    features[row, 1] += 1
    return rs.Dataset.from_arrays(features, data.labels, np.repeat(data.query_ids, data.lists.sizes))


def test_the_same_queries_are_found():
    train = small_dataset(n_queries=6)
    part = train.take_queries([4, 2])
    assert same_labels(train.lists, part.lists) == [str(train.query_ids[q]) for q in (2, 4)]
    assert same_documents(train, part, same_labels(train.lists, part.lists)) == same_labels(train.lists, part.lists)
    other = changed(part, len(part.labels) - 1)  # in the second query
    assert same_documents(train, other, same_labels(train.lists, other.lists)) == [str(train.query_ids[4])]


def test_other_labels_or_sizes_are_other_lists():
    lists = small_dataset(n_queries=3).lists
    shorter = lists.take_rows(np.arange(1, lists.n_docs))
    assert same_labels(lists, shorter) == [str(id) for id in lists.query_ids[1:]]
    texts = rs.Dataset.from_arrays([[1.0]], [1], ["a"]).lists
    assert same_labels(lists, texts) == same_labels(texts, lists) == []


def test_the_order_of_documents_and_small_labels_do_not_matter():
    train = small_dataset(n_queries=4)
    rows = np.concatenate([np.arange(a, b)[::-1] for a, b in zip(train.offsets[:-1], train.offsets[1:], strict=True)])
    other = rs.Dataset.from_arrays(
        train.features[rows], train.labels[rows], np.repeat(train.query_ids, train.lists.sizes)
    )
    ids = [str(id) for id in train.query_ids]
    assert train.lists.small().stored_labels.dtype == np.uint8
    assert same_labels(train.lists.small(), other.lists) == same_documents(train, other, ids) == ids


def test_a_column_in_another_order_is_other_data():
    ours, theirs = (
        rs.Dataset.from_arrays(features, [0, 0, 1, 0, 1], [7, 7, 7, 8, 8])
        for features in ([[1, 3], [2, 1], [3, 2], [4, 4], [5, 6]], [[3, 3], [1, 2], [2, 1], [4, 4], [5, 6]])
    )
    assert same_labels(ours.lists, theirs.lists) == ["7", "8"]
    assert same_documents(ours, theirs, ["7", "8"]) == ["8"]


def test_lists_of_one_label_count_only_beside_others():
    one = rs.Dataset.from_arrays([[1.0], [2.0], [3.0]], [0, 0, 0], [1, 1, 2]).lists
    two = rs.Dataset.from_arrays([[1.0], [2.0], [3.0], [4.0]], [0, 0, 0, 1], [1, 1, 3, 3]).lists
    assert same_labels(one, one) == [] and same_labels(two, two) == ["1", "3"]


def test_checksums_do_not_depend_on_the_file(tmp_path):
    data = small_dataset(n_queries=5)
    rs.io.write_letor(data, tmp_path / "data.txt")
    rs.io.write_parquet(data, tmp_path / "data.parquet")
    queries = [str(id) for id in data.query_ids[1:]]
    want = feature_sums(data, queries)
    assert list(want) == queries and len(set(want.values())) == len(queries)
    for options in ({}, {"missing": "nan"}):
        assert feature_sums(open_data(tmp_path / "data.txt", **options), queries) == want
    assert feature_sums(open_data(tmp_path / "data.parquet"), queries) == want
    few = [sum(one) % 2**64 for one in zip(*(_of_blocks(data, queries, rows) for rows in (3, 4)), strict=True)]
    assert few == [2 * want[query] % 2**64 for query in queries]


def test_the_blocks_of_a_query_add_up_to_the_checksum_of_all_its_documents():
    data = small_dataset(n_queries=3)
    queries = [str(id) for id in data.query_ids]
    parts = [Piece(data.take_rows(np.arange(start, data.n_docs, 3))) for start in range(3)]
    assert feature_sums(JoinedSource(parts), queries) == feature_sums(data, queries)


def _of_blocks(data, queries, rows):
    """Checksums of the rows, some at a time."""
    sums = dict.fromkeys(queries, 0)
    ids = np.repeat(data.query_ids.astype(str), data.lists.sizes)
    for start in range(0, data.n_docs, rows):
        part = slice(start, start + rows)
        block = rs.Dataset.from_arrays(data.features[part], data.labels[part], ids[part])
        for query, value in feature_sums(block, queries).items():
            sums[query] += value
    return list(sums.values())
