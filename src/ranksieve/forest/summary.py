"""What a model is, in words: for `describe`, model cards and notebooks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ranksieve.errors import ModelError
from ranksieve.forest.json_model import RECOVER
from ranksieve.text_formats import category_counts, counted, duration

if TYPE_CHECKING:
    from ranksieve.forest.forest import Forest
    from ranksieve.forest.model import TrainedModel

TOP_FEATURES = 10
GAIN, SPLITS, WEIGHT, INFLUENCE = "share of gain", "share of splits", "weight", "influence"  # kinds of importance


class Summary(NamedTuple):
    """Facts about a model, and the importance of each feature."""

    facts: list[tuple[str, str]]
    column: str
    importance: np.ndarray

    def top_features(self, names: tuple[str, ...], most: int = TOP_FEATURES) -> list[list[str]]:
        """The names and the importance of the first features, without those that are not used."""
        style = "{:.1%}" if self.column in (GAIN, SPLITS) else "{:+.4f}"
        best = np.argsort(-np.abs(self.importance), kind="stable")[:most]
        return [[names[number], style.format(self.importance[number])] for number in best if self.importance[number]]


def summarize(model: TrainedModel) -> Summary:
    """What the kind of model says about itself, and how it was trained."""
    try:
        return _summary(model)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelError(
            f"the information about training in the model file is damaged ({error!r}); {RECOVER}"
        ) from error


def cross_validated(info: Mapping[str, Any]) -> str | None:
    """The cross-validated metric that chose the number of trees; None if there was none."""
    found = info.get("cross_validation")
    numbers = ("folds", "queries", "rounds", "value")
    if not isinstance(found, Mapping) or not all(isinstance(found.get(name), int | float) for name in numbers):
        return None
    rounds, queries = counted(**{str(info.get("round", "tree")): found["rounds"]}), counted(query=found["queries"])
    return f"{found.get('metric')} {found['value']:.4f} after {rounds}, {counted(fold=found['folds'])} of {queries}"


def _summary(model: TrainedModel) -> Summary:
    own, info = model.own_summary(), model.info
    facts = [*own.facts]
    if len(own.importance):
        facts.append(("features", f"{model.n_features:,}, {np.count_nonzero(own.importance):,} of them used"))
    if info.get("categories"):
        facts.append(("categorical", category_counts(info["categories"])))
    if info.get("data"):
        facts.append(("trained on", data_size(info["data"])))
    if info.get("best_score") is not None:
        facts.append(("validation", f"{info['params']['metric']} {info['best_score']:.4f}"))
    if (chosen := cross_validated(info)) is not None:
        facts.append(("validation", f"cross-validated {chosen}"))
    if info.get("seconds"):
        rounds = counted(**{info.get("round", "tree"): len(info["seconds"])})
        facts.append(("training", f"{duration(sum(info['seconds']))} on {rounds}"))
    if info.get("params"):
        facts.append(("parameters", _changed(info["params"])))
    return own._replace(facts=facts)


def data_size(sizes: Mapping[str, Any]) -> str:
    """The size of a data set, as in `10 queries, 500 documents`."""
    return counted(query=sizes["queries"], document=sizes["documents"])


def default_params() -> dict[str, Any]:
    """The defaults of all parameters, as a model's `info` holds values: tuples are lists."""
    from ranksieve.parameter_table import table  # it is large, and scoring does not need it

    found: dict[str, Any] = json.loads(json.dumps({name: one.default for name, one in table().items()}))
    return found


def _changed(params: Mapping[str, Any]) -> str:
    """The algorithm, and the parameters that are not at their defaults."""
    defaults = default_params()
    shown = [f"{name} {value}" for name, value in params.items() if name == "algo" or value != defaults.get(name)]
    return f"{', '.join(shown)}; all others at their defaults"


def tree_summary(forest: Forest) -> Summary:
    """The trees and leaves of a forest, and the gain of its features; their splits where the file has no gains."""
    leaves = forest.n_leaves
    facts = [
        ("trees", f"{forest.n_trees:,}"),
        ("leaves", f"{leaves.sum():,}, {leaves.mean():.1f} per tree" if forest.n_trees else "0"),
    ]
    if forest.gain.any() or not len(forest.feature):
        return Summary(facts, GAIN, forest.gain_shares())
    return Summary(facts, SPLITS, forest.split_counts() / len(forest.feature))
