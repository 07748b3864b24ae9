"""The features of synthetic search data: their names, and how they depend on the hidden traits of a document."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranksieve.kernels.synthesis import BUCKET, COUNT, EXPONENTIAL, PLAIN, SHARE, SPARSE

# Hidden traits of a document; INTENT and LENGTH are its query's. The kernel relies on CLICKS being the last.
MATCH, TITLE, AUTHORITY, TOPIC, PROFILE, FRESH, SEMANTIC, SPAM, INTENT, LENGTH, CLICKS = range(11)
N_TRAITS = 11

FIELDS = ("body", "title", "anchor", "url", "heading", "whole")
MEASURES = (
    ("bm25", PLAIN),
    ("lm_dirichlet", PLAIN),
    ("lm_jelinek", PLAIN),
    ("tfidf", EXPONENTIAL),
    ("tf_sum", COUNT),
    ("tf_max", COUNT),
    ("tf_min", SPARSE),
    ("covered_terms", BUCKET),
    ("covered_share", SHARE),
    ("proximity", SPARSE),
    ("bigrams", COUNT),
    ("position", EXPONENTIAL),
)


@dataclass(frozen=True)
class Family:
    """Features that depend on the same traits, each with its own noise."""

    name: str
    size: int
    traits: tuple[int, int]
    weights: tuple[float, float]
    noise: float
    kinds: tuple[int, ...]
    missing: float = 0.0


FAMILIES = (
    Family("topic", 16, (TOPIC, LENGTH), (1.0, 0.0), 0.8, (PLAIN, BUCKET, SHARE, PLAIN)),
    Family("profile", 16, (PROFILE, LENGTH), (1.0, 0.0), 0.8, (PLAIN, SHARE, BUCKET, PLAIN)),
    Family("authority", 16, (AUTHORITY, SPAM), (1.0, -0.3), 1.0, (EXPONENTIAL, COUNT, PLAIN, SPARSE)),
    Family("fresh", 10, (FRESH, CLICKS), (1.0, 0.1), 0.8, (PLAIN, EXPONENTIAL, BUCKET)),
    Family("clicks", 16, (CLICKS, SEMANTIC), (1.0, 0.3), 0.9, (COUNT, SHARE, EXPONENTIAL, PLAIN), missing=0.45),
    Family("semantic", 12, (SEMANTIC, MATCH), (1.0, 0.2), 1.0, (PLAIN, SHARE)),
    Family("spam", 10, (SPAM, AUTHORITY), (1.0, -0.2), 1.0, (SHARE, SPARSE, PLAIN)),
    Family("query", 10, (INTENT, LENGTH), (1.5, 1.0), 0.3, (PLAIN, BUCKET, COUNT)),
)
NOISE_KINDS = (PLAIN, EXPONENTIAL, COUNT, SPARSE, SHARE, BUCKET)
FULL = 220


@dataclass(frozen=True)
class SearchFeatures:
    """One row per feature, for `fill_features`; feature 0 is the first stage's own score."""

    names: tuple[str, ...]
    terms: np.ndarray
    weights: np.ndarray
    noise: np.ndarray
    kinds: np.ndarray
    missing: np.ndarray
    by_query: np.ndarray

    @classmethod
    def draw(cls, n_features: int, rng: np.random.Generator) -> SearchFeatures:
        """The first features of the collection; how much each depends on its traits is random."""
        rows = _table()[: n_features - 1]
        rows += [_noise(number) for number in range(len(rows) + 1, n_features)]
        names, terms, weights, noise, kinds, missing = zip(
            ("bm25f", (MATCH, TITLE), (0.0, 0.0), 0.0, PLAIN, 0.0), *rows, strict=True
        )
        spread = rng.uniform(0.75, 1.35, (len(names), 3))
        return cls(
            names=names,
            terms=np.array(terms, dtype=np.int64),
            weights=(np.array(weights) * spread[:, :2]).astype(np.float32),
            noise=(np.array(noise) * spread[:, 2]).astype(np.float32),
            kinds=np.array(kinds, dtype=np.int64),
            missing=np.array(missing, dtype=np.float32),
            by_query=np.array([name.startswith("query_") for name in names]),
        )


def _table() -> list[tuple]:
    """The features after the first one, families mixed evenly, so that the first few have some of each."""
    placed = []
    matches = [(field, measure) for measure in MEASURES for field in FIELDS]
    for number, (field, (measure, kind)) in enumerate(matches):
        weights = (0.4, 0.9) if field in ("title", "heading", "url") else (0.9, 0.3)
        row = (f"{measure}_{field}", (MATCH, TITLE), weights, 1.0, kind, 0.0)
        placed.append((number / len(matches), row))
    for family in FAMILIES:
        for number in range(family.size):
            kind = family.kinds[number % len(family.kinds)]
            noise = family.noise * (0.7 + 0.6 * (number % 4) / 3)
            row = (f"{family.name}_{number + 1}", family.traits, family.weights, noise, kind, family.missing)
            placed.append((number / family.size, row))
    n_noise = FULL - 1 - len(placed)
    placed += [(number / n_noise, _noise(number + 1)) for number in range(n_noise)]
    return [row for _, row in sorted(placed, key=lambda item: item[0])]


def _noise(number: int) -> tuple:
    missing = 0.3 if number % 5 == 0 else 0.0
    return (f"other_{number}", (MATCH, TITLE), (0.0, 0.0), 1.0, NOISE_KINDS[number % len(NOISE_KINDS)], missing)
