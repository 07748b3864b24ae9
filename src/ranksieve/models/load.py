"""`load`: a model of any kind from its file."""

from __future__ import annotations

import os
from collections.abc import Callable

from ranksieve.data.compression import first_bytes
from ranksieve.data.other_files import starts_like_model
from ranksieve.errors import ModelError
from ranksieve.forest.ctr_forest import read_ctr_forest
from ranksieve.forest.formats.model_files import decoded, read_content
from ranksieve.forest.formats.model_files import read as read_forest
from ranksieve.forest.json_model import START, kind_of
from ranksieve.forest.model import Model
from ranksieve.models.blend import read_blend
from ranksieve.models.grades import has_classes, read_grades
from ranksieve.models.linear import read_linear
from ranksieve.models.net import read_net

KINDS: dict[str, Callable[[bytes, str], Model]] = {
    "linear": read_linear,
    "net": read_net,
    "blend": lambda content, source: read_blend(content, source, read_model),
    "ctr": read_ctr_forest,
}


def load(path: str | os.PathLike[str], *, n_features: int | None = None) -> Model:
    """Read a model file: any ranker that `train` makes, or a forest of another library.

    The content decides the format: ranksieve's and LightGBM's text, XGBoost JSON and UBJSON, RankLib and QuickRank XML,
    CatBoost JSON (a `CtrForest` where it has statistics of combinations of features). Rankers and regressors of other
    libraries are read if their score is the plain sum of leaves; others are refused with the reason.

    Parameters
    ----------
    path : str or path
    n_features : int, optional
        How many features documents have, for files of RankLib and QuickRank, which do not store it; by default as many
        as the trees use.

    Raises
    ------
    ModelError
        The file cannot be read, is damaged, or holds a model of an unknown kind; the message names the place.

    Examples
    --------
    >>> import tempfile
    >>> import ranksieve as rs
    >>> model = rs.train(rs.synth.cubic(20), algo="ranksvm")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.json")
    ...     load(f"{folder}/model.json")
    Linear(50 weights)
    """
    return read_model(read_content(path), str(path), n_features)


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a model, by its first bytes."""
    head = first_bytes(os.fspath(path))
    return starts_like_model(head) or START.startswith(head[: len(START)])


def read_model(content: bytes, source: str, n_features: int | None = None) -> Model:
    """A model of any kind from the content of its file; `source` names it in errors."""
    if content.startswith(START):
        kind = kind_of(content)
        if kind not in tuple(KINDS):  # a damaged file may hold a list, which has no hash
            raise ModelError(f"{source}: is a model of kind {kind!r}; known: {', '.join(KINDS)}; upgrade ranksieve")
        return KINDS[kind](content, source)
    if has_classes(content):
        return read_grades(decoded(content, source), source)
    return read_forest(content, source, n_features)
