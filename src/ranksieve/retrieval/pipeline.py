"""`Pipeline`: both stages as one object for serving and for re-ranking runs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ranksieve.errors import ModelError, RanksieveWarning
from ranksieve.forest.model import Model
from ranksieve.retrieval.features import FeatureMaker, UserFeature
from ranksieve.retrieval.index import Hit, Index
from ranksieve.retrieval.labelling import Pairs
from ranksieve.retrieval.models import FirstStage
from ranksieve.retrieval.notes import Notes, remarks
from ranksieve.retrieval.origins import depends, difference
from ranksieve.retrieval.queries import Queries, as_queries
from ranksieve.retrieval.relative import RELATIVE
from ranksieve.retrieval.runs import Run, as_run, rows_of
from ranksieve.retrieval.searching import Searcher, check_depth


class Pipeline:
    """The first stage finds candidates, the model re-orders them.

    Parameters
    ----------
    index
        An index, or its folder.
    model
        A model trained on features of an index with the same fields, or its file.
    stage
        The first stage, the same as in training.
    depth
        Candidates per query.
    extra
        Your own features that the model was trained with.
    threads
        All cores where not given; results do not depend on it.

    Examples
    --------
    >>> import tempfile
    >>> import ranksieve as rs
    >>> corpus = [{"id": f"d{n}", "text": "red " * n + "wine " * (9 - n)} for n in range(9)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index = rs.Index.build(corpus, f"{folder}/index")
    ...     data = index.features({"a": "red", "b": "red wine"}, judgements={"a": {"d7": 1}, "b": {"d2": 1}})
    ...     model = rs.train(data, trees=5, leaves=4, min_docs=1)
    ...     hits = rs.Pipeline(index, model).search("red", k=2)
    >>> hits[0].docno, hits[0].rank
    ('d7', 1)
    """

    def __init__(
        self,
        index: Index | str | os.PathLike[str],
        model: Model | str | os.PathLike[str],
        *,
        stage: FirstStage | None = None,
        depth: int = 1000,
        extra: Mapping[str, UserFeature] | None = None,
        threads: int | None = None,
    ):
        from ranksieve.rankers.load import load

        self.index = index if isinstance(index, Index) else Index(index)
        self.model = load(model) if isinstance(model, str | os.PathLike) else model
        check_depth(depth)
        self.depth = depth
        self._threads = threads
        self._told: set[str] = set()
        self._depends = depends(self.model)
        self._has_searched = False
        self._searcher = Searcher(self.index, stage, threads)
        self._maker = FeatureMaker(self.index, self._needed(extra or {}), extra, threads)
        names = self._maker.names
        order = [names.index(name) for name in self.model.feature_names]
        self._order = None if order == list(range(len(names))) else np.array(order)

    def _needed(self, extra: Mapping[str, UserFeature]) -> tuple[str, ...]:
        """The model's features, each of which the index or the user can make."""
        plain = (*FeatureMaker(self.index).names, *extra)
        known = {*plain, *(RELATIVE + name for name in plain)}
        missing = [name for name in self.model.feature_names if name not in known]
        if missing:
            raise ModelError(
                f"the model needs {len(missing)} features that the index {self.index.path} does not give, such as "
                f"{missing[0]!r}; use the fields and numbers of the index it was trained on, and give features of your "
                "own as in training"
            )
        return tuple(self.model.feature_names)

    def search(self, text: str, k: int = 10) -> list[Hit]:
        """The k best documents for a text; ranks count from 1."""
        check_depth(k, "k")
        pairs = Pairs({"": text}, self._searcher, self.depth)
        if not self._has_searched:  # the origin of later searches is the same
            self._has_searched = True
            self._warn(pairs, stacklevel=3)
        _, docs, scores = next(self._lists(pairs, Notes()))
        best = zip(docs[:k], scores[:k], strict=True)
        return [Hit(doc, float(score), rank) for rank, (doc, score) in enumerate(best, 1)]

    def rerank(self, queries: Any, run: Run | Any = None, *, notes: Notes | None = None) -> Run:
        """Both stages for many queries, or the second on a run; features are computed and scored in one stream.

        Parameters
        ----------
        queries, run
            As `Index.features` takes them.
        notes
            Gets remarks on what was left out; the logger `ranksieve` tells them if None.
        """
        return self._rerank(as_queries(queries), as_run(run), notes)

    def _rerank(self, queries: Queries, run: Run | None, notes: Notes | None) -> Run:
        pairs = Pairs(queries, self._searcher, self.depth, run)
        self._warn(pairs, stacklevel=4)
        with remarks(notes) as taken:
            return Run.from_lists(self._lists(pairs, taken))

    def _warn(self, pairs: Pairs, stacklevel: int) -> None:
        """Warn, once, where the model has learned from other candidates and depends on that."""
        if not self._depends:
            return
        text = difference(self.model, pairs.origin, self.index.n_docs, of_run=pairs.run is not None)
        if text is not None and text not in self._told:
            self._told.add(text)
            warnings.warn(RanksieveWarning(text), stacklevel=stacklevel)

    def transform(self, frame: Any) -> Any:
        """PyTerrier's way: a DataFrame with `qid` and `query`, and `docno` and `score` if there are candidates already.

        A stage of a PyTerrier pipeline is `pt.apply.generic(pipeline.transform)`.

        Returns
        -------
        DataFrame
            With `qid`, `query`, `docno`, `score` and `rank`, which counts from 0.
        """
        queries = as_queries(list(dict.fromkeys(rows_of(frame, ("qid", "query")))))
        run = Run.from_frame(frame) if "docno" in frame.columns else None
        result = self._rerank(queries, run, None).to_frame()
        result.insert(1, "query", result["qid"].map(queries))
        return result

    def _lists(self, pairs: Pairs, notes: Notes) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        for ids, found, features in pairs.blocks(self._maker, notes):
            rows = features if self._order is None else features[:, self._order]
            scores = self.model.predict(rows, threads=self._threads) if len(rows) else np.empty(0)
            for number, id in enumerate(ids):
                docs, _ = found.list_of(number)
                mine = scores[found.offsets[number] : found.offsets[number + 1]]
                order = np.argsort(-mine, kind="stable")  # equal scores stay as the first stage has them
                yield id, self.index.ids[docs[order]], mine[order]
