"""Model files of every format: told apart by their content when read, chosen by name when written."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ranksieve.data.compression import FORMATS as COMPRESSIONS
from ranksieve.errors import ModelError, ParameterError
from ranksieve.files import atomic_path
from ranksieve.forest.content import read_content
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats import catboost_reader, xgboost_reader
from ranksieve.forest.formats.c_source import to_c
from ranksieve.forest.formats.expressible import MISSING, Options, with_missing_as_zero
from ranksieve.forest.formats.nodes import reading
from ranksieve.forest.formats.onnx_graph import to_onnx
from ranksieve.forest.formats.solr import to_solr
from ranksieve.forest.formats.xgboost_writer import to_dump, to_xgboost
from ranksieve.forest.formats.xml_reader import TREES, read_quickrank, read_ranklib
from ranksieve.forest.formats.xml_writer import to_quickrank, to_ranklib
from ranksieve.forest.lightgbm_reader import from_text
from ranksieve.forest.lightgbm_writer import to_text


@dataclass(frozen=True)
class Format:
    """A format that can be written: what it is for, and the function that makes its content."""

    about: str
    content: Callable[[Forest, Options], str | bytes]


FORMATS = {
    "lightgbm": Format("LightGBM text, our own model file: nothing is lost", lambda forest, _: to_text(forest)),
    "xgboost": Format("XGBoost JSON, for xgboost.Booster and treelite", to_xgboost),
    "elasticsearch": Format("XGBoost's JSON dump, for the LTR plugins of Elasticsearch and OpenSearch", to_dump),
    "ranklib": Format("RankLib, also read by those plugins", to_ranklib),
    "quickrank": Format("QuickRank XML", to_quickrank),
    "solr": Format("Solr's MultipleAdditiveTreesModel", to_solr),
    "onnx": Format("ONNX TreeEnsembleRegressor, for onnxruntime", to_onnx),
    "c": Format("one C file without dependencies", to_c),
}
ENDINGS = {
    ".json": ("xgboost", "elasticsearch", "solr"),
    ".xml": ("quickrank",),
    ".onnx": ("onnx",),
    ".c": ("c",),
}  # of files in which nobody expects LightGBM text
READ = "LightGBM text, XGBoost JSON or UBJSON, RankLib, QuickRank XML and CatBoost JSON"
PACKED = tuple(first for first, _ in COMPRESSIONS.values())


def save(
    forest: Forest,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    missing: str = "nan",
    nearest: bool = False,
) -> None:
    """See `Forest.save`."""
    ending = Path(path).suffix.lower()
    if format is None and ending in ENDINGS:
        meant = " or ".join(f"--format={name}" for name in (*ENDINGS[ending], "lightgbm"))
        raise ParameterError(f"{path}: say what a {ending} file is to hold: {meant}")
    format = "lightgbm" if format is None else format
    if format not in FORMATS:
        raise ParameterError(f"--format is {format!r}; expected one of {', '.join(FORMATS)}")
    if missing not in MISSING:
        raise ParameterError(f"--missing is {missing!r}; expected one of {', '.join(MISSING)}")
    if missing == "zero":
        forest = with_missing_as_zero(forest)
    options = Options(name=Path(path).stem or "model", missing=missing, nearest=nearest)
    content = FORMATS[format].content(forest, options)
    with atomic_path(path) as temporary:
        temporary.write_bytes(content if isinstance(content, bytes) else content.encode())


def load_forest(path: str | os.PathLike[str], *, n_features: int | None = None) -> Forest:
    """Read a model file; its format is told from its content.

    See `ranksieve.load`, which reads other rankers as well.

    Examples
    --------
    >>> load_forest("no-such-model.txt")
    Traceback (most recent call last):
    ranksieve.errors.ModelError: no-such-model.txt: cannot be read (No such file or directory); check the path
    """
    return read(read_content(path), str(path), n_features)


def read(content: bytes, source: str, n_features: int | None = None) -> Forest:
    """The forest in the content of a file; `source` names it in errors."""
    start = content[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"{"):
        return _read_object(content.lstrip(b"\xef\xbb\xbf \t\r\n"), source)
    if start.startswith(b"#"):
        return read_ranklib(_text(content, source), source, n_features)
    if start.startswith(b"<"):
        return read_quickrank(_text(content, source), source, n_features)
    if start.startswith(b"["):
        raise ModelError(
            f"{source}: looks like a dump of XGBoost's trees, which lacks the base score; "
            "save the model with Booster.save_model"
        )
    if start.startswith(PACKED):
        raise ModelError(f"{source}: is compressed; unpack it if it holds a model; models come first, data after them")
    if start.startswith(b"PAR1") or b" qid:" in start.split(b"\n", 1)[0]:
        raise ModelError(f"{source}: holds data, not a model; models come first, data after them")
    if content.strip() and not start.startswith(b"tree"):
        first = start.split(b"\n", 1)[0][:40].decode(errors="replace")
        raise ModelError(f"{source}:1: starts with {first!r}, which no known model does; read are {READ}")
    return from_text(_text(content, source), source=source)


def is_model(head: bytes) -> bool:
    """Whether a file with these first bytes is a model of one of the formats, and no data."""
    return head.startswith((b"tree\n", b"tree\r\n", b"{", b"<", *(f"## {kind}".encode() for kind in TREES)))


def _read_object(content: bytes, source: str) -> Forest:
    """JSON or UBJSON, by its keys."""
    with reading(source, "whole JSON or UBJSON"):
        model = xgboost_reader.decode(content)
    keys = set(model) if isinstance(model, dict) else set()
    if "learner" in keys:
        return xgboost_reader.forest_of(model, source)
    if "features_info" in keys:
        return catboost_reader.forest_of(model, source)
    kind = "a JSON dump of LightGBM" if "tree_info" in keys else "a model of Solr" if "class" in keys else "JSON"
    raise ModelError(f"{source}: is {kind}, which cannot be read; read are {READ}")


def _text(content: bytes, source: str) -> str:
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ModelError(f"{source}:{line}: is not UTF-8 text; read are {READ}") from error
