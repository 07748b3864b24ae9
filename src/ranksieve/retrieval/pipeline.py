"""`Pipeline`: both stages as one object for serving and for re-ranking runs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ranksieve.data.features import RELATIVE
from ranksieve.errors import DataError, ModelError, ParameterError, RanksieveWarning, check_whole, param
from ranksieve.evaluation.explanations import Explanation
from ranksieve.forest.ctr_forest import trees_of
from ranksieve.forest.matrix import check_encoder, encoder_of, used_features
from ranksieve.forest.model import Model
from ranksieve.models.load import load
from ranksieve.retrieval.encoders import Encode, vectors_of
from ranksieve.retrieval.feature_extractor import FeatureExtractor, UserFeature
from ranksieve.retrieval.feature_names import depends_on_candidates
from ranksieve.retrieval.first_stage import FirstStage, as_first_stage
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.labelling import QueryCandidates
from ranksieve.retrieval.notes import Notes, logged_notes
from ranksieve.retrieval.provenance import Provenance, other_candidates, other_vectors
from ranksieve.retrieval.queries import Queries, as_queries
from ranksieve.retrieval.runs import Run, as_run, rows_of
from ranksieve.retrieval.searching import Hit, Retriever, check_text, hits

DEPTH = 1000  # candidates per query, where neither the caller nor the model gives it


class Scored(NamedTuple):
    """The candidates of one query with their scores and features, as `Pipeline.score` returns them.

    Attributes
    ----------
    docs
        The numbers of the documents in the index, in the order of the first stage.
    first_scores, scores
        Scores by the first stage and by the model.
    features
        Values of the model's features: an array (n_docs, n_features).

    Examples
    --------
    >>> import ranksieve as rs
    >>> corpus = [{"id": f"d{n}", "text": "red " * n + "wine " * (9 - n)} for n in range(9)]
    >>> index = rs.Index.build(corpus, "index3")
    >>> data = rs.retrieval.extract_features(index, {"q": "red wine"}, judgements={"q": {"d8": 1}})
    >>> found = rs.Pipeline(index, rs.train(data, trees=2, leaves=2, min_docs=1)).score("red")
    >>> [str(index.ids[doc]) for doc in found.docs[:2]], found.scores.shape
    (['d8', 'd7'], (8,))
    """

    docs: np.ndarray
    first_scores: np.ndarray
    scores: np.ndarray
    features: np.ndarray

    @property
    def order(self) -> np.ndarray:
        """The candidates as the model ranks them; equal scores keep the order of the first stage."""
        return np.argsort(-self.scores, kind="stable")


class Pipeline:
    """The first stage finds candidates, the model re-orders them.

    It holds the index open until it is closed (`close`, or `with Pipeline(…) as pipeline:`) or no longer used.

    Parameters
    ----------
    index
        An index, or its folder; or a `Retriever`, which has its own first stage and vectors of queries.
    model
        A model trained on features of an index with the same fields, or its file.
    stage
        The first stage: a `FirstStage`, a model's name, or a file that `FirstStage.save` has written. If None, the one
        that the model was trained with, or else that of the index.
    depth
        Candidates per query. If None, as many as the model was trained with, or 1000.
    extra
        Your own features that the model was trained with.
    encode
        A function texts → array that makes the vectors of queries, if the model or the first stage needs them and the
        index does not encode queries by itself.
    threads
        All cores if None; results do not depend on it.

    Attributes
    ----------
    warns
        Whether to warn where the model was trained on other candidates than it gets; `difference` returns the same
        message.

    Examples
    --------
    >>> import ranksieve as rs
    >>> corpus = [{"id": f"d{n}", "text": "red " * n + "wine " * (9 - n)} for n in range(9)]
    >>> queries, judgements = {"a": "red", "b": "red wine"}, {"a": {"d7": 1}, "b": {"d2": 1}}
    >>> index = rs.Index.build(corpus, "index")
    >>> data = rs.retrieval.extract_features(index, queries, judgements=judgements)
    >>> model = rs.train(data, trees=5, leaves=4, min_docs=1)
    >>> hits = rs.Pipeline(index, model).search("red", k=2)
    >>> hits[0].docno, hits[0].rank
    ('d7', 1)
    """

    def __init__(
        self,
        index: Index | Retriever | str | os.PathLike[str],
        model: Model | str | os.PathLike[str],
        *,
        stage: FirstStage | str | os.PathLike[str] | None = None,
        depth: int | None = None,
        extra: Mapping[str, UserFeature] | None = None,
        encode: Encode | None = None,
        threads: int | None = None,
    ):
        _check_arguments(index, model)
        self.model = load(model) if isinstance(model, str | os.PathLike) else model
        self._trained_on = Provenance.of_model(self.model)
        trained_depth = None if self._trained_on is None else self._trained_on.depth
        self.depth = (trained_depth or DEPTH) if depth is None else depth
        check_whole("depth", self.depth)
        if isinstance(index, Retriever):
            self.retriever, self._owns_index = Retriever.of(index, stage=stage, encode=encode), False
        else:
            chosen = as_first_stage(stage)
            if chosen is None and self._trained_on is not None:
                chosen = self._trained_on.first_stage()
            self._owns_index = not isinstance(index, Index)
            opened = index if isinstance(index, Index) else Index(index)
            self.retriever = Retriever(opened, chosen, query_vectors=encode, threads=threads)
        self.index = self.retriever.index
        self._threads = threads
        self.warns = True
        self._warned: set[str] = set()
        self._has_searched = False
        self._extractor = FeatureExtractor(self.index, self._needed(extra or {}), extra, threads)
        check_encoder(self.model, {"encoder": self.index.encoder_info}, f"the index {self.index.path}")
        names = self._extractor.names
        order = [names.index(name) for name in self.model.feature_names]
        self._order = None if order == list(range(len(names))) else np.array(order)

    def close(self) -> None:
        """Close the index, unless it was given opened; the pipeline cannot be used any more."""
        self.__dict__.pop("retriever", None)
        self.__dict__.pop("_extractor", None)
        if self._owns_index:
            self.index.close()

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _needed(self, extra: Mapping[str, UserFeature]) -> tuple[str, ...]:
        """The model's features, each of which the index or the user can make."""
        plain = (*FeatureExtractor(self.index).names, *extra)
        known = {*plain, *(RELATIVE + name for name in plain)}
        missing = [name for name in self.model.feature_names if name not in known]
        if missing:
            raise ModelError(
                f"the model needs {len(missing)} features that the index {self.index.path} does not have, such as "
                f"{missing[0]!r}; use the fields and numbers of the index it was trained on, and give features of your "
                "own as in training"
            )
        return tuple(self.model.feature_names)

    def search(self, text: str, k: int = 10) -> list[Hit]:
        """The k best documents for a text; ranks count from 1."""
        check_whole("k", k)
        found = self._score(text, stacklevel=4)
        best = found.order[:k]
        return hits(self.index.ids[found.docs[best]], found.scores[best])

    def score(self, text: str, run: Run | None = None) -> Scored:
        """The candidates of a text, or those that a run gives for the query id `""`, with their scores and features.

        `explain` has an example.
        """
        return self._score(text, run, stacklevel=4)

    def _score(self, text: str, run: Run | None = None, *, stacklevel: int) -> Scored:
        check_text(text)
        pairs = self._pairs({"": text}, run)
        if run is not None or not self._has_searched:  # later searches have the same provenance
            self._has_searched = self._has_searched or run is None
            self._warn(pairs, stacklevel=stacklevel)
        return next((found for _, found in self._scored(pairs, Notes())), self._no_documents)

    @property
    def _no_documents(self) -> Scored:
        empty = np.empty(0)
        return Scored(np.empty(0, np.int32), empty, empty, np.empty((0, len(self.model.feature_names)), np.float32))

    def explain(self, text: str, documents: str | Sequence[str] = ()) -> Explanation:
        """Why candidates of a text have their scores: the exact contribution of every feature. Needs a forest.

        Parameters
        ----------
        text
            The query.
        documents
            Ids of the candidates to explain, or one id; all if empty.

        Examples
        --------
        >>> import ranksieve as rs
        >>> corpus = [{"id": f"d{n}", "text": "red " * n + "wine " * (9 - n)} for n in range(9)]
        >>> index = rs.Index.build(corpus, "index2")
        >>> data = rs.retrieval.extract_features(index, {"a": "red"}, judgements={"a": {"d7": 1}})
        >>> pipeline = rs.Pipeline(index, rs.train(data, trees=2, leaves=4, min_docs=1))
        >>> scored, found = pipeline.score("red"), pipeline.explain("red", ["d7", "d1"])
        >>> len(scored.docs), scored.features.shape == (len(scored.docs), data.n_features)
        (8, True)
        >>> differences = found.why("d7", "d1")
        >>> bool(np.isclose(sum(one.difference for one in differences), found.scores[0] - found.scores[1]))
        True
        """
        forest = trees_of(self.model)
        documents = [documents] if isinstance(documents, str) and documents else documents
        found = self._score(text, stacklevel=4)
        row_of = {id: row for row, id in enumerate(self.index.ids[found.docs])}
        missing = [id for id in documents if id not in row_of]
        if missing:
            raise DataError(
                f"document {missing[0]!r} is not among the {len(found.docs)} candidates of the query; give documents "
                "that the first stage finds, or use a larger ",
                param("depth"),
            )
        rows = [row_of[id] for id in documents or row_of]
        features = found.features[rows]
        parts = forest.predict(features, contributions=True, threads=self._threads)
        return Explanation(
            model=forest,
            query_id=text,
            documents=tuple(self.index.ids[found.docs[rows]]),
            labels=np.zeros(len(rows)),
            features=features,
            scores=found.scores[rows],
            contributions=parts[:, :-1],
            expected=float(parts[0, -1]) if len(rows) else 0.0,
        )

    def rerank(
        self,
        queries: Any,
        run: Run | Any = None,
        *,
        query_vectors: Any = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Run:
        """Both stages for many queries, or the second on a run; features are computed and scored in one stream.

        What is left out is logged.

        Parameters
        ----------
        queries, run
            As `extract_features` takes them.
        query_vectors
            As `Retriever` takes them.
        progress
            Called with the number of queries that are done, and of all.
        """
        pairs = self._pairs(as_queries(queries), as_run(run), query_vectors)
        return self._rerank(replace(pairs, progress=progress))

    def _rerank(self, pairs: QueryCandidates) -> Run:
        self._warn(pairs, stacklevel=4)
        with logged_notes() as notes:
            return Run.from_lists(self._lists(pairs, notes))

    def transform(self, frame: Any) -> Any:
        """As PyTerrier's transformers: takes a DataFrame with `qid` and `query`, and `docno` and `score` to re-rank.

        Vectors of queries may be in the column `query_vec`.

        A stage of a PyTerrier pipeline is `ranksieve.pyterrier.reranker(pipeline)`.

        Returns
        -------
        DataFrame
            With `qid`, `query`, `docno`, `score` and `rank`, which counts from 0.
        """
        queries = as_queries(list(dict.fromkeys(rows_of(frame, ("qid", "query")))))
        run = Run.from_frame(frame) if "docno" in frame.columns else None
        result = self._rerank(self._pairs(queries, run, vectors_of(frame))).to_frame()
        result.insert(1, "query", result["qid"].map(queries))
        return result

    def _pairs(self, queries: Queries, run: Run | None = None, vectors: Any = None) -> QueryCandidates:
        if "retriever" not in self.__dict__:
            raise ParameterError("the pipeline was closed; make a new one")
        return QueryCandidates(queries, self.retriever.for_queries(queries, vectors), self.depth, run)

    def _lists(self, pairs: QueryCandidates, notes: Notes) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        for id, found in self._scored(pairs, notes):
            order = found.order
            yield id, self.index.ids[found.docs[order]], found.scores[order]

    def _scored(self, pairs: QueryCandidates, notes: Notes) -> Iterator[tuple[str, Scored]]:
        for ids, found, features in pairs.blocks(self._extractor, notes):
            rows = features if self._order is None else features[:, self._order]
            scores = self.model.predict(rows, threads=self._threads) if len(rows) else np.empty(0)
            for number, id in enumerate(ids):
                part = slice(found.offsets[number], found.offsets[number + 1])
                yield id, Scored(found.docs[part], found.scores[part], scores[part], rows[part])

    def _warn(self, pairs: QueryCandidates, stacklevel: int) -> None:
        """Warn, once, where the model was trained on other candidates or vectors and uses features that change."""
        for warning in self._differences(pairs) if self.warns else ():
            if str(warning) not in self._warned:
                self._warned.add(str(warning))
                warnings.warn(warning, stacklevel=stacklevel)

    def difference(self) -> str | None:
        """How the candidates of `search` differ from those that the model was trained on, if that changes features."""
        found = self._differences(self._pairs({"": ""}))
        return "; ".join(map(str, found)) or None

    def _differences(self, pairs: QueryCandidates) -> list[RanksieveWarning]:
        trained_on, used = self._trained_on, used_features(self.model)
        found = [other_vectors(encoder_of(self.model.info.get("candidates")), self.index.encoder_info, used)]
        if trained_on is not None and any(map(depends_on_candidates, used)):
            n_docs, of_run = self.index.n_docs, pairs.run is not None
            found.append(other_candidates(trained_on, pairs.provenance, used, n_docs=n_docs, of_run=of_run))
        return [warning for warning in found if warning is not None]


def check_order(model: str | os.PathLike[str], queries: str | os.PathLike[str]) -> None:
    """Called when `model` is not a model: if `queries` is one, the two were exchanged."""
    try:
        load(queries)
    except ModelError:
        return
    raise ParameterError(f"{queries}: is a model, and {model} is not; give the index, then the model, then the queries")


def _check_arguments(index: Any, model: Any) -> None:
    """Refuse an index in the place of the model, and a model in that of the index."""
    are_files = all(isinstance(one, str | os.PathLike) for one in (index, model))
    if isinstance(model, Index | Retriever) or (are_files and os.path.isfile(index) and os.path.isdir(model)):
        given = f"{index}, a file, and the model {model}, a folder" if are_files else "no index, and the model one"
        raise ParameterError(f"the index is {given}; give the index first, then the model")
