"""The features: their names, what each is, and the order of their columns."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ranksieve.data.features import RELATIVE
from ranksieve.errors import ParameterError, ParamName, did_you_mean
from ranksieve.kernels.expansion import N_TERMS as N_ADDED
from ranksieve.kernels.expansion import SIZES as EXPANDED
from ranksieve.kernels.feedback import MODELS, N_TERMS, SIZES
from ranksieve.kernels.lexical import N_LEXICAL
from ranksieve.kernels.neighbours import N_TERMS as N_COMPARED
from ranksieve.kernels.neighbours import NEAREST
from ranksieve.kernels.proximity import NEAR
from ranksieve.text_formats import comma_hint, some_of, split_commas

if TYPE_CHECKING:
    from ranksieve.retrieval.index import Index

FIRST_STAGE = "first.score"


class Feature(NamedTuple):
    """A feature: its name, `family.field`, and what it is."""

    name: str
    meaning: str


STATISTICS = {"sum": "sum", "min": "smallest", "max": "largest", "mean": "mean", "variance": "variance"}


def _statistics(family: str, what: str) -> dict[str, str]:
    return {f"{family}_{name}": f"{word} over the query's terms of {what}" for name, word in STATISTICS.items()}


LEXICAL = {
    "bm25": "BM25, k1 = 1.2, b = 0.75",
    "bm25_flat": "BM25, k1 = 0.9, b = 0.4",
    "bm25_steep": "BM25, k1 = 2, b = 0.9",
    "tfidf_cosine": "cosine of the tf·idf vectors, tf as 1 + log tf",
    "lm_dirichlet": "log-likelihood ratio of the query, Dirichlet smoothing, μ = 1000",
    "lm_jelinek": "log-likelihood ratio of the query, Jelinek–Mercer smoothing, half of it the collection",
    "lm_absolute": "log-likelihood ratio of the query, absolute discounting, δ = 0.7",
    "dfr_inl2": "divergence from randomness, InL2",
    "dfr_pl2": "divergence from randomness, PL2",
    **_statistics("tf", "term frequency"),
    **_statistics("tf_share", "term frequency divided by the length"),
    **_statistics("tfidf", "tf·idf"),
    "matched": "number of the query's terms that occur",
    "matched_share": "share of the query's terms that occur",
    "coverage": "share of the query's idf that occurs",
    "length": "number of terms",
}
PROXIMITY = {
    "window": "length of the shortest stretch with all terms that occur; missing where none does",
    "span": "length from the first match to the last; missing where none does",
    "position": "position of the first match; missing where there is none",
    "bigrams": "number of the query's neighbouring pairs found side by side",
    "run": "longest stretch of the query repeated word by word",
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
    "first.share": "score of the first stage divided by the query's best",
}
assert len(LEXICAL) == N_LEXICAL


FEEDBACK = {
    **{
        f"feedback.cosine_{n}": f"cosine with the centroid of the first stage's {n} best (of the others)" for n in SIZES
    },
    **{
        f"feedback.bm25_{n}": f"BM25 of the {N_TERMS} terms that say most about the first stage's {n} best"
        for n in MODELS
    },
}
OPENED = "counting 1 + exp(-p / 8) for the first occurrence, at place p"
ADDED = f"half of it the query, half the {N_ADDED} terms that weigh most in the first stage's"
EXPANSION = {
    "opening.bm25": f"BM25 over all fields, k1 = 1.2, b = 0.6, {OPENED}",
    **{
        f"expanded.opening_{n}": f"BM25 of an expanded query, {ADDED} {n} best, k1 = 1.2, b = 0.6, {OPENED}"
        for n in EXPANDED
    },
    **{f"expanded.bm25_{n}": f"BM25 of an expanded query, {ADDED} {n} best, k1 = 1.2, b = 0.6" for n in EXPANDED},
}
NEIGHBOURS = {
    f"neighbours.score_{n}": f"mean score in the first stage, from 0 to 1 within the list, of the {n} other candidates "
    f"most like it in their {N_COMPARED} terms of largest tf·idf; missing where none shares a term"
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


def depends_on_candidates(name: str) -> bool:
    """Whether a feature depends on the candidates and scores of the first stage, not on query and document alone."""
    kinds = (FIRST, FEEDBACK, NEIGHBOURS, DENSE_TOP)
    return name.startswith((RELATIVE, "expanded.")) or name == CENTROID or any(name in kind for kind in kinds)


def depends_on_list(name: str) -> bool:
    """Whether a feature depends on all other candidates of the list, and so on its depth."""
    return name.startswith(RELATIVE) or name in NEIGHBOURS or name == CENTROID


class Layout(NamedTuple):
    """Which features an index has, in the order of their columns."""

    columns: tuple[str, ...]  # fields and, where there are several, `all`
    positional: tuple[int, ...]  # numbers of the fields with positions
    features: tuple[Feature, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features)


class ChosenFeatures(NamedTuple):
    """Features to make: some as they are, some relative to the query's list."""

    plain: tuple[str, ...]
    relative: tuple[str, ...]  # without the prefix

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.plain, *(RELATIVE + name for name in self.relative))


def choose(names: Sequence[str], patterns: str | Sequence[str]) -> ChosenFeatures:
    """The features that match any of the patterns (`bm25*`, `*.title`, `relative.*`), as they are without patterns.

    A pattern with `!` in front leaves features out, in both kinds; without another pattern, of all. Patterns are
    separated by commas, or in a list.

    Examples
    --------
    >>> choose(["bm25.title", "bm25.text", "length.text"], ["length*", "relative.bm25.*"]).names
    ('length.text', 'relative.bm25.title', 'relative.bm25.text')
    >>> choose(["bm25.title", "bm25.text", "length.text"], "bm25*,!*.text").names
    ('bm25.title',)
    """
    patterns = split_commas(patterns) if isinstance(patterns, str) else patterns
    left_out = {name for pattern in patterns if pattern[:1] == "!" for name in _matches(names, pattern[1:], pattern)}
    names, patterns = [name for name in names if name not in left_out], [p for p in patterns if p[:1] != "!"]
    if not patterns:
        return ChosenFeatures(tuple(names), ())
    kinds: tuple[set[str], set[str]] = set(), set()
    for pattern in patterns:
        relative = pattern.startswith(RELATIVE)
        known = [name for name in names if not (relative and name in QUERY)]  # the same in a whole list
        kinds[relative].update(_matches(known, pattern.removeprefix(RELATIVE), pattern))
    plain_ones, relative_ones = (tuple(name for name in names if name in kind) for kind in kinds)
    return ChosenFeatures(plain_ones, relative_ones)


class _Listing(ParamName):
    """What lists all features, in a message."""

    @property
    def flag(self) -> str:
        return "ranksieve features INDEX --list"

    def __str__(self) -> str:
        return "ranksieve.retrieval.feature_names.layout_of(index).names"


def _matches(names: Sequence[str], plain: str, pattern: str) -> list[str]:
    found = [name for name in names if name == plain or fnmatch.fnmatchcase(name, plain)]
    if not found:
        raise ParameterError(
            f"no feature matches {pattern!r}; {did_you_mean(plain, names)}known: {some_of(names)}{comma_hint(names)}; "
            "list all with ",
            _Listing("list"),
        )
    return found


def layout_of(index: Index) -> Layout:
    """The features of an index; `all` is left out where there is one field only."""
    columns = index.columns if len(index.fields) > 1 else index.field_names
    positional = tuple(number for number, field in enumerate(index.fields) if field.positions)
    dense = DENSE if index.vectors is not None else {}
    features = _features(columns, [index.fields[number].name for number in positional], index.numbers, dense)
    return Layout(columns, positional, features)


def any_features() -> tuple[Feature, ...]:
    """The features of any index, with FIELD for a field's name and NAME for a number's."""
    return _features(["FIELD"], ["FIELD"], ["NAME"], DENSE)


def _features(
    columns: Sequence[str], positional: Sequence[str], numbers: Sequence[str], dense: Mapping[str, str]
) -> tuple[Feature, ...]:
    return (
        *(Feature(f"{family}.{column}", what) for column in columns for family, what in LEXICAL.items()),
        *(Feature(f"{family}.{field}", what) for field in positional for family, what in PROXIMITY.items()),
        *(Feature(name, what) for name, what in (QUERY | FIRST | FEEDBACK | EXPANSION | NEIGHBOURS).items()),
        *(Feature(name, what) for name, what in dense.items()),
        *(Feature(f"number.{name}", f"the document's {name}") for name in numbers),
    )
