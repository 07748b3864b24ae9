"""Objectives with plain loops, as slow as they are plain; random numbers are given."""

from __future__ import annotations

import itertools
import math


def xendcg(gains, scores, offsets, uniforms):
    """Gradients (minus the derivative) and second derivatives of XE-NDCG, term by term as in LightGBM."""
    grad, hess = [0.0] * len(gains), [0.0] * len(gains)
    for start, stop in itertools.pairwise(offsets):
        docs = range(start, stop)
        if len(docs) < 2:
            continue
        powers = {i: math.exp(scores[i] - max(scores[j] for j in docs)) for i in docs}
        rho = {i: powers[i] / sum(powers.values()) for i in docs}
        target = {i: gains[i] + 1 - uniforms[i] for i in docs}
        total = sum(target.values())
        first = {i: rho[i] - target[i] / total for i in docs}
        sum_1 = sum(first[i] / (1 - rho[i]) for i in docs)
        second = {i: rho[i] * (sum_1 - first[i] / (1 - rho[i])) for i in docs}
        sum_2 = sum(second[i] / (1 - rho[i]) for i in docs)
        third = {i: rho[i] * (sum_2 - second[i] / (1 - rho[i])) for i in docs}
        for i in docs:
            grad[i] = -(first[i] + second[i] + third[i])
            hess[i] = rho[i] * (1 - rho[i])
    return grad, hess


def yetiloss(gains, scores, offsets, uniforms, truncation, window):
    """Gradients of YetiLoss; `uniforms[draw][i]` makes the noise of a document in an order."""
    grad, hess = [0.0] * len(gains), [0.0] * len(gains)
    for start, stop in itertools.pairwise(offsets):
        docs = list(range(start, stop))
        best = sorted((gains[i] for i in docs), reverse=True)
        ideal = sum(gain / math.log2(rank + 2) for rank, gain in enumerate(best))
        if len(docs) < 2 or ideal <= 0:
            continue
        for draw in uniforms:
            noisy = {i: scores[i] + math.log(draw[i] / (1 - draw[i])) for i in docs}
            order = sorted(docs, key=lambda i: -noisy[i])
            for p, a in enumerate(order[:truncation]):
                for q in range(p + 1, min(p + window, len(order) - 1) + 1):
                    b = order[q]
                    if gains[a] == gains[b]:
                        continue
                    winner, loser = (a, b) if gains[a] > gains[b] else (b, a)
                    change = abs(gains[a] - gains[b]) * abs(1 / math.log2(p + 2) - 1 / math.log2(q + 2))
                    weight = change / ideal / len(uniforms)
                    rho = 1 / (1 + math.exp(scores[winner] - scores[loser]))
                    for i, sign in ((winner, 1), (loser, -1)):
                        grad[i] += sign * weight * rho
                        hess[i] += weight * rho * (1 - rho)
    return grad, hess


def position_biases(biases, positions, grad, hess, rate, l2):
    """The biases of positions from 1 on after one Newton step along the gradients of their documents."""
    new = list(biases)
    for p in range(1, len(biases)):
        own = [row for row, position in enumerate(positions) if position == p]
        first = sum(grad[row] for row in own) - l2 * len(own) * biases[p]
        new[p] += rate * first / (abs(sum(hess[row] for row in own) + l2 * len(own)) + 0.001)
    return new
