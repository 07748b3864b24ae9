"""What boosting starts from: a constant, or the scores of a model, a feature, any ranker, or an array (LambdaSMART)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.boosting.disk_scores import new_scores
from ranksieve.boosting.tree import to_trees
from ranksieve.data.binned import Binned
from ranksieve.data.blocks import Source, widened
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import check_feature_names
from ranksieve.data.letor import TextSource
from ranksieve.dtypes import SCORE
from ranksieve.errors import DataError, ModelError, ParameterError, param
from ranksieve.forest.forest import Forest, concatenate
from ranksieve.forest.matrix import encoded
from ranksieve.forest.model import TrainedModel
from ranksieve.models.blend import Blend
from ranksieve.models.linear import Linear, one_feature
from ranksieve.models.load import load
from ranksieve.text_formats import some_of

TRAIN = "train"  # the name of the training set among the sets that have scores


@dataclass(frozen=True)
class Constant:
    """The same score for every document; the first tree takes it up."""

    value: float
    is_constant = True

    def scores(self, name: str, given: Any, binned: Binned) -> np.ndarray:
        """Scores of a set in the order of its lists; `given` is what the user gave for it."""
        return np.full(binned.lists.n_docs, self.value)

    def join(self, forest: Forest) -> Forest:
        """The model whose scores are the initial ones plus those of the new trees."""
        values = forest.leaf_values.copy()
        values[: forest.leaf_offsets[1] if forest.n_trees else 0] += self.value
        return replace(forest, leaf_values=values)

    def describe(self) -> dict[str, Any]:
        """What a model file stores about the initial scores."""
        return {}


@dataclass(frozen=True)
class ModelBase:
    """Initial scores are predictions of a model. If it is a forest, the result is one forest with the new trees."""

    model: Any
    name: str
    is_constant = False

    def scores(self, name: str, given: Any, binned: Binned) -> np.ndarray:
        if isinstance(given, Binned):
            found = _scores_of_bins(self.model, given, self.name)
        else:
            blocks = (encoded(rows, self.model) for rows in _rows(given, binned))
            parts = [np.asarray(self.model.predict(rows), dtype=SCORE) for rows in blocks]
            found = np.concatenate([part.ravel() for part in parts])
        if len(found) != binned.lists.n_docs:
            raise ModelError(
                param("init", self.name),
                f" gave {len(found)} scores for {binned.lists.n_docs} documents of {binned.source}; expected one per "
                "document",
            )
        if isinstance(given, Source) and binned.lists.order is not None:
            found = found[binned.lists.order]
        return _finite(found, f"init={self.name}", binned)

    def join(self, forest: Forest) -> Forest | Blend:
        if not isinstance(self.model, Forest):
            return Blend((self.model, forest), np.ones(2), forest.feature_names, forest.info)
        return concatenate([replace(self.model, feature_names=forest.feature_names), forest])

    def describe(self) -> dict[str, Any]:
        trees = {"trees": self.model.n_trees} if isinstance(self.model, Forest) else {}
        return {"model": self.name, **trees}


@dataclass(frozen=True)
class ScoresBase:
    """Scores given as arrays, one per set; the model returned is the new trees alone."""

    arrays: Mapping[str, Any]
    is_constant = False

    def scores(self, name: str, given: Any, binned: Binned) -> np.ndarray:
        if name not in self.arrays:
            raise ParameterError(
                param("init"),
                f" has no scores of the set {name!r}, only of {', '.join(self.arrays)}; give a mapping "
                f"{{'{TRAIN}': …, '{name}': …}}, or a model that can score it",
            )
        found = np.asarray(self.arrays[name], dtype=SCORE)
        lists = binned.lists
        if found.shape != (lists.n_docs,):
            raise DataError(
                param("init"),
                f" has scores of shape {found.shape} for the {lists.n_docs} documents of {name!r}; "
                "give one per document, in the order of the rows",
            )
        return _finite(found if lists.order is None else found[lists.order], f"init of {name!r}", binned)

    def join(self, forest: Forest) -> Forest:
        return forest

    def describe(self) -> dict[str, Any]:
        return {"scores": list(self.arrays)}


Base = Constant | ModelBase | ScoresBase


def gives_scores(init: Any) -> bool:
    """Whether `init` holds a score of each document."""
    return isinstance(init, np.ndarray | list | tuple | Mapping)


def make_base(init: Any, constant: float, train_set: Binned, given: Any) -> Base:
    """What the user gave as `init`, checked against the training set; the constant where nothing was given."""
    if init is None:
        return Constant(constant)
    if gives_scores(init):
        return ScoresBase(init if isinstance(init, Mapping) else {TRAIN: init})
    if isinstance(init, str) and init in train_set.feature_names:
        if Path(init).exists():
            raise ParameterError(param("init", init), f" is both a feature and a file; write ./{init} for the file")
        # it reads the data that the new trees read
        return ModelBase(one_feature(init, train_set.feature_names, train_set.info.for_model()), init)
    if isinstance(init, str | os.PathLike):
        if not Path(init).exists():
            raise ModelError(
                param("init", os.fspath(init)),
                f" is neither a model file nor a feature of {train_set.source}; features are "
                f"{some_of(train_set.feature_names)}",
            )
        model = load(init, n_features=len(train_set.feature_names))
        return _model_base(model, str(init), train_set, given)
    inner = getattr(init, "model_", None)
    if isinstance(inner, TrainedModel):  # of an estimator
        init = inner
    if hasattr(init, "predict"):
        return _model_base(init, type(init).__name__, train_set, given)
    raise ParameterError(
        param("init"),
        f" is {type(init).__name__}; expected a model file, a feature name, an array of scores, or a fitted ranker",
    )


def _model_base(model: Any, name: str, train_set: Binned, given: Any) -> ModelBase:
    names = getattr(model, "feature_names", None)
    if names is not None:
        try:
            check_feature_names(names, train_set.feature_names, f"init={name}")
        except DataError as error:
            raise ModelError("the base model does not fit the training data: ", *error.parts) from error
    _check_categories(model, name, train_set)
    absent = dict(getattr(model, "info", None) or {}).get("missing")
    here = train_set.info.missing
    if isinstance(given, TextSource) and absent is not None and absent != here:
        raise ParameterError(
            param("init", name),
            " was trained with ",
            param("missing", absent),
            " and this run has ",
            param("missing", here),
            "; use the same value for both",
        )
    return ModelBase(model, name)


def _check_categories(model: Any, name: str, train_set: Binned) -> None:
    """Raise `ModelError` unless the numbers of categories are the same for the base model and the training data.

    Features that the base does not use may differ. Models of other libraries have no names to compare.
    """
    if isinstance(model, Blend):
        for part in model.models:
            _check_categories(part, name, train_set)
    elif isinstance(model, TrainedModel):
        for feature in _used(model):
            ours = train_set.feature_names[feature]
            if list(train_set.categories.get(ours, ())) != list(model.categories.get(model.feature_names[feature], ())):
                raise ModelError(
                    param("init", name),
                    f" and the training data have different categories of {ours!r}; train the base on data that has "
                    "the same categories in the same order",
                )


def _used(model: TrainedModel) -> list[int]:
    """Features that a base model may use; trees with categories are joined with new ones, which must know them all."""
    if isinstance(model, Forest) and not model.has_categories:
        return sorted(set(model.feature.tolist()))
    if isinstance(model, Linear):
        return [int(feature) for feature in np.flatnonzero(model.weights)]
    return list(range(model.n_features))


def _rows(given: Any, binned: Binned) -> Iterator[np.ndarray]:
    """Feature rows in blocks: those of a data set in the order of its lists, those of a file in the file's."""
    if isinstance(given, Dataset):
        yield from given.blocks()
        return
    for block in given.blocks():
        yield widened(block.features, binned.binning.n_features, binned.absent)


def _scores_of_bins(model: Any, data: Binned, name: str) -> np.ndarray:
    """A forest's scores where only bins are left of the features: its thresholds must be borders of the bins."""
    if not isinstance(model, Forest):
        raise ParameterError(param("init", name), " needs features, but only bins were given; give a Dataset or a file")
    try:
        trees = to_trees(model, data.binning)
    except ModelError as error:
        raise ModelError(
            param("init", name),
            " cannot score data that is binned already (",
            *error.parts,
            "); give a Dataset or a file",
        ) from error
    scores = new_scores(data)
    for tree in trees:
        scores.add(tree)
    return scores.all()


def _finite(scores: np.ndarray, name: str, binned: Binned) -> np.ndarray:
    bad = ~np.isfinite(scores)
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"{name}: the score of document {row} of {binned.source} is {scores[row]}; initial scores must be finite"
        )
    return scores
