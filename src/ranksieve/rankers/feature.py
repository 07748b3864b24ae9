"""One feature alone as a ranker: what the first stage, or BM25, does by itself."""

from __future__ import annotations

from dataclasses import replace

from ranksieve.data.dataset import Dataset
from ranksieve.errors import ParameterError
from ranksieve.rankers.inputs import Task
from ranksieve.rankers.linear import Linear, one_feature


def train_feature(task: Task) -> Linear:
    """Nothing is learned; validation data is measured all the same."""
    data = task.dataset()
    model = one_feature(_chosen(task.params.feature, data), data.feature_names)
    return replace(model, info={**task.info(data), **task.measured(model, task.valid_sets(data))})


def _chosen(name: str, data: Dataset) -> int:
    names = data.feature_names
    if name in names:
        return names.index(name)
    if name != "first-stage":
        raise ParameterError(
            f"{data.source}: no feature is named {name!r}; known: {', '.join(names[:8])}{', …' * (len(names) > 8)}"
        )
    if data.first_stage is None:
        raise ParameterError(
            f"{data.source}: does not say which feature is the first stage's score; name one with --feature"
        )
    return data.first_stage
