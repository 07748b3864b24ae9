"""`Engine`: what the service computes, without HTTP: searches, comparisons, explanations."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ranksieve.data.features import RELATIVE, is_dense
from ranksieve.errors import DataError, ParameterError, param
from ranksieve.evaluation.explanations import Explanation
from ranksieve.retrieval.encoders import Encode
from ranksieve.retrieval.feature_names import layout_of
from ranksieve.retrieval.first_stage import DENSE, HYBRID, FirstStage
from ranksieve.retrieval.index import Index
from ranksieve.retrieval.pipeline import DEPTH, Pipeline
from ranksieve.retrieval.provenance import Provenance
from ranksieve.retrieval.runs import Run
from ranksieve.retrieval.searching import Retriever
from ranksieve.retrieval.texts import TextPiece, snippet
from ranksieve.serve.served_models import FIRST_STAGE, ModelStore, NotFoundError, Served

CACHED = 16  # pipelines and retrievers with other weights or depths than usual
TITLE_WORDS = 40  # at most, of a title
VECTOR_STAGES = (HYBRID, DENSE)
TITLES = ("title", "name", "headline", "subject", "summary")
Made = TypeVar("Made")


class SearchResult(NamedTuple):
    """The documents of one column, best first, and where the first stage had them, from 1; 0 for others."""

    docs: np.ndarray
    scores: np.ndarray
    first_ranks: np.ndarray
    warning: str | None = None  # how the candidates differ from those that the model was trained on


class LruCache:
    """The most recently used of some things, made when they are first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._things: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        with self._lock:
            if key in self._things:
                self._things.move_to_end(key)
                found: Made = self._things[key]
                return found
        made = make()
        with self._lock:
            self._things[key] = made
            while len(self._things) > CACHED:
                self._things.popitem(last=False)
        return made


class Engine:
    """An index and models; every method may be called by several threads at once.

    A request uses one thread, so that as many run side by side as there are cores.
    """

    def __init__(self, index: Index, models: ModelStore, title: str | None = None, encode: Encode | None = None):
        self.index, self.models, self._encode = index, models, encode
        fields = {field.name: field for field in index.fields}
        if title is not None and title not in fields:
            raise ParameterError(f"the index has no field {title!r} to show as title; it has {', '.join(fields)}")
        self._title = fields.get(title or next((name for name in TITLES if name in fields), ""))
        self._body = list(dict.fromkeys(field.source for field in index.fields if field != self._title))
        self._check_vectors()
        self._cache = LruCache()
        self._meanings = dict(layout_of(index).features)
        self._analyzers = {field.source: field.analyzer for field in reversed(index.fields)}

    @property
    def stages(self) -> tuple[str, ...]:
        """The kinds of first stages that requests may choose: by words, and by vectors where queries have some."""
        usual = self.stage().model
        by_words = usual if usual not in VECTOR_STAGES else "bm25f"
        return (by_words, *VECTOR_STAGES) if self._encodes else (by_words,)

    @property
    def _encodes(self) -> bool:
        """Whether queries have vectors."""
        return self.index.vectors is not None and (self._encode or self.index.encoder) is not None

    def _check_vectors(self) -> None:
        """Refuse a first stage or a model that no query has vectors for."""
        users = [f"the first stage {self.stage()}"] if self.stage().uses_vectors else []
        users += [
            f"the model {served.name}" for served in self.models.all() if any(map(is_dense, served.model.feature_names))
        ]
        if users and not self._encodes:
            raise ParameterError(
                f"{users[0]} needs vectors of queries, and the index does not encode queries by itself; give ",
                param("encode"), ", or index with svd:128 as ", param("vectors"),
            )  # fmt: skip

    def stage(self, weights: Mapping[str, float] | None = None, model: str | None = None) -> FirstStage:
        """The first stage of the first model that has one, or else of the index; with other weights or model."""
        trained = (Provenance.of_model(served.model) for served in self.models.all())
        stages = (one.first_stage() for one in trained if one is not None)
        usual = next((stage for stage in stages if stage is not None), self.index.stage or FirstStage())
        return replace(usual, weights={**usual.weights, **(weights or {})}, model=model or usual.model)

    def depth(self) -> int:
        """Candidates per query, where a request does not say."""
        trained = (Provenance.of_model(served.model) for served in self.models.all())
        return max((one.depth for one in trained if one is not None and one.depth), default=DEPTH)

    def pipeline(self, served: Served, stage: FirstStage | None = None, depth: int | None = None) -> Pipeline:
        """Both stages; the first stage and depth are those of training where they are None."""
        return self._pipeline(served, stage, depth)[0]

    def _pipeline(
        self, served: Served, stage: FirstStage | None = None, depth: int | None = None
    ) -> tuple[Pipeline, str | None, Served]:
        """Also how its candidates differ from those of training, which takes long to find out."""
        key = (id(served.model), repr(stage), depth)

        def make() -> tuple[Pipeline, str | None, Served]:  # the model is held, so that its id stays its own
            made = Pipeline(self.index, served.model, stage=stage, depth=depth, encode=self._encode, threads=1)
            made.warns = False  # answers have the difference
            return made, made.difference(), served

        return self._cache.get(key, make)

    def retriever(self, stage: FirstStage | None = None) -> Retriever:
        chosen = stage or self.stage()
        return self._cache.get(
            repr(chosen), lambda: Retriever(self.index, chosen, query_vectors=self._encode, threads=1)
        )

    def search(self, text: str, name: str, stage: FirstStage | None = None, depth: int | None = None) -> SearchResult:
        """All candidates, as a model or the first stage ranks them."""
        if name == FIRST_STAGE:
            docs, scores = self.retriever(stage).candidates([text], depth or self.depth()).list_of(0)
            return SearchResult(docs, scores, np.arange(1, len(docs) + 1))
        pipeline, warning, _ = self._pipeline(self.models.find(name), stage, depth)
        found = pipeline.score(text)
        order = found.order
        return SearchResult(found.docs[order], found.scores[order], order + 1, warning)

    def rerank(self, text: str, documents: Sequence[str], name: str) -> SearchResult:
        """Given documents, as a model ranks them; the first stage gives them its scores."""
        docs = self.numbers(documents)
        if len(set(documents)) != len(documents):
            raise DataError("a document is given twice; give every document once")
        served = self.models.find(name)
        pipeline, warning, _ = self._pipeline(served)
        if len(documents) > pipeline.depth:
            pipeline, warning, _ = self._pipeline(served, depth=self.index.n_docs)
        scores = np.zeros(self.index.n_docs)
        found, values = pipeline.retriever.candidates([text], self.index.n_docs).list_of(0)
        scores[found] = values
        rows = [("", id, scores[doc]) for id, doc in zip(documents, docs, strict=True)]
        ranked = pipeline.score(text, Run.from_rows(rows))
        order = ranked.order
        return SearchResult(ranked.docs[order], ranked.scores[order], order + 1, warning)

    def explain(
        self, text: str, documents: Sequence[str], name: str, stage: FirstStage | None = None, depth: int | None = None
    ) -> Explanation:
        """The contributions of features to the scores of one or two documents."""
        self.numbers(documents)
        return self.pipeline(self.models.find(name), stage, depth).explain(text, documents)

    def warm_up(self) -> None:
        """Search once with every model, so that no request waits for kernels to be compiled or loaded."""
        text = self.index.term(int(np.argmax(self.index.document_frequency[:, -1])))
        for name in (FIRST_STAGE, *self.models.names):
            for doc in self.search(text, name).docs[:1]:
                self.snippet(int(doc), text)

    def meaning(self, feature: str) -> str:
        """What a feature is, in words."""
        plain = feature.removeprefix(RELATIVE)
        known = self._meanings.get(plain, "")
        field = plain.rpartition(".")[2]
        where = f"{field}: " if known and field in self.index.columns else ""
        return f"{where}{known}{', from 0 to 1 within the list' if plain != feature and known else ''}"

    def numbers(self, documents: Sequence[str]) -> list[int]:
        """The numbers of documents; refuses ids that the index does not have."""
        known = self.index.numbers_of_ids
        missing = [id for id in documents if id not in known]
        if missing:
            raise NotFoundError(f"the index has no document {missing[0][:200]!r}")
        return [known[id] for id in documents]

    def title(self, doc: int, text: str) -> list[TextPiece]:
        """A document's title with the query's words marked; its id where it has none."""
        title = None if self._title is None else self._title.text(dict(self.index.document(doc)))
        if self._title is None or not title or not title.strip():
            return [TextPiece(str(self.index.ids[doc]), False)]
        return snippet(title, text, self._title.analyzer, TITLE_WORDS)

    def snippet(self, doc: int, text: str) -> list[TextPiece]:
        """What to show of a document for a query: of its text other than the title, the part that matches best."""
        texts = self.index.document(doc)
        found = [snippet(texts[name], text, self._analyzers[name]) for name in self._body if texts.get(name)]
        return max(found, key=lambda pieces: sum(piece.marked for piece in pieces), default=[])
