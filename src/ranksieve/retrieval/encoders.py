"""Vectors of texts: functions that encode, and `SvdEncoder`, one that is fitted on the corpus itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve.errors import DataError, ParameterError, param
from ranksieve.retrieval.runs import rows_of
from ranksieve.retrieval.vector_files import VectorTable, row_of_ids
from ranksieve.text_formats import counted, some_of
from ranksieve.user_functions import calling

Encode = Callable[[list[str]], Any]

SVD = "svd:"  # before the dimension, where an encoder is named
NGRAMS = (3, 4)  # characters, within words and the spaces around them
LONGEST_TEXT = 10_000  # characters of a text that are encoded
FITTED_TEXTS = 20_000  # at most, spread evenly over the corpus
FITTED_CHARACTERS = 20_000_000  # at most: each makes about one number of the matrix to decompose
MOST_BUCKETS = 1 << 15
FEWEST_BUCKETS = 1 << 10
ITERATIONS = 4  # iterations of the randomized SVD


@dataclass(frozen=True, eq=False)
class SvdEncoder:
    """Encodes texts by latent semantic analysis of the character n-grams in the corpus.

    N-grams are hashed, weighted by tf·idf, and reduced by a truncated singular value decomposition. An index that is
    built with `vectors="svd:128"` fits it on its texts and stores it, so that queries are encoded, too.

    Attributes
    ----------
    weights
        The idf of every hash value.
    components
        (hash values, dimension): the right singular vectors.

    Examples
    --------
    >>> texts = ["red wine", "white wines", "a red car", "cars and wheels"]
    >>> encode = SvdEncoder.fit(texts, dimension=3)
    >>> vectors = encode(["winery", "wheel"])
    >>> vectors.shape, bool(vectors[0] @ encode(texts)[1] > vectors[1] @ encode(texts)[1])
    ((2, 3), True)
    """

    weights: np.ndarray
    components: np.ndarray

    @classmethod
    def fit(cls, texts: Sequence[str], dimension: int = 128, *, seed: int = 0) -> SvdEncoder:
        """Fit an encoder on texts, or on some of them if they are long; the dimension is at most their number."""
        from sklearn.utils.extmath import randomized_svd
        from threadpoolctl import threadpool_limits

        if not len(texts):
            raise DataError("got no texts to fit an encoder on; expected at least one")
        n_characters = sum(min(len(text), LONGEST_TEXT) for text in texts)
        texts = texts[:: max(1, -(-n_characters // FITTED_CHARACTERS))]
        n_buckets = min(max(FEWEST_BUCKETS, 1 << (16 * len(texts) - 1).bit_length()), MOST_BUCKETS)
        counts = _ngrams(texts, n_buckets)
        weights = np.log((1 + len(texts)) / (1 + np.bincount(counts.indices, minlength=n_buckets))) + 1
        with threadpool_limits(1, user_api="blas"):  # products of matrices on several threads could change bits
            _, _, components = randomized_svd(
                _weighted(counts, weights), min(dimension, len(texts)), n_iter=ITERATIONS, random_state=seed
            )
        return cls(weights.astype(np.float32), np.ascontiguousarray(components.T, dtype=np.float32))

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors of texts, one row each; zeros for a text without letters."""
        found: np.ndarray = _weighted(_ngrams(texts, len(self.weights)), self.weights) @ self.components
        return found.astype(np.float32, copy=False)


def _ngrams(texts: Sequence[str], n_buckets: int) -> Any:
    """How often each text has each hash value of an n-gram."""
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(
        analyzer="char_wb", ngram_range=NGRAMS, n_features=n_buckets, alternate_sign=False, norm=None, dtype=np.float32
    )
    return vectorizer.transform([text[:LONGEST_TEXT] for text in texts])


def _weighted(counts: Any, weights: np.ndarray) -> Any:
    """(1 + log tf) · idf, every row of length one."""
    from sklearn.preprocessing import normalize

    counts = counts.copy()
    counts.data = (1 + np.log(counts.data)) * weights[counts.indices].astype(np.float32)
    return normalize(counts, copy=False)


def svd_dimension(name: str) -> int:
    """The dimension that `svd:128` names."""
    digits = name.removeprefix(SVD)
    if not (digits.isascii() and digits.isdigit() and 1 <= len(digits) <= 5 and int(digits)):
        raise ParameterError(param("vectors"), f" is {name!r}; expected a dimension from 1, as in 'svd:128'")
    return int(digits)


def encoded(encode: Encode, texts: Sequence[str], dimension: int | None = None) -> np.ndarray:
    """What a function makes of texts, checked; of the given dimension if there is one."""
    failure = f"the encoder failed on {counted(text=len(texts))}"
    with calling(failure, "gets a list of texts and returns an array with one row for each"):
        made = np.asarray(encode(list(texts)))
    if made.ndim != 2 or len(made) != len(texts) or dimension not in (None, made.shape[1]):
        expected = (len(texts), "dimension" if dimension is None else dimension)
        raise DataError(
            f"the encoder returned an array of shape {made.shape} for {counted(text=len(texts))}; expected "
            f"({expected[0]}, {expected[1]})"
        )
    return VectorTable.of(made, "the vectors of the encoder").take(np.arange(len(made)))


GivenVectors = Encode | Mapping[str, np.ndarray]  # a function of texts, or vectors by query id


def as_query_vectors(given: Any, queries: Iterable[str], ids: list[str] | None = None) -> GivenVectors | None:
    """Vectors of queries given in Python: a function of texts, vectors by query id, an array or a `.npy` file.

    An array or a file has one row per query, in their order or with `ids`.
    """
    if given is None or callable(given):
        encode: Encode | None = given
        return encode
    wanted = list(queries)
    if not wanted:
        return {}
    if isinstance(given, Mapping):
        by_id = {str(id): vector for id, vector in given.items()}
        missing = [id for id in wanted if id not in by_id]
        if missing:
            raise DataError(
                f"{counted(query=len(missing))} of {len(wanted):,} without a vector ({some_of(missing, 3)}); expected "
                "one for each"
            )
        shapes = {id: np.shape(by_id[id]) for id in wanted}
        if len(set(shapes.values())) > 1:
            odd = next(id for id in wanted if shapes[id] != shapes[wanted[0]])
            raise DataError(
                f"the vector of query {odd!r} has the shape {shapes[odd]}, that of {wanted[0]!r} {shapes[wanted[0]]}; "
                "expected one dimension for all"
            )
        table = VectorTable.of(np.array([by_id[id] for id in wanted]), "query vectors")
        rows: np.ndarray = np.arange(len(wanted))
    else:
        table = VectorTable.of(given, "query vectors")
        rows, _ = row_of_ids(table, wanted, ids, "query")
    return dict(zip(wanted, table.take(rows), strict=True))


def vectors_of(frame: Any) -> GivenVectors | None:
    """Vectors of queries in the column `query_vec` of a DataFrame, as PyTerrier's encoders make it; None without."""
    if "query_vec" not in frame.columns:
        return None
    by_id = {str(id): vector for id, vector in rows_of(frame, ("qid", "query_vec"))}
    return as_query_vectors(by_id, by_id)


class QueryVectors:
    """Vectors of queries of one index: those given by id, or what a function or the index's own encoder makes."""

    def __init__(self, given: Any, dimension: int):
        self._given, self._dimension = given, dimension

    def of(self, texts: Sequence[str], ids: Sequence[str] | None = None) -> np.ndarray:
        """One row per query, in single precision; without ids, the rows of an array are in the order of the texts."""
        if not self._dimension:
            raise ParameterError(
                "the index has no vectors, which the first stages dense and hybrid need; index the corpus with ",
                param("vectors"),
            )
        given = self._given
        if callable(given):
            return encoded(given, texts, self._dimension).astype(np.float32) if len(texts) else self._none()
        if ids is None and isinstance(given, Mapping):
            raise ParameterError(
                param("query_vectors"), " have query ids, but these texts have none; give a function of texts, or an "
                "array with one row per text",
            )  # fmt: skip
        if ids is None and given is not None:  # an array or a file
            ids = [str(number) for number in range(len(texts))]
            given = as_query_vectors(given, ids)
        if given is None or ids is None or any(id not in given for id in ids):
            missing = [id or repr(text[:40]) for id, text in zip(ids or [""] * len(texts), texts, strict=True)]
            raise ParameterError(
                f"no vectors are given for the queries {some_of(missing, 3)}; the index encodes no queries by itself, "
                "and features dense.* and the first stages dense and hybrid need their vectors: give ",
                param("query_vectors"), " (a pipeline and the service: ", param("encode"), "), leave the features out "
                "with ", param("select", "!dense.*"), ", or index with svd:128 as ", param("vectors"),
            )  # fmt: skip
        found = np.stack([given[id] for id in ids]) if len(ids) else self._none()
        if found.shape[1] != self._dimension:
            raise DataError(
                f"the vectors of the queries have dimension {found.shape[1]}, those of the documents {self._dimension}"
                "; use the encoder of the documents for the queries"
            )
        return found.astype(np.float32)

    def _none(self) -> np.ndarray:
        return np.empty((0, self._dimension), np.float32)
