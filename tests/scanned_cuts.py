"""The best cuts of the features of one group of a histogram, by the vectorised search."""

import numpy as np
from numba import njit

from ranksieve.kernels.gain import cut_terms, gain_of_cut
from ranksieve.kernels.histograms import LANES
from ranksieve.kernels.splitting import scan_free_cuts


@njit
def scanned(group, n_bins, node, rules):
    left, left_hess = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    gains, cuts, terms = np.zeros(LANES), np.full(LANES, -1), cut_terms(node, rules)
    if terms.most_hess >= 0:
        scan_free_cuts(group, n_bins, terms, rules, left, left_hess, gains, cuts)
    for k in range(LANES):
        gains[k] = gain_of_cut(gains[k], node, rules, terms)
    return gains, cuts
