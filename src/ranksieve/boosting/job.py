"""`TrainingJob`: the parsed request of the user, the same for every algorithm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ranksieve import __version__
from ranksieve.boosting.callbacks import SelectionCounter
from ranksieve.boosting.checkpoint import CheckpointOptions
from ranksieve.data.binned import Binned
from ranksieve.data.binning import Binning
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import FeatureInfo
from ranksieve.data.lists import Lists
from ranksieve.errors import ParameterError, param
from ranksieve.parameter_table import RESOURCES
from ranksieve.params import Params


class Machines(Protocol):
    """Where a forest is trained, if not in this process: `cluster.training.Cluster`."""

    def train(self, job: TrainingJob) -> Any: ...


@dataclass(frozen=True)
class TrainingJob:
    """Data to train and validate on, parameters, and what else a run needs."""

    data: Any
    params: Params
    valid: Any = None
    init: Any = None
    callbacks: Sequence[Callable[[Any], None]] = ()
    missing: str = "zero"
    checkpoint: CheckpointOptions = field(default_factory=CheckpointOptions)
    counter: SelectionCounter | None = None
    binning: Binning | None = None
    cluster: Machines | None = None
    threads: int = 1  # of this process
    warns_of_ties: bool = True  # whether validation lists that are sorted by label are warned of

    def __post_init__(self) -> None:
        """Refuse arrays as validation data, and callbacks of LightGBM and XGBoost, which get other records."""
        for data in named_sets(self.valid).values():
            if isinstance(data, np.ndarray) or hasattr(data, "tocsr"):
                raise ParameterError(
                    param("valid"), f" has an array ({type(data).__name__}); give a file name, a DataFrame with "
                    "columns 'label' and 'qid', or Dataset.from_arrays(X, y, qid)",
                )  # fmt: skip
        for callback in self.callbacks:
            if str(getattr(callback, "__module__", "")).partition(".")[0] in ("lightgbm", "xgboost"):
                raise ParameterError(
                    param("callbacks"), f" has a callback of {callback.__module__}, which ranksieve cannot call; give "
                    "functions of a ranksieve.callbacks.Record, or use ",
                    param("early_stopping"), ", ", param("verbose"), " and the model's info['history']",
                )  # fmt: skip

    def check_forest_options(self) -> None:
        """Refuse what only boosted forests use."""
        given = {
            "init": self.init is not None,
            "checkpoint": self.checkpoint.folder is not None,
            "resume": self.checkpoint.resume,
            "counter": self.counter is not None,
            "binning": self.binning is not None,
        }
        for name in (name for name, is_given in given.items() if is_given):
            raise ParameterError(
                param(name), " is not used by ", param("algo", self.params.algo), ", only by boosted forests; leave it "
                "out, or choose another algorithm",
            )  # fmt: skip


def model_info(params: Params, features: FeatureInfo, **facts: Any) -> dict[str, Any]:
    """What every model stores about its training."""
    settings = params.as_dict()
    for name in (*RESOURCES, "device"):  # the model does not depend on the device, up to rounding
        settings.pop(name, None)
    return {"params": settings, **facts, "ranksieve": __version__, **features.for_model()}


def report_data(
    callbacks: Sequence[Any], name: str, data: Binned | Dataset, sizes: Mapping[str, int] | None = None
) -> None:
    """Pass a data set that was read, and its sizes, to the callbacks that have a method `on_data`."""
    for callback in callbacks:
        if hasattr(callback, "on_data"):
            callback.on_data(name, data, sizes or sizes_of(data.lists))


def sizes_of(lists: Lists) -> dict[str, int]:
    """The size of a data set, for a model's `info`."""
    return {"documents": lists.n_docs, "queries": lists.n_queries}


def named_sets(valid: Any) -> Mapping[str, Any]:
    """The validation sets, each with a name."""
    if valid is None:
        return {}
    if isinstance(valid, Mapping):
        return valid
    if isinstance(valid, (list, tuple)):
        return {f"valid_{i}": data for i, data in enumerate(valid)}
    return {"valid": valid}
