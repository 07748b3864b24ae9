"""Blocks of a file: some of their runs, and the lists of them all."""

import numpy as np
import pytest

from ranksieve.data.blocks import Block, ListsBuilder
from ranksieve.errors import DataError


def block(labels, run_ids, run_lengths, **sides):
    labels = np.asarray(labels, np.float32)
    features = np.arange(2.0 * len(labels), dtype=np.float32).reshape(-1, 2)
    return Block(features, labels, run_ids, np.asarray(run_lengths), **sides)


def test_some_runs_of_a_block_are_a_block():
    whole = block([0, 1, 2, 3], ["a", "b", "a"], [1, 2, 1], doc_ids=np.array(list("wxyz")), weights=np.arange(4.0))
    some = whole.take_runs(np.array([True, False, True]))
    assert some.features.tolist() == [[0, 1], [6, 7]]
    assert some.labels.tolist() == [0, 3]
    assert some.run_ids == ["a", "a"] and some.run_lengths.tolist() == [1, 1]
    assert some.doc_ids.tolist() == ["w", "z"] and some.weights.tolist() == [0, 3]
    assert whole.take_runs(np.array([False, False, False])).n_docs == 0


def test_growing_lists_join_what_goes_on_and_fill_what_is_absent():
    growing = ListsBuilder("file", doc_ids=True)
    growing.append(block([1, 0, 2], ["a", "b"], [1, 2], weights=np.array([2.0, 3.0, 4.0])))
    growing.append(block([3, 0], ["b", "a"], [1, 1], doc_ids=np.array(["x", "y"], dtype=object)))
    lists = growing.finish()
    assert growing.n_docs == lists.n_docs == 5
    assert lists.query_ids.tolist() == ["a", "b"] and lists.offsets.tolist() == [0, 2, 5]
    assert lists.labels.tolist() == [1, 0, 0, 2, 3]
    assert lists.weights.tolist() == [2, 1, 3, 4, 1]
    assert lists.doc_ids.tolist() == [None, "y", None, None, "x"]
    assert lists.order.tolist() == [0, 4, 1, 2, 3]


def test_growing_lists_name_the_file_in_messages():
    with pytest.raises(DataError, match=r"^some\.txt: no documents"):
        ListsBuilder("some.txt").finish()
    growing = ListsBuilder("some.txt")
    growing.append(block([0, -1], ["a"], [2]))
    with pytest.raises(DataError, match=r"^some\.txt: the label of row 1 is -1"):
        growing.finish()
