"""Feature values of synthetic documents."""

from __future__ import annotations

import numpy as np

from ranksieve.kernels.jit import njit

# How the value of a feature is made of its plain value x; cheap monotone shapes, the same bits on every machine.
PLAIN, EXPONENTIAL, COUNT, SPARSE, SHARE, BUCKET = range(6)
TILE = 64  # documents that are generated feature by feature before they are written row by row


@njit(cache=True)
def _mixed(word):
    """32 random bits from a counter, the hash lowbias32 (Wellons 2018): any value can be computed on its own."""
    word = np.uint32(word ^ (word >> np.uint32(16)))
    word = np.uint32(word * np.uint32(0x7FEB352D))
    word = np.uint32(word ^ (word >> np.uint32(15)))
    word = np.uint32(word * np.uint32(0x846CA68B))
    return np.uint32(word ^ (word >> np.uint32(16)))


@njit(cache=True)
def _nearly_normal(word):
    """A nearly normal number from a counter, mean 0 and variance 1: the sum of four uniform numbers."""
    high = _mixed(word)
    low = _mixed(np.uint32(high + np.uint32(0x9E3779B9)))
    half = np.uint32(0xFFFF)
    total = np.int32((high & half) + (high >> np.uint32(16)) + (low & half) + (low >> np.uint32(16)))
    return np.float32(total - np.int32(131070)) * np.float32(1.7320508 / 65536)


@njit(cache=True)
def _shape(kind, values):
    """Shape plain values in place; `(1 + x / 8) ** 8` stands for the exponential."""
    one, zero = np.float32(1), np.float32(0)
    for i in range(len(values)):
        x = values[i]
        if kind == EXPONENTIAL or kind == COUNT:  # noqa: SIM109
            x = max(one + x * np.float32(0.125), zero)
            x *= x
            x *= x
            x *= x
            if kind == COUNT:
                x = np.floor(x * np.float32(1.6))
        elif kind == SPARSE:
            x = max(x - np.float32(0.8), zero)
        elif kind == SHARE:
            x = np.float32(0.5) + np.float32(0.5) * x / (one + abs(x))
        elif kind == BUCKET:
            x = np.floor(x * np.float32(2))
        values[i] = x


@njit(cache=True)
def _fill_tile(first, latents, terms, weights, noise, kinds, missing, by_query, keys, tile):
    """`fill_features` of one tile, feature by feature, so that the inner loops have no branches."""
    n_features, n_docs = tile.shape
    clicks = latents[len(latents) - 1]
    for feature in range(n_features):
        values, key, scale = tile[feature], keys[feature], noise[feature]
        step = np.uint32(0) if by_query[feature] else np.uint32(1)
        one, two = latents[terms[feature, 0]], latents[terms[feature, 1]]
        one_weight, two_weight = weights[feature, 0], weights[feature, 1]
        for i in range(n_docs):
            counter = np.uint32(key + np.uint32(step * np.uint32(first + i)))
            x = one_weight * one[first + i] + two_weight * two[first + i]
            values[i] = x + scale * _nearly_normal(counter)
        _shape(kinds[feature], values)
        if missing[feature] > 0:
            for i in range(n_docs):
                chance = np.float32(_mixed(np.uint32(~np.uint32(key + np.uint32(first + i))))) * np.float32(2.0**-32)
                if chance < missing[feature] - np.float32(0.1) * clicks[first + i]:
                    values[i] = np.float32(np.nan)


@njit(cache=True, nogil=True)
def fill_features(latents, terms, weights, noise, kinds, missing, by_query, keys, out):
    """Fill `out` (documents x features) from the hidden traits (traits x documents) of the documents of one query.

    Feature f is `weights[f] @ latents[terms[f]]` plus noise, shaped by its kind. It is missing (NaN) with a chance of
    `missing[f]`, less for documents that are clicked (the last trait). Where `by_query` is set, all documents of the
    query share the noise, so features made of traits of the query have one value. `keys` (uint32 per feature) are the
    random streams.
    """
    n_docs, n_features = out.shape
    for number in range((n_docs + TILE - 1) // TILE):
        first = number * TILE
        stop = min(first + TILE, n_docs)
        tile = np.empty((n_features, stop - first), np.float32)
        _fill_tile(first, latents, terms, weights, noise, kinds, missing, by_query, keys, tile)
        for i in range(stop - first):
            for feature in range(n_features):
                out[first + i, feature] = tile[feature, i]
