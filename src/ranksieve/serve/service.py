"""`Service`: what is opened once and shared by all requests of a process."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import numba

from ranksieve.errors import ParameterError
from ranksieve.retrieval.first_stage import FirstStage
from ranksieve.retrieval.index import Index
from ranksieve.serve.comparison import Comparison
from ranksieve.serve.engine import Engine
from ranksieve.serve.judgement_store import JudgementStore
from ranksieve.serve.problems import Refused
from ranksieve.serve.request_metrics import RequestMetrics
from ranksieve.serve.served_models import FIRST_STAGE, ModelStore
from ranksieve.serve.settings import Settings
from ranksieve.serve.trainer import Trainer
from ranksieve.serve.training_task import Task
from ranksieve.threads import prepare_threads
from ranksieve.user_functions import import_function

Made = TypeVar("Made")
ENCODER = "a function of a list of texts"


class Service:
    """The index, the models, the judgements, and the threads that compute.

    There are as many threads as cores, and each request is computed by one of them.
    """

    def __init__(self, settings: Settings):
        self.settings = settings
        index = None if settings.index is None else Index(settings.index)
        self.models = ModelStore(index, settings.models, settings.trained_folder)
        encode = settings.encode and import_function(settings.encode, parameter="encode", signature=ENCODER)
        self._engine = None
        if index is not None:
            self._engine = Engine(index, self.models, settings.title, encode or None)
            self.comparison = Comparison(self._engine)
        self.judgements: JudgementStore | None = None
        if settings.judgements is not None and settings.own_queries is not None:
            self.judgements = JudgementStore(
                settings.judgements, settings.own_queries, settings.queries, read_only=settings.read_only
            )
        self.trainer = Trainer(settings.trained_folder)
        self.metrics = RequestMetrics()
        prepare_threads()
        self._threads = ThreadPoolExecutor(
            os.cpu_count() or 1, "ranksieve-serve", initializer=lambda: numba.set_num_threads(1)
        )

    async def run(self, function: Callable[..., Made], *given: Any, **named: Any) -> Made:
        """Compute something on one of the threads."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(function, *given, **named))

    async def start(self) -> None:
        """Get ready for the first request."""
        await self.run((self._engine or self.models).warm_up)
        self.models.start()
        if hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGHUP, lambda *_: self.models.wake())

    def close(self) -> None:
        self.trainer.close()
        self.models.close()
        self._threads.shutdown(wait=True, cancel_futures=True)
        if self._engine is not None:
            self._engine.index.close()

    @property
    def has_index(self) -> bool:
        return self._engine is not None

    @property
    def engine(self) -> Engine:
        """What searches the index; refuses a request where the service has none."""
        if self._engine is None:
            raise Refused(
                409, "the service was started without an index; it scores feature vectors alone, with POST /rerank"
            )
        return self._engine

    @property
    def index(self) -> Index:
        return self.engine.index

    @property
    def can_judge(self) -> bool:
        return self.judgements is not None and not self.settings.read_only

    def store(self) -> JudgementStore:
        """The judgements; refuses a request where the service has none."""
        if self.judgements is None:
            raise Refused(409, "the service was started without --judgements FILE, which holds the grades")
        return self.judgements

    def train(self) -> None:
        """Train a model on all judgements in the background; refused while another is being trained."""
        store, folder = self.store(), self.settings.trained_folder
        if folder is None:
            raise Refused(409, "the service was started without a folder for trained models")
        depth = min(self.engine.depth(), self.settings.limits.depth)
        params = self.settings.training
        self.trainer.start(
            Task(
                self.index.path, folder, store.grades(), store.texts(), self.engine.stage(), depth, params,
                self.settings.encode,
            )
        )  # fmt: skip

    def model_name(self, name: str | None) -> str:
        """The model that a request names; else the first one, or the first stage where there is none."""
        return name or next(iter(self.models.names), FIRST_STAGE)

    def check_query(self, text: str) -> str:
        longest = self.settings.limits.query
        if len(text) > longest:
            raise ParameterError(f"the query has {len(text):,} characters; at most {longest:,} are searched for")
        return text

    def check_depth(self, depth: int | None) -> None:
        most = self.settings.limits.depth
        if depth is not None and not 1 <= depth <= most:
            raise ParameterError(f"the depth is {depth}; expected 1 to {most:,}")

    def check_documents(self, count: int, name: str = "k") -> None:
        most = self.settings.limits.documents
        if not 1 <= count <= most:
            raise ParameterError(f"{name} is {count:,}; expected 1 to {most:,}")

    def stage_with(self, weights: Sequence[str], model: str | None = None) -> FirstStage | None:
        """The first stage with weights such as `title:2`, or of another kind; None where both are as usual."""
        if model is not None and model not in self.engine.stages:
            raise ParameterError(f"the stage is {model[:40]!r}; expected {' or '.join(self.engine.stages)}")
        if not weights and model in (None, self.engine.stage().model):
            return None
        found, known = dict[str, float](), self.index.field_names
        for text in weights:
            name, _, value = text.rpartition(":")
            try:
                found[name] = float(value)
                if name not in known:
                    raise ValueError
            except ValueError:
                raise ParameterError(
                    f"a weight is {text[:80]!r}; expected FIELD:NUMBER with a field of {', '.join(known)}"
                ) from None
        return self.engine.stage(found, model)
