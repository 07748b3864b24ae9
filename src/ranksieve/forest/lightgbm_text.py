"""The model file: a LightGBM text model, written and read without LightGBM.

Whatever reads LightGBM models (LightGBM, treelite, lleaves, ONNX converters) reads ours. What LightGBM has no place
for stands in a section it skips, as JSON: the true feature names, the parameters, the history of training.

`lightgbm_writer` writes the text, `lightgbm_reader` reads its header and sections, `lightgbm_trees` its trees.
"""

from __future__ import annotations

import os

from ranksieve.errors import ModelError
from ranksieve.files import atomic_path
from ranksieve.forest.content import read_content
from ranksieve.forest.forest import Forest
from ranksieve.forest.lightgbm_reader import from_text
from ranksieve.forest.lightgbm_writer import to_text

__all__ = ["decoded", "from_text", "read_lightgbm", "to_text", "write_lightgbm"]


def write_lightgbm(forest: Forest, path: str | os.PathLike[str]) -> None:
    """Write a forest as a LightGBM text model; the file appears whole or not at all.

    `lightgbm.Booster(model_file=path)` predicts the same bits as the forest. Tree weights are multiplied into the leaf
    values, so a forest read back has weights 1 and the same scores. Equal forests give equal bytes.

    Parameters
    ----------
    forest : Forest
    path : str or path
        Replaced if it exists.

    Raises
    ------
    ModelError
        The forest's arrays do not make trees, or a weighted leaf value is not finite.

    Examples
    --------
    >>> import tempfile
    >>> from ranksieve.forest.forest import empty_forest
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_lightgbm(empty_forest(["title match", "clicks"]), f"{folder}/model.txt")
    ...     read_lightgbm(f"{folder}/model.txt").feature_names
    ('title match', 'clicks')
    """
    text = to_text(forest)
    with atomic_path(path) as temporary:
        temporary.write_bytes(text.encode())


def read_lightgbm(path: str | os.PathLike[str]) -> Forest:
    """Read a text model written by `write_lightgbm` or by LightGBM itself.

    Ranking and regression models with numerical splits are read, and score as LightGBM scores them. Models that are
    not a plain sum of leaf values are refused: categorical splits, linear trees, several classes, random forests,
    objectives with a transformed output.

    Raises
    ------
    ModelError
        The file cannot be read, is not whole, or holds a model of a refused kind; says where and what to do.

    Examples
    --------
    >>> read_lightgbm("no-such-model.txt")
    Traceback (most recent call last):
    ranksieve.errors.ModelError: no-such-model.txt: cannot be read (No such file or directory); check the path
    """
    return from_text(decoded(read_content(path), str(path)), source=str(path))


def decoded(content: bytes, source: str) -> str:
    """The text of a model file."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ModelError(
            f"{source}:{line}: is not UTF-8 text; expected a LightGBM text model as Booster.save_model writes it"
        ) from error
