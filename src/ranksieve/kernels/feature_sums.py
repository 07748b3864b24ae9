"""Weighted sums of a document's features: a linear model, or the first layer of a neural network."""

import numpy as np
from numba import prange

from ranksieve.kernels.jit import njit

SHARE = 1024  # documents a thread takes at a time


@njit(cache=True, nogil=True, parallel=True)
def feature_sums(values, row_step, column_step, n_docs, features, means, weights, biases, out):
    """`out[i] = biases + Σ_f (x[i, features[f]] - means[f]) · weights[f]`; a missing value counts as the mean.

    `values` is flat: document i has feature f at `values[i * row_step + f * column_step]`. Every document is summed on
    its own in the order of the features, so its sums do not depend on the others or on the number of threads.
    """
    width = len(biases)
    for part in prange((n_docs + SHARE - 1) // SHARE):
        for i in range(part * SHARE, min((part + 1) * SHARE, n_docs)):
            sums = out[i]
            for h in range(width):
                sums[h] = biases[h]
            for f in range(len(features)):
                x = np.float64(values[i * row_step + features[f] * column_step]) - means[f]
                if x == x:
                    for h in range(width):
                        sums[h] += x * weights[f, h]
