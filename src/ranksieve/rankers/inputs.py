"""Input of the rankers that use feature values: data sets in memory."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ranksieve.boosting.initial_scores import TRAIN
from ranksieve.boosting.job import TrainingJob, named_sets, report_data
from ranksieve.data.categories import check_no_categories
from ranksieve.data.dataset import Dataset
from ranksieve.data.lists import Lists
from ranksieve.data.read import read, read_like
from ranksieve.errors import MissingExtraError, RanksieveWarning, caller_level, import_extra, param
from ranksieve.evaluation.evaluate import evaluate
from ranksieve.evaluation.metrics import metric_of
from ranksieve.forest.model import Model
from ranksieve.params import Params
from ranksieve.rules import RANKERS, traits_of


def training_set(job: TrainingJob) -> Dataset:
    """The training set in memory; refuses categories where the algorithm cannot use them."""
    data = read(job.data, missing=job.missing)
    if not traits_of(job.params.ranker_rule).uses_categories:
        check_no_categories(data.info, job.params.algo)
    warn_of_positions(data.lists, job.params)
    report_data(job.callbacks, TRAIN, data)
    return data


def load_library(algo: str) -> Any:
    """The optional dependency that an algorithm needs; None if it needs none."""
    name = traits_of(RANKERS.get(algo)).library
    if not name:
        return None
    try:
        return import_extra(name.lower(), f" needs {name}", f"ranksieve[{name.lower()}]")
    except MissingExtraError as error:
        raise MissingExtraError(param("algo", algo), *error.parts, ", or use ", param("algo", "lambdamart")) from error


def warn_of_positions(lists: Lists, params: Params) -> None:
    """Warn if the data has positions and the algorithm does not learn position biases."""
    if lists.positions is not None and not traits_of(params.ranker_rule).learns_biases:
        warnings.warn(
            RanksieveWarning(
                "positions are not used by ", param("algo", params.algo), ", only by boosted forests; clicks are taken "
                "as they are",
            ),
            stacklevel=caller_level(),
        )  # fmt: skip


def validation_sets(job: TrainingJob, train_set: Dataset) -> list[tuple[str, Dataset]]:
    """The validation sets by name, in memory, with the features of the training set."""
    given = named_sets(job.valid).items()
    sets = [(name, read_like(data, train_set, missing=job.missing)) for name, data in given]
    for name, data in sets:
        report_data(job.callbacks, name, data)
    return sets


def measured(params: Params, model: Model, valid_sets: Sequence[tuple[str, Dataset]]) -> dict[str, Any]:
    """The metric of a finished model on the validation sets, for its `info`."""
    metric = metric_of(params)
    history = {
        name: {str(metric): [evaluate(model, data, metric, weighted=data.lists.weights is not None).mean()]}
        for name, data in valid_sets
    }
    first = next(iter(history.values()), None)
    return {"history": history, "best_score": None if first is None else first[str(metric)][0]}
