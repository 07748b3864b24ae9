"""A forest from the text of a LightGBM model: its header, and our own section; `lightgbm_trees` reads the trees."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ranksieve.errors import ModelError
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.lightgbm_trees import REMEDY, TreeText, read_trees
from ranksieve.forest.formats.lightgbm_writer import FORMAT, SECTION
from ranksieve.forest.json_model import is_info

VERSIONS = ("v2", "v3", "v4")
# Objectives whose prediction is the plain sum of leaf values; "" and "none" are users' own objectives.
PLAIN_OBJECTIVES = (
    "lambdarank",
    "rank_xendcg",
    "regression",
    "regression_l1",
    "huber",
    "fair",
    "quantile",
    "mape",
    "custom",
    "none",
    "",
)


def from_text(text: str, source: str = "<text>") -> Forest:
    """The forest of a LightGBM text model; `source` names it in errors.

    Ranking and regression models are read, and score as LightGBM scores them. Models that are not a plain sum of leaf
    values are refused: linear trees, several classes, random forests, objectives with a transformed output.

    Examples
    --------
    >>> from ranksieve.forest.forest import empty_forest
    >>> from ranksieve.forest.formats.lightgbm_writer import to_text
    >>> from_text(to_text(empty_forest(["bm25"], {"params": {"n_trees": 0}}))).info
    {'params': {'n_trees': 0}}
    >>> from_text("tree\\nversion=v4\\n", source="model.txt")
    Traceback (most recent call last):
    ranksieve.errors.ModelError: model.txt:3: ends before 'end of trees'; the file is cut off, ...
    """
    return parse_text(text, source, check_plain)[0]


def parse_text(text: str, source: str, check_header: Callable[[Header], None]) -> tuple[Forest, Header]:
    """The trees of a LightGBM text model and its header; `check_header` refuses models that the caller cannot use."""
    text = text.replace("\r\n", "\n")
    if not text.strip():
        raise ModelError(f"{source}: is empty; expected a LightGBM text model, {REMEDY}")
    if not text.startswith("tree\n"):
        first = text.split("\n", 1)[0][:40]
        raise ModelError(
            f"{source}:1: starts with {first!r}; a LightGBM text model starts with a line 'tree', "
            "as Booster.save_model writes it (JSON dumps and pickles cannot be read)"
        )
    end = re.search(r"^end of trees$", text, re.MULTILINE)
    if end is None:
        lines = text.count("\n") + 1
        raise ModelError(f"{source}:{lines}: ends before 'end of trees'; the file is cut off, {REMEDY}")
    starts = [match.start() for match in re.finditer(r"^Tree=", text[: end.start()], re.MULTILINE)]
    header = _header(text[: starts[0] if starts else end.start()], source)
    check_header(header)
    names = _feature_names(header)
    blocks = _blocks(text, starts, end.start(), source)
    _check_sizes(header, blocks)
    arrays = read_trees(blocks, len(names))
    own = _own_section(text, end.end(), len(names), header)
    forest = Forest(
        **arrays,
        weights=np.ones(len(blocks)),
        feature_names=tuple(names if own is None else own["feature_names"]),
        info=_info(text[end.end() :], header, names) if own is None else own["info"],
    )
    return forest, header


@dataclass(frozen=True)
class Header:
    """The lines `key=value` before the trees."""

    values: dict[str, str]
    lines: dict[str, int]
    source: str

    def error(self, key: str, message: str) -> ModelError:
        """The error to raise, with the line of a key."""
        return ModelError(f"{self.source}:{self.lines.get(key, 1)}: {message}")


def _header(text: str, source: str) -> Header:
    values, lines = {}, {}
    for number, line in enumerate(text.split("\n"), start=1):
        key, _, value = line.partition("=")
        values[key.strip()] = value.strip()
        lines[key.strip()] = number
    header = Header(values, lines, source)
    for key in ("version", "num_class", "max_feature_idx", "feature_names"):
        if key not in values:
            raise header.error(key, f"the header has no line '{key}='; the file was changed, {REMEDY}")
    return header


def check_plain(header: Header) -> None:
    """Refuse models that are not a plain sum of leaf values."""
    values = header.values
    if values["version"] not in VERSIONS:
        raise header.error(
            "version",
            f"version is {values['version'][:20]!r}, expected one of {', '.join(VERSIONS)}; "
            "save the model with LightGBM 2.2 or later, or upgrade ranksieve",
        )
    for key in ("num_class", "num_tree_per_iteration"):
        if values.get(key, "1") != "1":
            raise header.error(
                key,
                f"{key} is {values[key][:20]!r}, expected 1: several classes give no single score; "
                "train with a ranking or regression objective",
            )
    if "average_output" in values:
        raise header.error(
            "average_output",
            "is a random forest whose trees are averaged, expected trees to add up; train with boosting=gbdt",
        )
    objective, *options = values.get("objective", "").split() or [""]
    if objective not in PLAIN_OBJECTIVES or "sqrt" in options:
        raise header.error(
            "objective",
            f"objective {values['objective'][:40]!r} transforms its output; expected one of "
            f"{', '.join(name for name in PLAIN_OBJECTIVES if name)}. "
            "To use the raw scores, which rank the same, delete this line",
        )


def _feature_names(header: Header) -> list[str]:
    names = header.values["feature_names"].split()
    last = header.values["max_feature_idx"]
    if last != str(len(names) - 1):
        raise header.error(
            "max_feature_idx",
            f"max_feature_idx is {last[:20]!r} but there are {len(names)} feature names; "
            f"the file was changed, {REMEDY}",
        )
    return names


def _blocks(text: str, starts: list[int], end: int, source: str) -> list[TreeText]:
    blocks = []
    line = 1 + text.count("\n", 0, starts[0]) if starts else 1
    for number, (start, stop) in enumerate(pairwise([*starts, end])):
        block = TreeText(number, text[start:stop], source, line)
        if not block.text.startswith(f"Tree={number}\n"):
            raise block.error(f"expected Tree={number} here; a tree is missing, {REMEDY}")
        blocks.append(block)
        line += block.text.count("\n")
    return blocks


def _check_sizes(header: Header, blocks: list[TreeText]) -> None:
    """LightGBM jumps to trees by `tree_sizes`: it would misread a file where they are wrong."""
    if "tree_sizes" not in header.values:
        return
    sizes = header.values["tree_sizes"].split()
    if len(sizes) != len(blocks):
        raise header.error(
            "tree_sizes", f"announces {len(sizes)} trees but the file holds {len(blocks)}; it is not whole, {REMEDY}"
        )
    for block, size in zip(blocks, sizes, strict=True):
        if size != str(len(block.text.encode())):
            raise block.error(
                f"tree {block.number} has {len(block.text.encode())} bytes but tree_sizes has {size[:20]}; "
                f"the file was changed, {REMEDY}"
            )


def _own_section(text: str, start: int, n_features: int, header: Header) -> dict[str, Any] | None:
    source = header.source
    match = re.compile(rf"^{SECTION}(.*)$", re.MULTILINE).search(text, start)
    if match is None:
        if "ranksieve" in header.values:
            lines = text.count("\n") + 1
            raise ModelError(f"{source}:{lines}: ends before its line '{SECTION}'; the file is cut off, {REMEDY}")
        return None
    where = f"{source}:{text.count(chr(10), 0, match.start()) + 1}"
    try:
        own = json.loads(match[1])
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{where}: is not JSON; the file is cut off or was changed, {REMEDY}") from error
    if isinstance(own, dict) and isinstance(own.get("format"), int) and own["format"] > FORMAT:
        raise ModelError(f"{where}: has format {own['format']}, this ranksieve reads up to {FORMAT}; upgrade ranksieve")
    if not _is_section(own, n_features):
        raise ModelError(
            f"{where}: needs a format, {n_features} feature names and an info object; the file was changed, {REMEDY}"
        )
    return own


def _is_section(own: Any, n_features: int) -> bool:
    if not (isinstance(own, dict) and own.get("format") == FORMAT and is_info(own.get("info"))):
        return False
    names = own.get("feature_names")
    return isinstance(names, list) and len(names) == n_features and all(isinstance(name, str) for name in names)


def _info(text: str, header: Header, names: list[str]) -> dict[str, Any]:
    """What LightGBM has written besides the trees: parameters, and the names of categories."""
    categories = _categories(text, header, names)
    return {"params": _parameters(text, header), **({"categories": categories} if categories else {})}


def _categories(text: str, header: Header, names: list[str]) -> dict[str, list[str]]:
    """The names of categories by feature; none where pandas did not give LightGBM any.

    LightGBM stores the names in the order of the columns, and the categorical features in `feature_infos`. Where these
    differ in number, some features were numbers, and the names cannot be assigned.
    """
    infos = header.values.get("feature_infos", "").split()
    split_by = [name for name, info in zip(names, infos, strict=False) if not info.startswith("[") and info != "none"]
    found = re.search(r"^pandas_categorical:(.*)$", text, re.MULTILINE)
    try:
        named = json.loads(found[1]) if found else None
    except (ValueError, RecursionError):
        named = None
    if not isinstance(named, list) or len(named) != len(split_by) or not all(isinstance(one, list) for one in named):
        named = [[]] * len(split_by)
    return {name: [str(value) for value in values] for name, values in zip(split_by, named, strict=True)}


def _parameters(text: str, header: Header) -> dict[str, str]:
    """The training parameters that LightGBM has written, as texts."""
    found = re.findall(r"^\[([^:\n]+): (.*)\]$", text, re.MULTILINE)
    return {**dict(found), "objective": header.values.get("objective", "none")}
