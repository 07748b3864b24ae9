"""Lists of the training data that are in validation or test data, too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranksieve.data.blocks import Source, blocks_of
from ranksieve.data.dataset import Dataset
from ranksieve.data.lists import Lists
from ranksieve.dtypes import FEATURE

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, with bits spread evenly


def same_labels(train: Lists, other: Lists) -> list[str]:
    """The ids of the queries that have the same labels in both, in any order of their documents.

    Lists in which all labels are equal say little: they count only if other lists are the same, too.

    Examples
    --------
    >>> from ranksieve.data.lists import lists_from_runs
    >>> train, other = lists_from_runs([1, 0, 2], ["a", "b"], [2, 1]), lists_from_runs([1, 0, 1], ["a", "b"], [2, 1])
    >>> same_labels(train, other)
    ['a']
    """
    ours, theirs = train.query_ids, other.query_ids
    if ours.dtype != theirs.dtype:
        ours, theirs = ours.astype(str), theirs.astype(str)
    shared, first, second = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    places = zip(shared.tolist(), first, second, strict=True)
    pairs = ((str(id), _labels(train, a), _labels(other, b)) for id, a, b in places)
    same = {id: labels[0] != labels[-1] for id, labels, others in pairs if np.array_equal(labels, others)}
    return list(same) if any(same.values()) else []


def _labels(lists: Lists, query: int) -> np.ndarray:
    """The labels of a query, sorted."""
    return np.sort(lists.stored_labels[lists.offsets[query] : lists.offsets[query + 1]])


def same_documents(train: Dataset | Source, other: Dataset | Source, queries: Sequence[str]) -> list[str]:
    """Those of the queries, given by id, whose documents have the same feature values in both; reads both once."""
    ours, theirs = feature_sums(train, queries), feature_sums(other, queries)
    return [query for query in queries if query in ours and ours[query] == theirs.get(query)]


def feature_sums(data: Dataset | Source, queries: Sequence[str]) -> dict[str, int]:
    """A checksum of the feature values of each of the queries.

    It does not depend on the order of documents, nor on whether features are 0, missing or left out.
    """
    sums: dict[str, int] = {}
    wanted = set(queries)
    for block in blocks_of(data):
        ids = [str(id) for id in block.run_ids]
        found = np.array([id in wanted for id in ids])
        if not found.any():
            continue
        block = block.take_runs(found)
        values = np.nan_to_num(np.ascontiguousarray(block.features, FEATURE)) + FEATURE(0)  # -0.0 becomes 0.0
        factors = np.arange(1, values.shape[1] + 1, dtype=np.uint64) * MULTIPLIER | np.uint64(1)
        rows = values.view(np.uint32) @ factors
        rows = (rows ^ (rows >> np.uint64(32))) * MULTIPLIER  # sums of rows alone are the same for exchanged values
        rows ^= rows >> np.uint64(29)
        parts = np.add.reduceat(rows, np.cumsum(block.run_lengths) - block.run_lengths)
        for id, part in zip(np.array(ids, object)[found], parts.tolist(), strict=True):
            sums[id] = (sums.get(id, 0) + part) % 2**64
    return sums
