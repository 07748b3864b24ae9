"""`train_view`: whether there are enough judgements to train, and what was trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ranksieve.evaluation.model_card import held_out_values
from ranksieve.serve.service import Service
from ranksieve.serve.training_task import FEWEST_QUERIES, Progress


@dataclass(frozen=True)
class Trained:
    """A model that was trained here, and its metric on the queries held out."""

    name: str
    size: str
    held_out: Mapping[str, Any]


@dataclass(frozen=True)
class TrainView:
    """Numbers of judgements, and models trained on them."""

    n_grades: int
    n_queries: int  # judged, with a text
    n_relevant: int  # of them, with a grade above 0
    n_needed: int
    progress: Progress
    trained: list[Trained]

    @property
    def is_enough(self) -> bool:
        return self.n_relevant >= self.n_needed


def train_view(service: Service) -> TrainView:
    store = service.store()
    grades, texts = store.grades(), store.texts()
    judged = [some for id, some in grades.items() if id in texts]
    trained = [
        Trained(one.name, one.model.size, held_out)
        for one in service.models.all()
        if (held_out := held_out_values(one.model.info)) is not None
    ]
    return TrainView(
        sum(map(len, judged)),
        len(judged),
        sum(any(grade > 0 for grade in some.values()) for some in judged),
        FEWEST_QUERIES,
        service.trainer.progress,
        trained,
    )
