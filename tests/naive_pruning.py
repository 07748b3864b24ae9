"""Pruning and re-weighting word by word: every candidate forest is scored anew."""

from __future__ import annotations

import numpy as np

from ranksieve.evaluation.metrics import mean

SAME = 1e-11  # means that differ by less are equal but for the order of their sums


def value(forest, data, metric, base=None):
    scores = data.lists.to_user_order(np.zeros(data.n_docs)) + forest.predict(data)
    scores = scores if data.lists.order is None else scores[data.lists.order]
    scores = scores if base is None else scores + base
    return mean(metric.per_query(data.lists.labels, scores, data.lists.offsets), data.lists.query_weights)


def quality_loss(forest, data, metric, n):
    """Trees in the order they go: always the one whose removal costs least, the newest of equal ones."""
    kept, removed = list(range(forest.n_trees)), []
    for _ in range(n):
        values = {t: value(forest.take([k for k in kept if k != t]), data, metric) for t in kept}
        best = max(values.values())
        gone = max(t for t in kept if values[t] > best - SAME)
        kept.remove(gone)
        removed.append(gone)
    return removed


def quality_loss_once(forest, data, metric, n):
    trees = range(forest.n_trees)
    values = {t: value(forest.take([k for k in trees if k != t]), data, metric) for t in trees}
    return sorted(trees, key=lambda t: (-round(values[t], 10), -t))[:n]


def score_loss(forest, data, n):
    outputs = np.stack([forest.take([t]).predict(data) for t in range(forest.n_trees)], axis=1)
    scores = outputs.sum(axis=1)
    shares = [(outputs[:, t][scores != 0] / scores[scores != 0]).mean() for t in range(forest.n_trees)]
    return sorted(range(forest.n_trees), key=lambda t: (shares[t], -t))[:n]


def reweight(forest, data, metric, samples, window, shrink, rounds):
    """Weights after every round."""
    weights = forest.weights.copy()
    reach = window * np.abs(weights).mean()
    history = [weights]
    for _ in range(rounds):
        now = value(forest.reweighted(weights), data, metric)
        target = weights.copy()
        for t in range(forest.n_trees):
            best, chosen = now, 0.0
            for offset in sorted(np.linspace(-reach, reach, samples), key=abs):
                trial = weights.copy()
                trial[t] += offset
                found = value(forest.reweighted(trial), data, metric)
                if found > best + SAME:
                    best, chosen = found, offset
            target[t] += chosen
        best, moved = now, weights
        for i in range(1, samples + 1):
            trial = weights + i / samples * (target - weights)
            found = value(forest.reweighted(trial), data, metric)
            if found > best + SAME:
                best, moved = found, trial
        weights = moved
        history.append(weights)
        reach *= shrink
    return history


def untied_lists(seed, sizes=(12, 1, 20, 5)):
    """Scores without ties within a list, as the kernels get them, and offsets."""
    rng = np.random.default_rng(seed)
    offsets = np.cumsum([0, *sizes])
    return rng, rng.permutation(offsets[-1]).astype(np.int64) * 8 - 100, offsets


def best_rows(scores, start, stop):
    """The rows of a list by descending score."""
    return start + np.argsort(-scores[start:stop])


def list_value(grades, terms, among):
    """The sum of the terms of a list of grades in rank order; documents of negative grade have none.

    `terms[grade, rank]`, or with `among` the number of documents that have terms and are ranked above in place of the
    grade. The last column is of ranks that count nothing.
    """
    total, gaining = 0, 0
    for rank, grade in enumerate(grades[: terms.shape[1] - 1]):
        if grade >= 0:
            total += terms[gaining if among else grade, rank]
            gaining += 1
    return total
