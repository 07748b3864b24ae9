"""A forest as the text of a LightGBM model, which LightGBM, treelite and lleaves read.

A section that LightGBM skips holds the rest as JSON: the true feature names, the parameters, the training history.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ranksieve.errors import ModelError, param
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.nodes import words_of_codes
from ranksieve.forest.structure import checked_values, children_of, levels, of_children

FORMAT = 1  # version of our own section; a reader refuses newer ones
SECTION = "ranksieve:"  # starts the line of our own section

CATEGORICAL = 1  # bits of LightGBM's decision_type
DEFAULT_LEFT = 2
MISSING_ZERO = 1 << 2
MISSING_NAN = 2 << 2

SQUARED_ERRORS = {"regression", "l2", "mse", "squared_error", "reg:squarederror", "reg:linear", "RMSE"}


def to_text(
    forest: Forest, *, classes: int = 1, objective: str | None = None, info: Mapping[str, Any] | None = None
) -> str:
    """The text of a LightGBM model that predicts what the forest predicts.

    With `classes`, trees belong to that many classes in turn; `objective` then defines how their sums become
    probabilities. `info` replaces the forest's.

    Examples
    --------
    >>> from ranksieve.forest.forest import empty_forest
    >>> to_text(empty_forest(["bm25"])).splitlines()[:3]
    ['tree', 'version=v4', 'num_class=1']
    """
    values = checked_values(forest)
    check_sets(forest, "LightGBM sends them right")
    trees = _tree_texts(forest, values)
    options = f" num_class:{classes}" + " sigmoid:1" * (objective == "multiclassova")
    objective = objective_name(forest) if objective is None else objective + options
    header = {
        "version": "v4",
        "num_class": str(classes),
        "num_tree_per_iteration": str(classes),
        "label_index": "0",
        "max_feature_idx": str(forest.n_features - 1),
        "objective": objective,
        "feature_names": " ".join(_plain_names(forest.feature_names)),
        "feature_infos": " ".join(_feature_infos(forest)),
        "ranksieve": str(FORMAT),
        "tree_sizes": " ".join(str(len(tree)) for tree in trees),
    }
    return "".join(
        [
            "tree\n",
            *(f"{key}={value}\n" for key, value in header.items()),
            "\n",
            *trees,
            "end of trees\n\n",
            f"parameters:\n[boosting: gbdt]\n[objective: {objective.split()[0]}]\nend of parameters\n\n",
            f"{SECTION}{_own_section(forest, forest.info if info is None else info)}\n\n",
            f"pandas_categorical:{_pandas_categories(forest)}\n",
        ]
    )


def _tree_texts(forest: Forest, values: np.ndarray) -> list[str]:
    internal_values, internal_weights = internal(forest, values)
    missing = np.where(forest.zero_missing, MISSING_ZERO, MISSING_NAN)
    numbers, sets = _set_numbers(forest)
    per_split = {
        "split_feature": forest.feature,
        "split_gain": forest.gain,
        "threshold": np.where(forest.categorical, numbers, forest.threshold),
        "decision_type": missing + DEFAULT_LEFT * forest.default_left + CATEGORICAL * forest.categorical,
        "left_child": forest.left,
        "right_child": forest.right,
    }
    per_leaf = {"leaf_value": values, "leaf_weight": forest.leaf_weight, "leaf_count": forest.leaf_count}
    inner = {
        "internal_value": internal_values,
        "internal_weight": internal_weights,
        "internal_count": forest.split_count,
    }
    # repr is the shortest text that reads back to the same float64
    columns = [
        (name, list(map(repr, array.tolist())), offsets.tolist())
        for arrays, offsets in (
            (per_split, forest.split_offsets),
            (per_leaf, forest.leaf_offsets),
            (inner, forest.split_offsets),
        )
        for name, array in arrays.items()
    ]
    texts = []
    for tree, n_leaves in enumerate(forest.n_leaves.tolist()):
        lines = [f"Tree={tree}", f"num_leaves={n_leaves}", f"num_cat={len(sets.get(tree, ()))}"]
        lines += [f"{name}={' '.join(words[at[tree] : at[tree + 1]])}" for name, words, at in columns]
        lines += _set_lines(sets[tree]) if tree in sets else []
        lines += ["is_linear=0", "shrinkage=1", "", "", ""]
        texts.append("\n".join(lines))
    return texts


def check_sets(forest: Forest, reason: str) -> None:
    """Refuse categorical splits that send missing values left, as XGBoost's may; `reason` is what a consumer does."""
    left = forest.categorical & forest.default_left
    if left.any():
        name = forest.feature_names[forest.feature[np.argmax(left)]]
        raise ModelError(
            f"a split by the categories of {name!r} sends missing values left, and {reason}; give ",
            param("missing", "never"), " if no value is missing",
        )  # fmt: skip


def _set_numbers(forest: Forest) -> tuple[np.ndarray, dict[int, list[np.ndarray]]]:
    """The number of each categorical split among those of its tree, and the words of their sets by tree."""
    numbers = np.zeros(len(forest.feature))
    sets: dict[int, list[np.ndarray]] = {}
    for split in np.flatnonzero(forest.categorical).tolist():
        tree = int(np.searchsorted(forest.split_offsets, split, side="right")) - 1
        mine = sets.setdefault(tree, [])
        numbers[split] = len(mine)
        mine.append(words_of_codes(forest.set_of(split)))
    return numbers, sets


def _set_lines(sets: list[np.ndarray]) -> list[str]:
    boundaries = np.cumsum([0, *map(len, sets)]).tolist()
    words = np.concatenate(sets).tolist()
    return [f"cat_boundaries={' '.join(map(str, boundaries))}", f"cat_threshold={' '.join(map(str, words))}"]


def category_numbers(forest: Forest) -> dict[int, list[int]]:
    """The categorical features, and the numbers of their categories: those with names, and those in sets."""
    numbers = {
        at: {0, *range(len(forest.categories[name]))}
        for at, name in enumerate(forest.feature_names) if name in forest.categories
    }  # fmt: skip
    for split in np.flatnonzero(forest.categorical).tolist():
        numbers.setdefault(int(forest.feature[split]), {0}).update(forest.set_of(split).tolist())
    return {at: sorted(numbers[at]) for at in sorted(numbers)}


def _feature_infos(forest: Forest) -> Iterator[str]:
    """What LightGBM notes of each feature: its categories, or the range of its values."""
    numbers = category_numbers(forest)
    for at in range(forest.n_features):
        yield ":".join(map(str, numbers[at])) if at in numbers else "[-inf:inf]"


def _pandas_categories(forest: Forest) -> str:
    """The names of categories as LightGBM's Python package writes them, in the order of the features."""
    named = [list(forest.categories[name]) for name in forest.feature_names if forest.categories.get(name)]
    return json.dumps(named) if named else "null"


def internal(forest: Forest, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Value and weight of every split, from its children: the mean by training documents, and the sum."""
    n_splits = len(forest.feature)
    mean, weight, sides = np.zeros(n_splits), np.zeros(n_splits), children_of(forest)
    for splits in reversed(levels(forest.left, forest.right, forest.split_offsets)):
        sums = np.zeros((3, len(splits)))  # counts, count * value, weight
        plain = np.zeros(len(splits))
        for side in sides:
            count = of_children(side[splits], forest.split_count, forest.leaf_count).astype(np.float64)
            value = of_children(side[splits], mean, values)
            sums += count, count * value, of_children(side[splits], weight, forest.leaf_weight)
            plain += value / 2
        counted = sums[0] > 0
        mean[splits] = np.where(counted, sums[1] / np.where(counted, sums[0], 1), plain)
        weight[splits] = sums[2]
    return mean, weight


def is_regression(forest: Forest) -> bool:
    """Whether the model was trained on squared error; other formats have a name for that, too."""
    params = forest.info.get("params")
    return isinstance(params, Mapping) and str(params.get("objective")) in SQUARED_ERRORS


def objective_name(forest: Forest) -> str:
    """LightGBM's objective; for both, the prediction is the plain sum of leaves."""
    return "regression" if is_regression(forest) else "lambdarank"


def changed_names(names: tuple[str, ...]) -> dict[str, str]:
    """The feature names that LightGBM's header cannot hold, and what it has instead.

    Examples
    --------
    >>> changed_names(("bm25", "price, EUR"))
    {'price, EUR': 'price__EUR'}
    """
    return {name: plain for name, plain in zip(names, _plain_names(names), strict=True) if name != plain}


def _plain_names(names: tuple[str, ...]) -> list[str]:
    """Feature names that LightGBM's header allows: without blanks, '=' and JSON signs, not empty, unique."""
    plain: dict[str, None] = {}
    for number, name in enumerate(names, start=1):
        name = re.sub(r"[\s=\",:\[\]{}\x00-\x1f\x7f-\x9f]", "_", name) or f"f{number}"
        while name in plain:
            name += f"_{number}"
        plain[name] = None
    return list(plain)


def _own_section(forest: Forest, info: Mapping[str, Any]) -> str:
    # times differ between runs, and the same training must give the same file
    info = {name: value for name, value in info.items() if name not in ("seconds", "phase_seconds")}
    section = {"format": FORMAT, "feature_names": list(forest.feature_names), "info": info}
    try:
        text = json.dumps(section, default=_plain_value)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"the forest's info cannot be written as JSON ({error}); use only numbers, strings, lists and dicts"
        ) from error
    # treelite and lleaves split every line at '='; in JSON it only occurs in strings
    return text.replace("=", "\\u003d")


def _plain_value(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")
