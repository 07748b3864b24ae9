"""`Pipeline`: both stages as one object for serving and for re-ranking runs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ranksieve.errors import ModelError, ParameterError, RanksieveWarning, param
from ranksieve.forest.forest import Forest
from ranksieve.forest.model import Model
from ranksieve.models.load import load
from ranksieve.retrieval.feature_names import RELATIVE, depends_on_candidates, depends_on_list
from ranksieve.retrieval.features import FeatureExtractor, UserFeature
from ranksieve.retrieval.first_stage import FirstStage, as_first_stage
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.labelling import Pairs, Provenance
from ranksieve.retrieval.notes import Notes, collected_notes
from ranksieve.retrieval.queries import Queries, as_queries
from ranksieve.retrieval.runs import Run, as_run, rows_of
from ranksieve.retrieval.searching import Hit, Searcher, check_count, check_text, hits
from ranksieve.text_formats import some_of

DEPTH = 1000  # candidates per query, where neither the caller nor the model gives it


class Pipeline:
    """The first stage finds candidates, the model re-orders them.

    It holds the index open until it is closed (`close`, or `with Pipeline(…) as pipeline:`) or no longer used.

    Parameters
    ----------
    index
        An index, or its folder.
    model
        A model trained on features of an index with the same fields, or its file.
    stage
        The first stage: a `FirstStage`, a model's name, or a file that `FirstStage.save` has written. If None, the one
        that the model was trained with, or else that of the index.
    depth
        Candidates per query. If None, as many as the model was trained with, or 1000.
    extra
        Your own features that the model was trained with.
    threads
        All cores if None; results do not depend on it.

    Examples
    --------
    >>> import tempfile
    >>> import ranksieve as rs
    >>> corpus = [{"id": f"d{n}", "text": "red " * n + "wine " * (9 - n)} for n in range(9)]
    >>> queries, judgements = {"a": "red", "b": "red wine"}, {"a": {"d7": 1}, "b": {"d2": 1}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index = rs.Index.build(corpus, f"{folder}/index")
    ...     data = rs.retrieval.extract_features(index, queries, judgements=judgements)
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
        stage: FirstStage | str | os.PathLike[str] | None = None,
        depth: int | None = None,
        extra: Mapping[str, UserFeature] | None = None,
        threads: int | None = None,
    ):
        self.model = load(model) if isinstance(model, str | os.PathLike) else model
        self._trained_on = Provenance.of_model(self.model)
        trained_depth = None if self._trained_on is None else self._trained_on.depth
        self.depth = (trained_depth or DEPTH) if depth is None else depth
        check_count(self.depth)
        chosen = as_first_stage(stage)
        if chosen is None and self._trained_on is not None:
            chosen = self._trained_on.first_stage()
        self._owns_index = not isinstance(index, Index)
        self.index = index if isinstance(index, Index) else Index(index)
        self._threads = threads
        self._warned: set[str] = set()
        self._has_searched = False
        self._searcher = Searcher(self.index, chosen, threads)
        self._extractor = FeatureExtractor(self.index, self._needed(extra or {}), extra, threads)
        names = self._extractor.names
        order = [names.index(name) for name in self.model.feature_names]
        self._order = None if order == list(range(len(names))) else np.array(order)

    def close(self) -> None:
        """Close the index, unless it was given opened; the pipeline cannot be used any more."""
        self.__dict__.pop("_searcher", None)
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
        check_text(text)
        check_count(k, "k")
        pairs = self._pairs({"": text})
        if not self._has_searched:  # later searches have the same provenance
            self._has_searched = True
            self._warn(pairs, stacklevel=3)
        _, docs, scores = next(self._lists(pairs, Notes()))
        return hits(docs[:k], scores[:k])

    def rerank(self, queries: Any, run: Run | Any = None, *, notes: Notes | None = None) -> Run:
        """Both stages for many queries, or the second on a run; features are computed and scored in one stream.

        Parameters
        ----------
        queries, run
            As `extract_features` takes them.
        notes
            Gets remarks on what was left out; they are logged by the logger `ranksieve` if None.
        """
        return self._rerank(as_queries(queries), as_run(run), notes)

    def _rerank(self, queries: Queries, run: Run | None, notes: Notes | None) -> Run:
        pairs = self._pairs(queries, run)
        self._warn(pairs, stacklevel=4)
        with collected_notes(notes) as collected:
            return Run.from_lists(self._lists(pairs, collected))

    def transform(self, frame: Any) -> Any:
        """As PyTerrier's transformers: takes a DataFrame with `qid` and `query`, and `docno` and `score` to re-rank.

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

    def _pairs(self, queries: Queries, run: Run | None = None) -> Pairs:
        if "_searcher" not in self.__dict__:
            raise ParameterError("the pipeline was closed; make a new one")
        return Pairs(queries, self._searcher, self.depth, run)

    def _lists(self, pairs: Pairs, notes: Notes) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        for ids, found, features in pairs.blocks(self._extractor, notes):
            rows = features if self._order is None else features[:, self._order]
            scores = self.model.predict(rows, threads=self._threads) if len(rows) else np.empty(0)
            for number, id in enumerate(ids):
                docs, _ = found.list_of(number)
                mine = scores[found.offsets[number] : found.offsets[number + 1]]
                order = np.argsort(-mine, kind="stable")  # equal scores keep the order of the first stage
                yield id, self.index.ids[docs[order]], mine[order]

    def _warn(self, pairs: Pairs, stacklevel: int) -> None:
        """Warn, once, where the model was trained on other candidates and uses features that depend on them."""
        trained_on, used = self._trained_on, _used_features(self.model)
        if trained_on is None or not any(map(depends_on_candidates, used)):
            return
        warning = _difference(trained_on, pairs, used)
        if warning is not None and str(warning) not in self._warned:
            self._warned.add(str(warning))
            warnings.warn(warning, stacklevel=stacklevel)


def _difference(trained_on: Provenance, pairs: Pairs, used: list[str]) -> RanksieveWarning | None:
    """The warning on features whose meaning changes, as candidates do not come from where those of training did.

    None if there is none, and if both are runs, which cannot be compared.
    """
    given, of_run = pairs.provenance, pairs.run is not None
    if trained_on == given or (trained_on.stage is None and of_run):
        return None
    if trained_on.stage != given.stage:
        bound = [name for name in used if depends_on_candidates(name)]
        got = "a run with other scores" if given.stage is None else f"candidates of {_name(given)}"
        what, cause = f"candidates of {_name(trained_on)} and gets {got}", "the first stage"
        remedy: tuple[Any, ...] = ("use the same one, or train on features of these candidates",)
    else:
        n_docs, depths = pairs.searcher.index.n_docs, (trained_on.depth, given.depth)
        same = None in depths or len({min(depth or 0, n_docs) for depth in depths}) == 1
        bound = [] if same else [name for name in used if depends_on_list(name)]
        what, cause = f"the {depths[0]} best candidates of a query and gets the {depths[1]} best", "the whole list"
        as_deep = " and a run as deep" if of_run else ""
        remedy = ("use ", param("depth", depths[0]), f"{as_deep}, or train on features of this depth")
    if not bound:
        return None
    return RanksieveWarning(
        f"the model was trained on {what}; of the {len(used)} features that it uses {len(bound)} depend on {cause} "
        f"({some_of(bound, 3)}), so ",
        *remedy,
    )


def _name(provenance: Provenance) -> str:
    return "a run" if provenance.stage is None else str(provenance.first_stage())


def _used_features(model: Model) -> list[str]:
    """The features that scores depend on; all of them for models other than forests."""
    if not isinstance(model, Forest):
        return list(model.feature_names)
    return [model.feature_names[number] for number in np.unique(model.feature)]
