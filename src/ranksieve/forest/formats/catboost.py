"""CatBoost models as `save_model(…, format="json")` writes them: oblivious trees or others.

CatBoost turns features into float32 and borders are float32; `x > border` goes right. Bit k of the leaf's number in an
oblivious tree is set if split k goes right. Missing values count as smaller or larger than everything, by feature.
A category is the hash of its text; the file has the texts where it was saved with `pool`. A statistic of one feature
depends on its category alone, so a split on it is a split by a set of categories. Where a model has statistics of
combinations of features, all statistics are features of their own, made of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from ranksieve.data.features import default_names
from ranksieve.dtypes import MOST_FEATURES
from ranksieve.errors import ModelError
from ranksieve.forest.ctr_forest import CtrForest
from ranksieve.forest.ctr_statistics import ABOVE, CATEGORY, EQUAL, Element, Statistics, StatisticTable
from ranksieve.forest.float32 import to_single
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.catboost_statistics import Statistic, categories_in, signed
from ranksieve.forest.formats.nodes import REMEDY, Nodes, join_nodes, reading

LEFT = {"AsIs": True, "AsFalse": True, "AsTrue": False}  # where NaN goes: as it is, NaN > border is false
UNSIGNED = (1 << 32) - 1  # mask of a hash, which is signed in some places
DEEPEST = 16  # CatBoost's own limit
EXPECTED = 'a CatBoost model as save_model(…, format="json") writes it'


def forest_of(model: Any, source: str) -> Forest | CtrForest:
    """The forest of a decoded model; `source` names it in errors."""
    with reading(source, EXPECTED), np.errstate(over="ignore"):  # what is infinite then is refused
        return _forest(model, source)


def _forest(model: dict[str, Any], source: str) -> Forest | CtrForest:
    kinds = model["features_info"]
    for kind in ("text_features", "embedding_features"):
        if kinds.get(kind):
            raise ModelError(f"{source}: uses {kind}, only numbers and categories are read; train without them")
    scale, (base, *more) = model["scale_and_bias"]
    if more:
        raise ModelError(f"{source}: gives several scores per document, expected one; train with a ranking objective")
    features = CatboostFeatures(kinds, model.get("ctr_data") or {}, source)
    names = features.names()
    trees = [
        *(
            _oblivious(tree, features, f"{source}: tree {at}")
            for at, tree in enumerate(model.get("oblivious_trees", ()))
        ),
        *(_branching(tree, features, f"{source}: tree {at}") for at, tree in enumerate(model.get("trees", ()))),
    ]
    info = {"read_from": "catboost", **features.categories()}
    columns = [f"statistic {number}" for number in range(1, features.n_columns - len(names) + 1)]
    forest = join_nodes(
        trees,
        source,
        n_features=features.n_columns,
        feature_names=[*names, *columns],
        weights=np.full(len(trees), float(scale)),
        base=float(base),
        info={} if columns else info,
    )
    return CtrForest(forest, features.statistics(), names, info) if columns else forest


class CatboostFeatures:
    """The features of a model: numerical ones, and categorical ones with the names of the categories it splits by."""

    def __init__(self, kinds: dict[str, Any], tables: dict[str, Any], source: str) -> None:
        self.numerical = {feature["feature_index"]: feature for feature in kinds.get("float_features", ())}
        self.categorical = {feature["feature_index"]: feature for feature in kinds.get("categorical_features", ())}
        self._all = [*self.numerical.values(), *self.categorical.values()]
        self._names = {int(one["hash"]) & UNSIGNED: str(one["value"]) for one in kinds.get("cat_features_hash", ())}
        self._source = source
        self._n_features = 1 + max((feature["flat_feature_index"] for feature in self._all), default=0)
        if self._n_features > MOST_FEATURES:
            raise ModelError(
                f"{source}: has {self._n_features:,} features, expected at most {MOST_FEATURES:,}; {REMEDY}"
            )
        self._statistics = [Statistic(stored, tables, source) for stored in kinds.get("ctrs", ())]
        self._columns: dict[int, int] = {}  # of statistics, by their number, where some are of combinations
        if any(one.is_combined for one in self._statistics):
            order = sorted(range(len(self._statistics)), key=lambda number: self._statistics[number].elements)
            self._columns = {number: self._n_features + place for place, number in enumerate(order)}
        # splits are numbered through all borders: of numbers, categories of their own, and statistics
        sizes = [len(feature.get(key, ())) for key, some in (("borders", self.numerical), ("values", self.categorical))
                 for feature in some.values()]  # fmt: skip
        self._first_border = sum(sizes)
        self._borders = [(number, border) for number, one in enumerate(self._statistics) for border in one.borders]
        self._codes = self._find_codes()

    @property
    def n_columns(self) -> int:
        """The number of features, with those that are statistics."""
        return self._n_features + len(self._columns)

    def _find_codes(self) -> dict[int, dict[int, int]]:
        """The numbers of each feature's categories by their hash: those with splits of their own, or in statistics.

        Names that are in no statistic may be of any feature that has only splits by one category.
        """
        found = {number: [int(value) & UNSIGNED for value in feature.get("values", ())]
                 for number, feature in self.categorical.items()}  # fmt: skip
        in_tables = categories_in(self._statistics, list(self._names))
        if in_tables is None or not {value for values in found.values() for value in values} <= self._names.keys():
            raise ModelError(
                f"{self._source}: does not have the names of all its categories; save it with "
                'save_model(…, format="json", pool=the training data), or give rs.io.from_model that pool'
            )
        others = self._names.keys() - set().union(*in_tables.values())
        for number, values in found.items():
            more = in_tables.get(number, others if values else set())
            values += sorted(more - set(values), key=self._names.__getitem__)
        return {number: {value: code for code, value in enumerate(values)} for number, values in found.items()}

    def names(self) -> tuple[str, ...]:
        """The names of the features, or f1, f2, … where not all have one."""
        names = [""] * self._n_features
        for feature in self._all:
            names[feature["flat_feature_index"]] = str(feature.get("feature_id", ""))
        return tuple(names) if all(names) else default_names(self._n_features)

    def categories(self) -> dict[str, Any]:
        """The names of the categories, as the `info` of a forest has them.

        A feature that no tree uses has one, the empty text: it may hold any texts.
        """
        found, names = {}, self.names()
        for number, feature in self.categorical.items():
            found[names[feature["flat_feature_index"]]] = [self._names[value] for value in self._codes[number]] or [""]
        return {"categories": found} if found else {}

    def statistics(self) -> Statistics:
        """The statistics in the order of their columns."""
        hashes = {feature["flat_feature_index"]: signed(list(self._codes[number])).astype(np.uint64)
                  for number, feature in self.categorical.items()}  # fmt: skip
        ordered = (self._statistics[number] for number in self._columns)
        tables = [self._table(list(some)) for _, some in groupby(ordered, lambda one: one.elements)]
        return Statistics(hashes, tuple(tables))

    def _table(self, some: list[Statistic]) -> StatisticTable:
        """Statistics of the same combinations as one table."""
        elements = [Element(CATEGORY, self.categorical[one]["flat_feature_index"]) for one in some[0].features]
        for number, border in some[0].above:
            feature = self.numerical[number]
            to_right = not LEFT[feature["nan_value_treatment"]]
            elements.append(Element(ABOVE, feature["flat_feature_index"], border, to_right))
        for number, value in some[0].equal:
            code = self._codes[number][value & UNSIGNED]
            elements.append(Element(EQUAL, self.categorical[number]["flat_feature_index"], float(code)))
        keys = np.unique(np.concatenate([one.keys for one in some]))
        return StatisticTable(tuple(elements), keys, np.stack([one.of(keys) for one in some]))

    def split(self, split: dict[str, Any], where: str) -> Split:
        """A split of a tree."""
        if split["split_type"] == "OneHotFeature":
            return self._split_by_set(split["cat_feature_index"], {int(split["value"]) & UNSIGNED})
        if split["split_type"] == "OnlineCtr":
            return self._split_by_statistic(split, where)
        if split["split_type"] != "FloatFeature":
            raise ModelError(
                f"{where} has a split of type {split['split_type']!r}, only FloatFeature, OneHotFeature and OnlineCtr "
                "are read; train without text and embedding features"
            )
        feature = self.numerical[split["float_feature_index"]]
        left = LEFT[feature["nan_value_treatment"]]
        return Split(feature["flat_feature_index"], float(to_single(split["border"])), left)

    def _split_by_statistic(self, split: dict[str, Any], where: str) -> Split:
        """A split by the statistic's own column, or by the set of categories on the other side than unknown ones."""
        place, border = int(split["split_index"]) - self._first_border, np.float32(split["border"])
        if not 0 <= place < len(self._borders) or self._borders[place][1] != border:
            raise ModelError(f"{where} has a split on a statistic that the model does not have; {REMEDY}")
        number, statistic = self._borders[place][0], self._statistics[self._borders[place][0]]
        if self._columns:
            return Split(self._columns[number], float(border), True)
        to_right = bool(statistic.values[-1] <= border)
        codes = list(self._codes[statistic.features[0]])
        values = statistic.of_categories(codes)
        chosen = {code for code, value in zip(codes, values, strict=True) if (value > border) == to_right}
        return self._split_by_set(statistic.features[0], chosen, to_right)

    def _split_by_set(self, feature: int, chosen: set[int], to_right: bool = True) -> Split:
        """A split by the categories with these hashes."""
        codes = self._codes[feature]
        numbers = np.array(sorted(codes[value] for value in chosen), np.int64)
        return Split(self.categorical[feature]["flat_feature_index"], 0.0, False, numbers, to_right)


class Split(NamedTuple):
    """A test: a number above the threshold goes right, or a category in `codes` does; left without `to_right`."""

    feature: int
    threshold: float
    default_left: bool
    codes: np.ndarray | None = None
    to_right: bool = True


def _nodes(left: np.ndarray, right: np.ndarray, splits: Sequence[Split], value: np.ndarray, weight: Any) -> Nodes:
    """The nodes of a tree; the sides of a categorical split are exchanged where its categories go right."""
    sets = {node: split.codes for node, split in enumerate(splits) if split.codes is not None}
    swapped = [node for node in sets if splits[node].to_right]
    left[swapped], right[swapped] = right[swapped], left[swapped]
    feature, threshold, default_left = (np.array([split[part] for split in splits]) for part in range(3))
    return Nodes(left, right, feature, threshold, default_left.astype(bool), value, weight=weight, sets=sets)


def _oblivious(tree: dict[str, Any], features: CatboostFeatures, where: str) -> Nodes:
    splits = [features.split(split, where) for split in tree["splits"] or ()]
    depth = len(splits)
    values = np.asarray(tree["leaf_values"], dtype=np.float64)
    if depth > DEEPEST or values.shape != (2**depth,):
        raise ModelError(f"{where} has {values.size} leaf values for {depth} splits, expected 2^{depth}; {REMEDY}")
    n_splits = 2**depth - 1
    numbers = np.arange(n_splits)
    # the last split is the highest bit of a leaf's number, and here the root
    level = np.floor(np.log2(numbers + 1)).astype(int)
    weight = tree.get("leaf_weights")
    return _nodes(
        np.concatenate([2 * numbers + 1, np.full(2**depth, -1)]),
        np.concatenate([2 * numbers + 2, np.full(2**depth, -1)]),
        [splits[depth - 1 - at] for at in level.tolist()],
        np.concatenate([np.zeros(n_splits), values]),
        None if weight is None else np.concatenate([np.zeros(n_splits), np.asarray(weight, np.float64)]),
    )


def _branching(tree: dict[str, Any], features: CatboostFeatures, where: str) -> Nodes:
    """A tree of grow_policy Depthwise or Lossguide."""
    nodes = [tree]
    left, right, splits, values = [], [], [], []
    for node in nodes:  # children are appended during the loop
        if "split" in node:
            left.append(len(nodes))
            right.append(len(nodes) + 1)
            nodes += [node["left"], node["right"]]
            splits.append(features.split(node["split"], where))
            values.append(0.0)
        else:
            left.append(-1)
            right.append(-1)
            splits.append(Split(0, 0.0, False))
            values.append(float(node["value"]))
    return _nodes(np.array(left), np.array(right), splits, np.array(values), None)
