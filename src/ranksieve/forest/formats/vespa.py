"""A forest as the JSON of LightGBM's `dump_model`, which Vespa's rank feature `lightgbm` takes; and the rank profile.

Vespa sends `x < threshold` left where LightGBM tests `x <= threshold`, and compares in float64 or, where its compiled
forests apply, in float32. The threshold written is the float32 above, so that both send every float32 document to the
same leaf as the forest.

A split by categories is `feature in ["a", "b"]`: in Vespa categories are texts. The dump has their numbers, "0||3", and
Vespa looks the names up in `pandas_categorical`, which has one list per feature with `values` in `feature_infos`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ranksieve.errors import ModelError
from ranksieve.forest.float32 import above_single
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.lightgbm_writer import category_numbers, check_sets, internal, objective_name
from ranksieve.forest.formats.writing import DEFAULT, Options, check_directions, check_names, nested, single_values
from ranksieve.forest.structure import checked_values

FEATURE = re.compile(r"[A-Za-z_]\w*(\([\w\s,.$-]*\)(\.\w+)*)?", re.ASCII)  # a function, or a rank feature of Vespa
LARGEST = 1e300  # stands for infinity, as in LightGBM's dumps
NO_CATEGORY = "no category"  # the text in a set that is empty, which Vespa does not take
ANY = 1e39  # above every float32; a float32 reader rounds it to infinity


def to_vespa(forest: Forest, options: Options = DEFAULT) -> str:
    """The JSON for the folder `models` of an application package."""
    values = checked_values(forest)
    single_values(values, "Vespa")
    check_directions(forest, "Vespa", None, options)
    check_names(forest, "Vespa")
    check_sets(forest, "a text that is missing is the empty text in Vespa, which goes right")
    names, numbers = vespa_names(forest), category_numbers(forest)
    named = {feature: _category_names(forest, feature, numbers[feature]) for feature in numbers}
    used, times = np.unique(forest.feature, return_counts=True)
    header = {
        "name": "tree",
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": forest.n_features - 1,
        "objective": objective_name(forest),
        "average_output": False,
        "feature_names": names,
        "monotone_constraints": [],
        "feature_infos": {
            name: {"min_value": numbers[at][0], "max_value": numbers[at][-1], "values": numbers[at]}
            if at in numbers
            else {"min_value": -LARGEST, "max_value": LARGEST, "values": []}
            for at, name in enumerate(names)
        },
    }
    footer = {
        "feature_importances": dict(zip([names[number] for number in used], times.tolist(), strict=True)),
        "pandas_categorical": list(named.values()) or None,
    }
    trees = ",\n".join(_trees(forest, values, named)) or _one_leaf(0, "0.0", 0)  # an expression needs a term
    return f'{_members(header)},\n"tree_info": [\n{trees}\n],\n{_members(footer)}'.join(("{", "}\n"))


def _category_names(forest: Forest, feature: int, numbers: Sequence[int]) -> list[str]:
    """The texts of a feature's categories by number; the numbers themselves where they have no names."""
    names = list(forest.categories.get(forest.feature_names[feature], ()))
    names += map(str, range(len(names), numbers[-1] + 1))
    mine = forest.categorical & (forest.feature == feature)
    if (np.diff(forest.set_offsets)[mine] == 0).any():
        placeholder = NO_CATEGORY
        while placeholder in names:
            placeholder += "_"
        names.append(placeholder)
    for name in names:
        if set(name) & set('"\\\n'):
            raise ModelError(
                f"the category {name!r} of {forest.feature_names[feature]!r} holds a quotation mark, a backslash or a "
                "line break, which Vespa's importer does not quote; rename it and train again"
            )
    return names


def _trees(forest: Forest, values: np.ndarray, named: Mapping[int, Sequence[str]]) -> list[str]:
    means, weights = internal(forest, values)
    thresholds = above_single(forest.threshold).astype(np.float64)
    threshold = list(map(repr, np.where(np.isinf(thresholds), ANY, thresholds).tolist()))
    for split in np.flatnonzero(forest.categorical).tolist():
        codes = forest.set_of(split).tolist() or [len(named[int(forest.feature[split])]) - 1]
        threshold[split] = f'"{"||".join(map(str, codes))}"'
    decision = np.where(forest.categorical, "==", "<=").tolist()
    gain, mean, weight, leaf_value, leaf_weight = map(
        _texts, (forest.gain, means, weights, values, forest.leaf_weight)
    )  # fmt: skip
    default_left = np.where(forest.default_left, "true", "false").tolist()
    feature, split_count, leaf_count = (
        array.tolist() for array in (forest.feature, forest.split_count, forest.leaf_count)
    )

    def tree_text(tree: int) -> str:
        first_split, first_leaf = int(forest.split_offsets[tree]), int(forest.leaf_offsets[tree])
        n_leaves = int(forest.n_leaves[tree])
        if n_leaves == 1:
            return _one_leaf(tree, leaf_value[first_leaf], leaf_count[first_leaf])

        def before(at: int, depth: int) -> str:
            return (
                f'{{"split_index": {at - first_split}, "split_feature": {feature[at]}, "split_gain": {gain[at]}, '
                f'"threshold": {threshold[at]}, "decision_type": "{decision[at]}", "default_left": {default_left[at]}, '
                f'"missing_type": "NaN", "internal_value": {mean[at]}, "internal_weight": {weight[at]}, '
                f'"internal_count": {split_count[at]}, "left_child": '
            )

        def leaf(at: int, depth: int) -> str:
            return (
                f'{{"leaf_index": {at - first_leaf}, "leaf_value": {leaf_value[at]}, '
                f'"leaf_weight": {leaf_weight[at]}, "leaf_count": {leaf_count[at]}}}'
            )

        root = nested(
            forest, tree, before=before, between=lambda *_: ', "right_child": ', after=lambda *_: "}", leaf=leaf
        )
        n_sets = int(forest.categorical[first_split : forest.split_offsets[tree + 1]].sum())
        return _tree(tree, n_leaves, n_sets, root)

    return [tree_text(tree) for tree in range(forest.n_trees)]


def _one_leaf(tree: int, value: str, count: int) -> str:
    return _tree(tree, 1, 0, f'{{"leaf_value": {value}, "leaf_count": {count}}}')


def _tree(tree: int, n_leaves: int, n_sets: int, root: str) -> str:
    numbers = f'"tree_index": {tree}, "num_leaves": {n_leaves}, "num_cat": {n_sets}, "shrinkage": 1'
    return f'{{{numbers}, "tree_structure": {root}}}'


def _texts(values: np.ndarray) -> list[str]:
    """Numbers as JSON, the infinite ones as in LightGBM's dumps."""
    return list(map(repr, np.nan_to_num(values, nan=0.0, posinf=LARGEST, neginf=-LARGEST).tolist()))


def _members(values: dict[str, Any]) -> str:
    return ",\n".join(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in values.items())


def vespa_names(forest: Forest) -> list[str]:
    """Names as Vespa reads them: rank features such as `bm25(title)` and identifiers stay, others become identifiers.

    Examples
    --------
    >>> from ranksieve.forest.forest import empty_forest
    >>> vespa_names(empty_forest(["bm25(title)", "attribute(price)", "bm25.title", "2 words"]))
    ['bm25(title)', 'attribute(price)', 'bm25_title', 'f_2_words']
    """
    kept = {name for name in forest.feature_names if FEATURE.fullmatch(name)}
    names: list[str] = []
    for number, name in enumerate(forest.feature_names, start=1):
        if name not in kept:
            name = re.sub(r"\W+", "_", name, flags=re.ASCII)
            name = name if re.match("[A-Za-z_]", name) else f"f_{name}"
            while name in kept:
                name += f"_{number}"
            kept.add(name)
        names.append(name)
    return names


def rank_profile(forest: Forest, file: str) -> str:
    """A rank profile that scores with a model file; comments list the features that it needs.

    Examples
    --------
    >>> from ranksieve.forest.forest import empty_forest
    >>> print(rank_profile(empty_forest(["bm25"]), "model.json"))
    rank-profile model inherits default {
        # models/model.json in the application package
        second-phase {
            expression: lightgbm("model.json")
        }
    }
    """
    names = vespa_names(forest)
    used = [(names[number], forest.feature_names[number]) for number in np.unique(forest.feature)]
    texts = {forest.feature_names[number] for number in forest.feature[forest.categorical]}
    listed = [
        f"    #   {name}" + (f"  (feature {given!r})" if given != name else "") + "  (a text)" * (given in texts)
        for name, given in used
    ]
    about = ["    # features: rank features of Vespa as they are; define the others, as in", *listed]
    about[0] += " function NAME() { expression: bm25(title) }"
    name = re.sub(r"\W+", "_", file.partition(".")[0], flags=re.ASCII)
    return "\n".join(
        [
            f"rank-profile {name if re.match('[A-Za-z_]', name) else 'model_' + name} inherits default {{",
            f"    # models/{file} in the application package",
            *(about if used else []),
            "    second-phase {",
            f"        expression: lightgbm({json.dumps(file, ensure_ascii=False)})",
            "    }",
            "}",
        ]
    )
