"""Trees on bins, plainly: gradients to fit, the leaf of a row, and the levels of an oblivious tree."""

import numpy as np


def gradients(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(n) * np.exp(rng.standard_normal(n)), rng.random(n)


def walk(tree, bins: np.ndarray) -> np.ndarray:
    """Leaf of each row, by walking."""
    leaves = np.zeros(len(bins), np.int64)
    for i, row in enumerate(bins):
        node = 0 if len(tree.splits) else -1
        while node >= 0:
            feature, split_bin, missing_left, left, right = tree.splits[node]
            goes_left = missing_left == 1 if row[feature] == 255 else row[feature] <= split_bin
            node = left if goes_left else right
        leaves[i] = ~node
    return leaves


def naive_levels(bins, n_bins, grad, hess, *, depth, min_docs, newton, l2):
    """The test of every level: (feature, bin, missing left) with the largest gain summed over the level's leaves."""

    def part(rows):
        weight = hess[rows].sum() + l2 if newton else len(rows)
        return grad[rows].sum() ** 2 / weight if weight > 0 else 0.0

    leaves, tests = [np.arange(len(bins))], []
    for _ in range(depth):
        best = (sum(map(part, leaves)) * (1 + 1e-9), None)
        for feature, limit in enumerate(n_bins):
            column = bins[:, feature]
            for missing_left in (False, True) if (column == 255).any() else (False,):
                for b in range(limit):
                    left = (column <= b) & (column != 255) | ((column == 255) & missing_left)
                    gain = 0.0
                    for rows in leaves:
                        sides = rows[left[rows]], rows[~left[rows]]
                        enough = min(map(len, sides)) >= min_docs
                        gain += sum(map(part, sides)) if enough else part(rows)
                    if gain > best[0] * (1 + 1e-12):
                        best = (gain, (feature, b, missing_left), left)
        if best[1] is None:
            break
        tests.append(best[1])
        leaves = [side for rows in leaves for side in (rows[best[2][rows]], rows[~best[2][rows]])]
    return tests, leaves
