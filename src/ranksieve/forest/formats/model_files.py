"""Model files of every format: the content decides when they are read, the name when they are written."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ranksieve.data.compression import FORMATS as COMPRESSIONS
from ranksieve.data.csv import is_csv_text
from ranksieve.data.other_files import INDEX_HEADER, is_dump, other_text
from ranksieve.errors import ModelError, ParameterError, Remedy, check_choice, param
from ranksieve.files import atomic_path
from ranksieve.forest.ctr_forest import KIND as CTR
from ranksieve.forest.ctr_forest import CtrForest, read_ctr_forest
from ranksieve.forest.forest import Forest, forest_of
from ranksieve.forest.formats import catboost, xgboost
from ranksieve.forest.formats.c_source import to_c
from ranksieve.forest.formats.engine_features import ENGINE_OF, warn_of_features
from ranksieve.forest.formats.lightgbm_reader import from_text
from ranksieve.forest.formats.lightgbm_writer import changed_names, to_text
from ranksieve.forest.formats.nodes import reading
from ranksieve.forest.formats.onnx import to_onnx
from ranksieve.forest.formats.solr import to_solr
from ranksieve.forest.formats.vespa import to_vespa
from ranksieve.forest.formats.writing import MISSING, Options, with_missing_as_zero
from ranksieve.forest.formats.xml_models import read_quickrank, read_ranklib, to_quickrank, to_ranklib
from ranksieve.forest.json_model import kind_of
from ranksieve.text_formats import some_of

LOG = logging.getLogger("ranksieve.models")
MOST_NAMED = 5  # features in a message


@dataclass(frozen=True)
class Format:
    """A format that can be written: what it is for, and the function that makes its content."""

    about: str
    content: Callable[[Forest, Options], str | bytes]


FORMATS = {
    "lightgbm": Format("LightGBM text, our own model file: nothing is lost", lambda forest, _: to_text(forest)),
    "xgboost": Format("XGBoost JSON, for xgboost.Booster and treelite", xgboost.to_xgboost),
    "elasticsearch": Format(
        "XGBoost's JSON dump, for the LTR plugins of Elasticsearch and OpenSearch", xgboost.to_dump
    ),
    "ranklib": Format("RankLib, also read by those plugins", to_ranklib),
    "quickrank": Format("QuickRank XML", to_quickrank),
    "solr": Format("Solr's MultipleAdditiveTreesModel", to_solr),
    "vespa": Format("LightGBM's JSON dump, for Vespa's rank feature lightgbm", to_vespa),
    "onnx": Format("ONNX TreeEnsembleRegressor, for onnxruntime", to_onnx),
    "c": Format("one C file without dependencies", to_c),
}
ENDINGS = {
    ".json": ("xgboost", "elasticsearch", "solr", "vespa"),
    ".xml": ("quickrank",),
    ".onnx": ("onnx",),
    ".c": ("c",),
}  # of files in which a user does not expect LightGBM text
OTHER_JSON = {  # by a key
    "tree_info": "a JSON dump of LightGBM",
    "class": "a model of Solr",
    "first_stage": "a first stage, for --stage",
    "propensities": "propensities of ranks, for ranksieve clicks",
    "featureset": "a feature set, for a search engine",
}
READ = "LightGBM text, XGBoost JSON or UBJSON, RankLib, QuickRank XML and CatBoost JSON"
COMPRESSED = tuple(first for first, _ in COMPRESSIONS.values())


def read_content(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a model file."""
    if (Path(path) / INDEX_HEADER).is_file():
        remedy = Remedy("; open it with rs.Index", "; it is for ranksieve retrieve, features, rerank and serve")
        raise ModelError(f"{path}: is an index, not a model", remedy)
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        raise ModelError(f"{path}: no such file; check the path") from error
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); check the path") from error


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
        meant = [part for name in (*ENDINGS[ending], "lightgbm") for part in (param("format", name), " or ")]
        raise ParameterError(f"{path}: the extension {ending} does not stand for LightGBM text; give ", *meant[:-1])
    format = "lightgbm" if format is None else format
    check_choice("format", format, FORMATS)
    check_choice("missing", missing, MISSING)
    if missing == "zero":
        forest = with_missing_as_zero(forest)
    elif missing == "never":  # of categories, any direction will do: LightGBM has only one
        forest = replace(forest, default_left=forest.default_left & ~forest.categorical)
    options = Options(name=Path(path).stem or "model", missing=missing, nearest=nearest)
    content = FORMATS[format].content(forest, options)
    with atomic_path(path) as temporary:
        temporary.write_bytes(content if isinstance(content, bytes) else content.encode())
    if format == "lightgbm" and (changed := changed_names(forest.feature_names)):
        shown = some_of([f"{name!r} as {plain!r}" for name, plain in changed.items()], MOST_NAMED)
        LOG.warning(
            "%s: LightGBM's header cannot hold some feature names and has %s; ranksieve reads them unchanged",
            path,
            shown,
        )
    if format in ENGINE_OF:
        warn_of_features(forest, format, path)


def load_forest(path: str | os.PathLike[str], *, n_features: int | None = None) -> Forest:
    """Read a model file in any of the formats; the content decides which.

    `ranksieve.load` reads other rankers as well, and forests on statistics of combinations of features.

    Examples
    --------
    >>> load_forest("no-such-model.txt")
    Traceback (most recent call last):
    ranksieve.errors.ModelError: no-such-model.txt: no such file; check the path
    """
    content = read_content(path)
    kind = kind_of(content)
    if isinstance(kind, str) and kind != CTR:
        raise ModelError(
            f"{path}: is a model of kind {kind!r}, not a forest; convert, prune and other functions of trees take "
            "forests only"
        )
    forest = read_ctr_forest(content, str(path)) if kind == CTR else read(content, str(path), n_features)
    if isinstance(forest, CtrForest):
        raise ModelError(f"{path}: {forest.not_a_forest()}")
    return forest


def given_forest(model: Any, *, n_features: int | None = None) -> Forest:
    """A forest, or that of a file."""
    return load_forest(model, n_features=n_features) if isinstance(model, str | os.PathLike) else forest_of(model)


def read(content: bytes, source: str, n_features: int | None = None) -> Forest | CtrForest:
    """The forest in the content of a file; `source` names it in errors."""
    start = content[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    if (other := other_text(content, source)) is not None:
        raise ModelError(f"{source}: {other.refusal('a model')}")
    if start.startswith(b"{"):
        return _read_object(content.lstrip(b"\xef\xbb\xbf \t\r\n"), source)
    if start.startswith(b"#"):
        return read_ranklib(decoded(content, source), source, n_features)
    if start.startswith(b"<"):
        return read_quickrank(decoded(content, source), source, n_features)
    if is_dump(start):
        raise ModelError(
            f"{source}: is a JSON dump of XGBoost's trees, as Elasticsearch reads it, which lacks the base score; give "
            "the model that it was made of, or save that with Booster.save_model"
        )
    if start.startswith(COMPRESSED):
        raise ModelError(
            f"{source}: is compressed; decompress a model file first",
            Remedy("", " (models come before data on the command line)"),
        )
    if start.startswith(b"CBM1"):
        raise ModelError(
            f'{source}: is CatBoost\'s binary format; save the model as JSON, save_model(…, format="json", pool=the '
            "training data), or give the CatBoost model to rs.io.from_model"
        )
    is_lightgbm = start.startswith(b"tree")
    if start.startswith(b"PAR1") or b" qid:" in start.split(b"\n", 1)[0] or (not is_lightgbm and is_csv_text(content)):
        remedy = Remedy("; rs.read reads it", "; models come before data on the command line")
        raise ModelError(f"{source}: is data, not a model", remedy)
    if content.strip() and not is_lightgbm:
        first = start.split(b"\n", 1)[0][:40].decode(errors="replace")
        raise ModelError(f"{source}:1: starts with {first!r}, which is not a known model format; {READ} can be read")
    return from_text(decoded(content, source), source=source)


def _read_object(content: bytes, source: str) -> Forest | CtrForest:
    """The forest in JSON or UBJSON; the keys decide whose it is."""
    with reading(source, "whole JSON or UBJSON"):
        model = xgboost.decode(content)
    keys = set(model) if isinstance(model, dict) else set()
    if "learner" in keys:
        return xgboost.forest_of(model, source)
    if "features_info" in keys:
        return catboost.forest_of(model, source)
    fields = f"JSON with {some_of(sorted(map(str, keys)), MOST_NAMED)}" if keys else "JSON"
    kind = next((text for key, text in OTHER_JSON.items() if key in keys), fields)
    raise ModelError(f"{source}: is {kind}, which cannot be read as a model; {READ} can")


def decoded(content: bytes, source: str) -> str:
    """The text of a model file, with line ends as on Unix."""
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ModelError(f"{source}:{line}: is not UTF-8 text; {READ} can be read") from error
