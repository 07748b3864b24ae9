"""One feature alone as a ranker, such as the first stage's score."""

from __future__ import annotations

from dataclasses import replace

from ranksieve.boosting.job import TrainingJob, model_info, sizes_of
from ranksieve.data.dataset import Dataset
from ranksieve.errors import ParameterError, param
from ranksieve.models.linear import Linear, one_feature
from ranksieve.rankers.inputs import measured, training_set, validation_sets


def rank_by_feature(job: TrainingJob, name: str) -> Linear:
    """The ranker that scores by the feature; validation data is measured as usual."""
    data = training_set(job)
    model = one_feature(_feature_number(name, data), data.feature_names)
    values = measured(job.params, model, validation_sets(job, data))
    return replace(model, info={**model_info(job.params, data.info, data=sizes_of(data.lists)), **values})


def _feature_number(name: str, data: Dataset) -> int:
    names = data.feature_names
    if name in names:
        return names.index(name)
    if name != "first-stage":
        raise ParameterError(
            f"{data.source}: no feature is named {name!r}; known: {', '.join(names[:8])}{', …' * (len(names) > 8)}"
        )
    if data.first_stage is None:
        raise ParameterError(
            f"{data.source}: has no information on which feature is the first stage's score; name one with ",
            param("feature"),
        )
    return data.first_stage
