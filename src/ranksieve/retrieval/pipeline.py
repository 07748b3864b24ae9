"""`Pipeline`: both stages as one object for serving and for re-ranking runs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ranksieve.errors import ModelError, ParameterError
from ranksieve.forest.model import Model
from ranksieve.retrieval.families import of_candidates, of_list
from ranksieve.retrieval.features import FeatureMaker, UserFeature
from ranksieve.retrieval.index import Hit, Index
from ranksieve.retrieval.labelling import Pairs, stage_and_depth
from ranksieve.retrieval.models import FirstStage, spelling
from ranksieve.retrieval.notes import Notes
from ranksieve.retrieval.queries import Queries, as_queries
from ranksieve.retrieval.relative import RELATIVE
from ranksieve.retrieval.runs import Run, pandas_module
from ranksieve.retrieval.searching import Searcher


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
        if depth < 1:
            raise ParameterError(f"depth is {depth}; expected a whole number from 1")
        self.depth = depth
        self._threads = threads
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
                f"{missing[0]!r}; use the fields and numbers of the index it was trained on, or pass your own in extra "
                "(--own)"
            )
        return tuple(self.model.feature_names)

    def search(self, text: str, k: int = 10) -> list[Hit]:
        """The k best documents for a text; ranks count from 1."""
        pairs = Pairs({"": text}, self._searcher, self.depth)
        self._check_origin(pairs)
        _, docs, scores = next(self._lists(pairs, Notes()))
        best = zip(docs[:k], scores[:k], strict=True)
        return [Hit(doc, float(score), rank) for rank, (doc, score) in enumerate(best, 1)]

    def rerank(self, queries: Any, run: Run | None = None, *, notes: Notes | None = None) -> Run:
        """Both stages for many queries, or the second on a run; features are computed and scored in one stream."""
        pairs = Pairs(as_queries(queries), self._searcher, self.depth, run)
        self._check_origin(pairs)
        return Run.from_lists(self._lists(pairs, notes if notes is not None else Notes()))

    def _check_origin(self, pairs: Pairs) -> None:
        """Warn where the model has learned from candidates of another first stage, or from longer or shorter lists."""
        learned = getattr(self.model, "info", {}).get("candidates")
        if learned is None or learned == pairs.origin:
            return
        stage, depth = stage_and_depth(learned)
        if stage == stage_and_depth(pairs.origin)[0]:
            self._check_depth(depth)
            return
        bound = sum(map(of_candidates, self.model.feature_names))
        if pairs.run is None:
            warnings.warn(
                f"the model has learned from candidates of '{learned}' and these are of '{pairs.origin}'; the first "
                "stage's scores and lists may differ, so use the same first stage or such a run, or train on features "
                "of this one",
                stacklevel=3,
            )
        elif bound and not self._made(pairs.run, pairs.queries, stage):
            warnings.warn(
                f"the model has learned from candidates of '{learned}' and re-orders a run with other scores; {bound} "
                f"of its {len(self.model.feature_names)} features are of the first stage (first.*, feedback.*, "
                "expanded.*, neighbours.*, relative.*) and mean something else there, so train on features of such "
                "runs (--run)",
                stacklevel=3,
            )

    def _check_depth(self, learned: int | None) -> None:
        bound, n_docs = sum(map(of_list, self.model.feature_names)), self.index.n_docs
        if learned is not None and bound and min(learned, n_docs) != min(self.depth, n_docs):
            warnings.warn(
                f"the model has learned from the {learned} best candidates of a query and gets the {self.depth} best; "
                f"{bound} of its {len(self.model.feature_names)} features depend on the whole list (neighbours.*, "
                f"relative.*), so use depth={learned} (--depth), or train on features of this depth",
                stacklevel=4,
            )

    def _made(self, run: Run, queries: Queries, stage: str) -> bool:
        """Whether our first stage, as it was in training, gives the scores that the run has, by its first documents."""
        if stage != spelling(self._searcher.stage):
            return False
        for id, docs, scores in run.lists():
            if id in queries and len(docs):
                _, ours = self._searcher.candidates([queries[id]], len(docs)).list_of(0)
                return len(ours) == len(scores) and bool(np.allclose(ours, scores, rtol=1e-5))
        return True

    def transform(self, frame: Any) -> Any:
        """PyTerrier's way: a DataFrame with `qid` and `query`, and `docno` and `score` if there are candidates already.

        Returns
        -------
        DataFrame
            With `qid`, `query`, `docno`, `score` and `rank`.
        """
        queries = frame[["qid", "query"]].drop_duplicates()
        run = Run.from_frame(frame) if "docno" in frame.columns else None
        result = self.rerank(queries, run).to_frame()
        queries = queries.assign(qid=queries["qid"].astype(str))
        return pandas_module().merge(queries, result, on="qid")

    def _lists(self, pairs: Pairs, notes: Notes) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        for ids, found, features in pairs.blocks(self._maker, notes):
            rows = features if self._order is None else features[:, self._order]
            scores = self.model.predict(rows, threads=self._threads) if len(rows) else np.empty(0)
            for number, id in enumerate(ids):
                docs, _ = found.list_of(number)
                mine = scores[found.offsets[number] : found.offsets[number + 1]]
                order = np.argsort(-mine, kind="stable")  # equal scores stay as the first stage has them
                yield id, self.index.ids[docs[order]], mine[order]
