"""Transformers for PyTerrier: a retriever, features, a ranker and a trained pipeline, without Java."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError, import_extra
from ranksieve.rankers.train import train
from ranksieve.retrieval.encoders import vectors_of
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.labelling import extract_features
from ranksieve.retrieval.pipeline import Pipeline
from ranksieve.retrieval.runs import Run, as_judgements, rows_of
from ranksieve.retrieval.searching import Retriever, retrieve

__all__ = ["features", "ranker", "reranker", "retriever"]

RESULTS = ("docno", "score", "rank")  # columns of results besides those of topics


def retriever(index: Index, depth: int = 1000, *, stage: Any = None, encode: Any = None) -> Any:
    """The first stage as a transformer: topics with `qid` and `query` → results with `docno`, `score` and `rank`.

    Parameters
    ----------
    index, depth, stage
        As for `ranksieve.retrieval.retrieve`.
    encode
        A function texts → array that makes vectors of queries, if the stage needs them, the index does not encode
        queries by itself, and topics have no column `query_vec`.

    Examples
    --------
    >>> import ranksieve as rs
    >>> corpus = [{"id": f"d{n}", "text": "red " * n + "wine " * (9 - n)} for n in range(9)]
    >>> index = rs.Index.build(corpus, "wine.index", replace=True)
    >>> found = rs.pyterrier.retriever(index, depth=2).search("red")
    >>> found["docno"].tolist(), found["rank"].tolist()
    (['d8', 'd7'], [0, 1])
    """

    def find(topics: Any) -> Run:
        return retrieve(index, _queries(topics), depth, stage, query_vectors=vectors_of(topics) or encode)

    return _classes().RetrieveTransformer(find)


def reranker(pipeline: Pipeline) -> Any:
    """A `Pipeline` as a transformer: re-ranks results, or does both stages for topics.

    Examples
    --------
    >>> import ranksieve as rs
    >>> corpus = [{"id": f"d{n}", "text": "red " * n + "wine " * (9 - n)} for n in range(9)]
    >>> index = rs.Index.build(corpus, "wine.index", replace=True)
    >>> data = rs.retrieval.extract_features(index, {"a": "red"}, judgements={"a": {"d7": 1}})
    >>> pipeline = rs.Pipeline(index, rs.train(data, trees=5, leaves=4, min_docs=1))
    >>> pipe = rs.pyterrier.retriever(index) >> rs.pyterrier.reranker(pipeline)
    >>> pipe.search("red")["docno"][0]
    'd7'
    """
    return _classes().RetrieveTransformer(lambda topics: Run.from_frame(pipeline.transform(topics)))


def features(
    index: Index,
    select: str | Sequence[str] = (),
    *,
    stage: Any = None,
    extra: Mapping[str, Any] | None = None,
    encode: Any = None,
) -> Any:
    """The features of an index as a transformer: adds the column `features` to results.

    Documents that the index does not have are left out. `names` are the features' names, once results were transformed.

    Parameters
    ----------
    index, select, stage, extra
        As for `ranksieve.retrieval.extract_features`.
    encode
        As for `retriever`.

    Examples
    --------
    >>> import ranksieve as rs
    >>> corpus = [{"id": f"d{n}", "text": "red " * n + "wine " * (9 - n)} for n in range(9)]
    >>> index = rs.Index.build(corpus, "wine.index", replace=True)
    >>> pipe = rs.pyterrier.retriever(index) >> rs.pyterrier.features(index, ["tf_sum.text"])
    >>> found = pipe.search("red")
    >>> found["docno"][0], found["features"][0].tolist()
    ('d8', [8.0])
    """

    def extract(results: Any) -> Dataset:
        longest = int(results.groupby("qid").size().max())
        given = Retriever(index, stage, query_vectors=vectors_of(results) or encode)
        run = Run.from_frame(results)
        return extract_features(given, _queries(results), run, depth=longest, select=select, extra=extra)

    return _classes().FeatureTransformer(extract)


def ranker(model: Any = None, *, feature_names: Sequence[str] | None = None, **params: Any) -> Any:
    """A ranker as PyTerrier's `Estimator`: scores results by their column `features`; `fit` trains it.

    Parameters
    ----------
    model
        A trained model; None for one that `fit` trains.
    feature_names
        Names for the columns of `features`, such as the `names` of `features`; f1, f2, … if None.
    **params
        As for `ranksieve.train`.

    Examples
    --------
    >>> import pandas as pd
    >>> import ranksieve as rs
    >>> topics = pd.DataFrame({"qid": ["1"], "query": ["red"]})
    >>> qrels = pd.DataFrame({"qid": ["1"], "docno": ["d7"], "label": [1]})
    >>> corpus = [{"id": f"d{n}", "text": "red " * n + "wine " * (9 - n)} for n in range(9)]
    >>> index = rs.Index.build(corpus, "wine.index", replace=True)
    >>> ranker = rs.pyterrier.ranker(trees=5, leaves=4, min_docs=1)
    >>> pipe = rs.pyterrier.retriever(index) >> rs.pyterrier.features(index) >> ranker
    >>> pipe.fit(topics, qrels, topics, qrels)
    >>> pipe(topics)["docno"][0]
    'd7'
    """
    return _classes().RankerTransformer(model, feature_names, params)


@functools.cache
def _classes() -> SimpleNamespace:
    """The classes of transformers; PyTerrier, which they inherit from, is imported when they are first used."""
    import_extra("pyterrier", "PyTerrier is not installed", "ranksieve[pyterrier]")
    import pyterrier as pt

    class RetrieveTransformer(pt.Transformer):
        """Retrieves or re-ranks; a function makes a `Run` of a table."""

        def __init__(self, find: Any) -> None:
            super().__init__()
            self._find = find

        def transform(self, topics: Any) -> Any:
            """Results, with the columns of the topics."""
            if not len(topics):
                return topics.assign(**{name: np.empty(0) for name in RESULTS})
            found = self._find(topics).to_frame()
            kept = topics[[name for name in topics.columns if name not in (*RESULTS, "features", "docid")]]
            kept = kept.astype({"qid": str})
            vectors = [name for name in ("query_vec",) if name in kept.columns]  # arrays, which cannot be compared
            counts = kept.drop(columns=vectors).groupby("qid").nunique(dropna=False)
            of_query = ["qid", *(name for name in counts.columns if (counts[name] <= 1).all()), *vectors]
            found = kept[of_query].drop_duplicates("qid").merge(found, on="qid", sort=False)
            if "docno" not in topics.columns or len(of_query) == len(kept.columns):
                return found
            own = kept.drop(columns=of_query[1:]).assign(docno=topics["docno"].astype(str))  # columns of documents
            return found.merge(own.drop_duplicates(["qid", "docno"]), on=["qid", "docno"], how="left", sort=False)

    class FeatureTransformer(pt.Transformer):
        """Adds features; a function makes a `Dataset` of results."""

        def __init__(self, extract: Any) -> None:
            super().__init__()
            self._extract, self.names = extract, ()

        def transform(self, results: Any) -> Any:
            """The results with a column `features`."""
            if not len(results):
                return results.assign(features=[])
            data = self._extract(results)
            self.names = data.feature_names
            qids = np.repeat(data.query_ids.astype(str), np.diff(data.offsets))
            rows = dict(zip(zip(qids, data.lists.doc_ids, strict=True), data.rows(0, data.n_docs), strict=True))
            keys = list(zip(results["qid"].astype(str), results["docno"].astype(str), strict=True))
            known = [key in rows for key in keys]
            return results[known].assign(features=[rows[key] for key in keys if key in rows])

    class RankerTransformer(pt.Estimator):
        """Scores features with a model, which `fit` trains."""

        def __init__(self, model: Any, feature_names: Sequence[str] | None, params: Mapping[str, Any]) -> None:
            super().__init__()
            self.model, self._names, self._params = model, feature_names, params

        def transform(self, results: Any) -> Any:
            """The results with scores and ranks of the model; equal scores keep their order."""
            if self.model is None:
                raise DataError("the ranker has no model yet; call fit, or give a trained model")
            scores = self.model.predict(_matrix(results)) if len(results) else np.empty(0)
            ranked = results.assign(score=scores)
            order = np.lexsort((np.arange(len(ranked)), -ranked["score"], ranked.groupby("qid", sort=False).ngroup()))
            ranked = ranked.iloc[order].reset_index(drop=True)
            return ranked.assign(rank=ranked.groupby("qid", sort=False).cumcount())

        def fit(self, results: Any, qrels: Any, valid_results: Any = None, valid_qrels: Any = None) -> Any:
            """Train on results with features and on judgements; validation data decide when to stop."""
            valid = None if valid_results is None else _labelled(valid_results, valid_qrels, self._names)
            self.model = train(_labelled(results, qrels, self._names), valid=valid, **self._params)
            return self

    made = (RetrieveTransformer, FeatureTransformer, RankerTransformer)
    return SimpleNamespace(**{one.__name__: one for one in made})


def _queries(table: Any) -> dict[str, str]:
    """The texts of the queries of topics or results."""
    return {str(id): text for id, text in rows_of(table, ("qid", "query"))}


def _matrix(results: Any) -> np.ndarray:
    if "features" not in results.columns:
        raise DataError("the results have no column 'features'; put rs.pyterrier.features before the ranker")
    return np.stack(list(results["features"])).astype(np.float32)


def _labelled(results: Any, qrels: Any, names: Sequence[str] | None) -> Dataset:
    """Results with features as a data set, labelled by judgements."""
    if not len(results):
        raise DataError("there are no results to train on; check the topics and the stages before the ranker")
    judged = as_judgements(qrels) or {}
    keys = [(str(id), str(doc)) for id, doc in rows_of(results, ("qid", "docno"))]
    return Dataset.from_arrays(
        _matrix(results),
        [judged.get(id, {}).get(doc, 0.0) for id, doc in keys],
        qid=np.array([id for id, _ in keys], dtype=object),
        doc_ids=np.array([doc for _, doc in keys], dtype=object),
    ).with_features(names)
