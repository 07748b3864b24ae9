"""`load`: a model of any kind from its file, told apart by content."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from ranksieve.errors import ModelError
from ranksieve.forest.lightgbm_text import read_lightgbm
from ranksieve.forest.model import Model
from ranksieve.rankers.json_model import START
from ranksieve.rankers.linear import read_linear
from ranksieve.rankers.net import read_net

KINDS: dict[str, Callable[[bytes, str], Model]] = {"linear": read_linear, "net": read_net}


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model file: a forest, or any other ranker that `train` makes.

    Raises
    ------
    ModelError
        The file cannot be read, is not whole, or holds a model of an unknown kind; says where and what to do.

    Examples
    --------
    >>> import tempfile
    >>> import ranksieve as rs
    >>> model = rs.train(rs.cubic(20), algo="ranksvm")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.json")
    ...     load(f"{folder}/model.json")
    Linear(50 weights)
    """
    try:
        with open(path, "rb") as file:
            is_json = file.read(len(START)) == START
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    if not is_json:
        return read_lightgbm(path)
    content = Path(path).read_bytes()
    return KINDS[_kind(content, str(path))](content, str(path))


def _kind(content: bytes, source: str) -> str:
    """The word after `"kind":`, near the start of the file."""
    _, _, rest = content[:200].partition(b'"kind":')
    try:
        kind, _ = json.JSONDecoder().raw_decode(rest.decode(errors="replace"))
    except ValueError:
        kind = None
    if kind not in KINDS:
        raise ModelError(f"{source}: is a model of kind {kind!r}; known: {', '.join(KINDS)}; upgrade ranksieve")
    return kind
