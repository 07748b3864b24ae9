"""The features of an index: what stands before the dot in their names, and what each is."""

from __future__ import annotations

from ranksieve.data.features import RELATIVE
from ranksieve.kernels.expansion import N_TERMS as N_ADDED
from ranksieve.kernels.expansion import SIZES as EXPANDED
from ranksieve.kernels.feedback import MODELS, N_TERMS, SIZES
from ranksieve.kernels.lexical import N_LEXICAL
from ranksieve.kernels.neighbours import N_TERMS as N_COMPARED
from ranksieve.kernels.neighbours import NEAREST
from ranksieve.kernels.proximity import NEAR

FIRST_STAGE = "first.score"
STATISTICS = {"sum": "sum", "min": "smallest", "max": "largest", "mean": "mean", "variance": "variance"}


def _statistics(family: str, what: str) -> dict[str, str]:
    return {f"{family}_{name}": f"{word} over the query's terms of {what}" for name, word in STATISTICS.items()}


LEXICAL = {
    "bm25": "BM25, k1 = 1.2, b = 0.75",
    "bm25_flat": "BM25, k1 = 0.9, b = 0.4",
    "bm25_steep": "BM25, k1 = 2, b = 0.9",
    "tfidf_cosine": "cosine of the tf·idf vectors, tf as 1 + log tf",
    "lm_dirichlet": "log-likelihood ratio of the query, Dirichlet smoothing, μ = 1000",
    "lm_jelinek": "log-likelihood ratio of the query, Jelinek–Mercer smoothing, λ = 0.5",
    "lm_absolute": "log-likelihood ratio of the query, absolute discounting, δ = 0.7",
    "dfr_inl2": "divergence from randomness, InL2",
    "dfr_pl2": "divergence from randomness, PL2",
    **_statistics("tf", "term frequency"),
    **_statistics("tf_share", "term frequency divided by the length"),
    **_statistics("tfidf", "tf·idf"),
    "matched": "number of the query's terms that occur",
    "matched_share": "share of the query's terms that occur",
    "coverage": "idf of the query's terms that occur, divided by the idf of all its terms",
    "length": "number of terms",
}
PROXIMITY = {
    "window": "length of the shortest passage with all of the query's terms that occur; missing if none does",
    "span": "length from the first match to the last; missing if there is none",
    "position": "position of the first match; missing if there is none",
    "bigrams": "number of adjacent pairs of the query's terms that occur side by side",
    "run": "length of the longest part of the query that occurs word for word",
    "phrase": "occurrences of the whole query as a phrase",
    "ordered": f"neighbouring matches within {NEAR} positions, in the query's order",
    "unordered": f"neighbouring matches within {NEAR} positions",
    "nearness": "sum over neighbouring matches of idf · idf / distance²",
}
QUERY = {
    "query.words": "words of the query",
    "query.terms": "distinct terms of the query that occur in the index",
    **{f"query.idf_{name}": f"{word} of its terms' idf" for name, word in STATISTICS.items()},
}
FIRST = {
    FIRST_STAGE: "score of the first stage",
    "first.rank": "rank of the first stage, from 1",
    "first.share": "score of the first stage divided by the best score for the query",
}
assert len(LEXICAL) == N_LEXICAL


FEEDBACK = {
    **{f"feedback.cosine_{n}": f"cosine with the centroid of the {n} other best candidates" for n in SIZES},
    **{
        f"feedback.bm25_{n}": f"BM25 of the {N_TERMS} terms most typical of the first stage's {n} best candidates"
        for n in MODELS
    },
}
OPENED = "where the first occurrence, at position p, counts 1 + exp(-p / 8)"
ADDED = f"half of its weight on the {N_ADDED} terms with the largest weights in the first stage's"
EXPANSION = {
    "opening.bm25": f"BM25 over all fields, k1 = 1.2, b = 0.6, {OPENED}",
    **{
        f"expanded.opening_{n}": f"BM25 of an expanded query, {ADDED} {n} best, k1 = 1.2, b = 0.6, {OPENED}"
        for n in EXPANDED
    },
    **{f"expanded.bm25_{n}": f"BM25 of an expanded query, {ADDED} {n} best, k1 = 1.2, b = 0.6" for n in EXPANDED},
}
NEIGHBOURS = {
    f"neighbours.score_{n}": f"mean first-stage score, scaled from 0 to 1 within the list, of the {n} most similar "
    f"candidates, compared by their {N_COMPARED} terms of largest tf·idf; missing if none shares a term"
    for n in NEAREST
}
CENTROID = "dense.centroid"
DENSE_TOP = {f"dense.top_{n}": n for n in (1, 5, 20)}
DENSE = {  # of indexes with vectors
    "dense.cosine": "cosine of the vectors of query and document",
    "dense.dot": "dot product of the vectors of query and document",
    CENTROID: "distance of the document's vector to the centroid of the list's, all of length one",
    **{
        name: f"mean distance, 1 - cosine, to the first stage's {f'{n} best' if n > 1 else 'best'} (of the others); "
        "missing where there is no other"
        for name, n in DENSE_TOP.items()
    },
}
TABLES = (LEXICAL, PROXIMITY, QUERY, FIRST, FEEDBACK, EXPANSION, NEIGHBOURS, DENSE)
FAMILIES = {name.partition(".")[0] for table in TABLES for name in table} | {"number"}


def is_of_index(name: str) -> bool:
    """Whether an index computes a feature, by its name; others are of users.

    Examples
    --------
    >>> is_of_index("relative.bm25.title"), is_of_index("number.price"), is_of_index("clicks"), is_of_index("my.bm25")
    (True, True, False, False)
    """
    family, dot, _ = name.removeprefix(RELATIVE).partition(".")
    return bool(dot) and family in FAMILIES
