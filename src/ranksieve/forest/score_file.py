"""Score a data file with one or more models, block by block: the features are never in memory as a whole."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranksieve.data.blocks import Block, ListsBuilder, Source, check_narrow, widened
from ranksieve.data.data_file import NEEDED
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import check_feature_names, default_names
from ranksieve.data.letor import TextSource
from ranksieve.data.lists import Lists
from ranksieve.data.read import open_data, read, read_source
from ranksieve.dtypes import SCORE
from ranksieve.errors import DataError, ParamName, RanksieveWarning, caller_level, param
from ranksieve.forest.matrix import alike_in_float32, check_encoder, encoded
from ranksieve.forest.model import Model
from ranksieve.text_formats import counted, some_of

FIRST_STAGE = "first stage"  # the name of its scores beside those of models
NOT_A_FEATURE = ("its score is not among the features of the model",)
NOT_NOTED = "the data does not say which feature is its score; name its feature with ", param("first_stage", "NAME")


@dataclass(frozen=True)
class ScoredFile:
    """The lists of a file, and the scores of each model in the order of the file.

    `first_stage` is the first stage's score, -inf for documents that have none; None where the file does not note which
    feature it is, or the models do not have that feature. `lacks_first_stage` is set in the latter case, and for data
    of `ranksieve features` without the score.
    """

    lists: Lists
    scores: dict[str, np.ndarray]
    first_stage: np.ndarray | None = None
    lacks_first_stage: bool = False

    @property
    def why_no_first_stage(self) -> tuple[str | ParamName, ...] | None:
        """Why the first stage cannot be compared, as parts of a message; None where it can."""
        if self.first_stage is not None:
            return None
        return NOT_A_FEATURE if self.lacks_first_stage else NOT_NOTED

    def with_first_stage(self) -> dict[str, np.ndarray]:
        """The scores of each model, and those of the first stage, if they are known."""
        return self.scores if self.first_stage is None else {**self.scores, FIRST_STAGE: self.first_stage}


def open_for(
    path: Any,
    models: Mapping[str, Model],
    missing: str | None,
    needed: Sequence[str] = NEEDED,
    *,
    first_stage: str | None = None,
) -> Source:
    """Open a data file; absent features are read as in the models' training data, unless `missing` is given."""
    kinds = {_missing_of(model) for model in models.values()}
    names = {tuple(model.feature_names) for model in models.values()}
    wanted = names.pop() if len(names) == 1 else ()
    first, *others = (model.categories for model in models.values())
    if any(categories != first for categories in others):
        raise DataError(f"{path}: the models were trained with different categories; use them one by one")
    options = {"needed": needed, "wanted": wanted, "categories": first, "first_stage": first_stage}
    source = open_data(path, missing=missing or min(kinds), **options)
    if missing is None and len(kinds) > 1 and _reads_text(source):
        raise DataError(
            f"{path}: the models were trained with different values for absent features; give ",
            param("missing", "zero"),
            " or ",
            param("missing", "nan"),
        )
    for name, model in models.items():
        if alike := alike_in_float32(model):
            message = (
                f"{source.path}: is read as float32, which has no number between some thresholds of {name} on "
                f"{some_of(alike, 3)}, so scores are not those of the program that trained it; give DataFrames or "
                "arrays of float64 to predict, or train on smaller numbers, such as ages in place of times"
            )
            warnings.warn(RanksieveWarning(message), stacklevel=caller_level())
    return source


def _reads_text(source: Source) -> bool:
    """Whether features may be absent: lines of LETOR text need not name all."""
    return isinstance(source, TextSource) or any(map(_reads_text, source.parts))


def _missing_of(model: Model) -> str:
    """The value of absent features in the training data of a model."""
    return str(model.info.get("missing", "zero"))


def read_for_models(data: Any, systems: Iterable[Any]) -> Any:
    """A `Dataset` or `Lists` as it is; other data is read into memory as the models among `systems` need it."""
    if isinstance(data, Dataset | Lists):
        return data
    ours = (one for one in systems if hasattr(one, "feature_names") and hasattr(one, "info"))
    models = {f"model {number}": one for number, one in enumerate(ours, start=1)}
    if not models:
        return read(data)
    name, model = next(iter(models.items()))
    return read_for(model, name, open_for(data, models, None))


def score_blocks(
    models: Mapping[str, Model], source: Source, threads: int | None = None, device: str = "cpu"
) -> Iterator[tuple[Block, dict[str, np.ndarray]]]:
    """The blocks of a file, in its order, with the scores of their rows by each model.

    With another device than cpu, the models are forests.
    """
    options: dict[str, Any] = {"threads": threads} if device == "cpu" else {"threads": threads, "device": device}
    for model in models.values():
        _check_names(source, model)
        check_encoder(model, source.candidates, source.path)
    width = 0
    for block in source.blocks():
        width = max(width, block.features.shape[1])
        yield block, {name: model.predict(fitted(block.features, name, model, source), **options)
                      for name, model in models.items()}  # fmt: skip
    check_narrow(source, width, max(model.n_features for model in models.values()))


def score_file(models: Mapping[str, Model], source: Source, threads: int | None = None) -> ScoredFile:
    """The lists of a file and all scores of its documents."""
    growing, first, first_stage = ListsBuilder(source.path), source.first_stage, []
    scores: dict[str, list[np.ndarray]] = {name: [] for name in models}
    for block, found in score_blocks(models, source, threads):
        growing.append(block)
        for name, values in found.items():
            scores[name].append(values)
        if first is not None:
            first_stage.append(np.nan_to_num(block.features[:, first].astype(SCORE), nan=-np.inf))
    return ScoredFile(
        growing.finish(),
        {name: np.concatenate(values) for name, values in scores.items()},
        np.concatenate(first_stage) if first_stage else None,
        first is None and (source.candidates is not None or source.noted_first_stage is not None),
    )


def score_each(
    models: Mapping[str, Model],
    path: Any,
    missing: str | None,
    threads: int | None = None,
    *,
    first_stage: str | None = None,
) -> ScoredFile:
    """As `score_file`, with data that is read for each model as its training data was.

    Models with the same features, categories and values of absent features share a pass over the file.
    """
    groups: dict[str, dict[str, Model]] = {}
    for name, model in models.items():
        way = repr((missing or _missing_of(model), model.feature_names, model.categories))
        groups.setdefault(way, {})[name] = model
    sources = (open_for(path, group, missing, first_stage=first_stage) for group in groups.values())
    scored = [score_file(group, source, threads) for group, source in zip(groups.values(), sources, strict=True)]
    scores = {name: values for part in scored for name, values in part.scores.items()}
    found = next((part.first_stage for part in scored if part.first_stage is not None), None)
    lacks = found is None and any(part.lacks_first_stage for part in scored)
    return ScoredFile(scored[0].lists, {name: scores[name] for name in models}, found, lacks)


def read_for(model: Model, name: str, source: Source, *, query: Any = None) -> Dataset:
    """The documents of a file, or of one query, in memory, with the features of the model."""
    data = read_source(source, query=query)
    check_narrow(source, data.n_features, model.n_features)
    _check_names(source, model)
    info = replace(data.info, feature_names=model.feature_names)
    return replace(data, features=np.asarray(fitted(data.features, name, model, source)), info=info)


def _check_names(source: Source, model: Model) -> None:
    """Refuse a file with other features than the model's; those of LETOR text have numbers."""
    names = default_names(model.n_features) if source.feature_names is None else source.feature_names
    check_feature_names(names, model.feature_names, source.path)


def fitted(features: np.ndarray, name: str, model: Model, source: Source) -> np.ndarray:
    """Features with as many columns as the model has."""
    width = features.shape[1]
    if width > model.n_features or (width < model.n_features and source.feature_names is not None):
        unknown = model.info.get("read_from") in ("ranklib", "quickrank")  # these files do not store the number
        advice = ", or set the number of features with ranksieve convert --n-features" if unknown else ""
        raise DataError(
            f"{source.path}: has {counted(feature=width)} but {name} was trained on {model.n_features}; "
            f"give data with the same features{advice}"
        )
    return encoded(widened(features, model.n_features, source.absent), model)
