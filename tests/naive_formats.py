"""What other programs do with the files we write, from their documented rules; and documents that are hard on them.

Each evaluator reads the text on its own, and sends whole groups of documents down a tree: 100,000 take seconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np

from ranksieve.forest.forest import Forest

FLOAT = np.float32
LARGEST = float(np.finfo(FLOAT).max)
EDGES = [0.0, -0.0, 1e-45, -1e-45, 1.1754942e-38, -1e-38, 1e-6, -1e-6, 1.0, LARGEST, -LARGEST]


def hard_documents(
    forest: Forest, n_docs: int, rng: np.random.Generator, *, missing: float = 0.1, infinite: bool = False
) -> np.ndarray:
    """float32 documents at thresholds, one step beside them, at the edges of float32, and with missing values."""
    X = rng.normal(size=(n_docs, forest.n_features)).astype(FLOAT)
    for feature in range(forest.n_features):
        with np.errstate(over="ignore"):
            near = forest.threshold[forest.feature == feature].astype(FLOAT)
        near = near[np.isfinite(near)]
        with np.errstate(over="ignore"):
            beside = [
                near,
                np.nextafter(near, FLOAT(np.inf)),
                np.nextafter(near, FLOAT(-np.inf)),
                np.array(EDGES, FLOAT),
            ]
        choices = np.concatenate(beside)
        choices = choices[np.isfinite(choices)]
        if infinite:
            choices = np.append(choices, [FLOAT(np.inf), FLOAT(-np.inf)])
        places = rng.random(n_docs) < 0.6
        X[places, feature] = rng.choice(choices, int(places.sum()))
    X[rng.random(X.shape) < missing] = np.nan
    return X


def singles_in_order(forest: Forest, X: np.ndarray, *, start: float = 0.0) -> np.ndarray:
    """The forest's own leaves, each rounded to float32, added up in float32 in the order of the trees."""
    values = forest.scaled_leaf_values().astype(FLOAT)
    leaves = forest.predict_leaves(X).astype(np.int64)
    sums = np.full(len(X), start, FLOAT)
    for tree in range(forest.n_trees):
        sums += values[forest.leaf_offsets[tree] + leaves[:, tree]]
    return sums


Split = Callable[[np.ndarray], np.ndarray]  # values of the feature -> which go left


def _fill_leaves(node, X: np.ndarray, rows: np.ndarray, out: np.ndarray, open_node: Callable) -> None:
    """Fill `out` with leaf values; `open_node` gives a leaf's value, or a split's column, test and two children."""
    pending = [(node, rows)]
    while pending:
        node, rows = pending.pop()
        opened = open_node(node)
        if not isinstance(opened, tuple):
            out[rows] = opened
            continue
        column, test, left, right = opened
        goes_left = test(X[rows, column])
        pending += [(left, rows[goes_left]), (right, rows[~goes_left])]


def _sum(trees, X: np.ndarray, open_node: Callable, dtype: type, weights=None) -> np.ndarray:
    sums, leaf = np.zeros(len(X), dtype), np.zeros(len(X), dtype)
    for number, tree in enumerate(trees):
        _fill_leaves(tree, X, np.arange(len(X)), leaf, open_node)
        sums += leaf if weights is None else leaf * dtype(weights[number])
    return sums


def evaluate_elasticsearch(text: str, X: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """`model/xgboost+json`: NaN to `missing`, else left where split_condition > x; all in float32."""

    def open_node(node):
        if "leaf" in node:
            return FLOAT(node["leaf"])
        yes, no = node["children"]
        assert (yes["nodeid"], no["nodeid"]) == (node["yes"], node["no"]) and node["missing"] in (
            node["yes"],
            node["no"],
        )
        with np.errstate(over="ignore"):
            condition = FLOAT(node["split_condition"])
        left_if_missing = node["missing"] == node["yes"]
        return names.index(node["split"]), lambda x: (condition > x) | (np.isnan(x) & left_if_missing), yes, no

    return _sum(json.loads(text), X, open_node, FLOAT)


def evaluate_solr(text: str, X: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """MultipleAdditiveTreesModel: x <= threshold + 1e-6 goes left, weight times value is added; all in float32.

    Missing values follow the split's `missing` if the model sets isNullSameAsZero to false; else they are 0.
    """
    model = json.loads(text)
    assert model["class"] == "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"
    listed = [feature["name"] for feature in model["features"]]
    columns = X[:, [names.index(name) for name in listed]]

    def open_node(node):
        if "value" in node:
            return FLOAT(node["value"])
        threshold = FLOAT(node["threshold"]) + FLOAT(1e-6)
        left_if_missing = node.get("missing") == "left"
        test = lambda x: (x <= threshold) | (np.isnan(x) & left_if_missing)  # noqa: E731
        return listed.index(node["feature"]), test, node["left"], node["right"]

    trees = model["params"]["trees"]
    if model["params"].get("isNullSameAsZero") != "false":
        columns = np.where(np.isnan(columns), FLOAT(0), columns)
    return _sum([tree["root"] for tree in trees], columns, open_node, FLOAT, [tree["weight"] for tree in trees])


def evaluate_vespa(text: str, X: np.ndarray, dtype: type) -> np.ndarray:
    """Vespa's `lightgbm`: left where x < threshold, or where not x >= threshold if default_left is set.

    A split by categories is left where the text is in the list. `X` has the numbers of categories; a text is looked up
    by its place in `pandas_categorical`, which has a list for each feature that has values in `feature_infos`.

    Vespa evaluates the expression in float64, or as a compiled forest, with thresholds, features and leaves in float32
    and sums in float64.
    """
    model = json.loads(text)
    assert model["objective"] in ("lambdarank", "regression")
    infos = [model["feature_infos"][name] for name in model["feature_names"]]
    categorical = [number for number, info in enumerate(infos) if info["values"]]
    texts = dict(zip(categorical, model["pandas_categorical"] or [], strict=True))

    def open_node(node):
        if "left_child" not in node:
            return dtype(node["leaf_value"])
        children = node["left_child"], node["right_child"]
        if node["decision_type"] == "==":
            names = texts[node["split_feature"]]
            wanted = [names[int(number)] for number in node["threshold"].split("||")]
            assert not node["default_left"]
            return node["split_feature"], lambda x: np.isin([_text(names, code) for code in x], wanted), *children
        assert node["decision_type"] == "<="
        with np.errstate(over="ignore"):
            threshold = dtype(node["threshold"])
        test = (lambda x: ~(x >= threshold)) if node["default_left"] else (lambda x: x < threshold)
        return node["split_feature"], test, *children

    trees = [tree["tree_structure"] for tree in model["tree_info"]]
    return _sum(trees, X.astype(dtype), open_node, np.float64)


def _text(names: list[str], code: float) -> str:
    """The text of a document: the category's name, another where no split has it, empty where it is missing."""
    if np.isnan(code):
        return ""
    return names[int(code)] if 0 <= code < len(names) else f"unknown {code}"


def _open_xml(output: type):
    def open_node(node):
        if node[0].tag == "output":
            return output(node[0].text)
        feature, threshold, left, right = node
        assert (feature.tag, threshold.tag) == ("feature", "threshold")
        assert (left.get("pos"), right.get("pos")) == ("left", "right")
        limit = FLOAT(threshold.text)
        return int(feature.text) - 1, lambda x: x <= limit, left, right

    return open_node


def evaluate_ranklib(text: str, X: np.ndarray) -> np.ndarray:
    """Lines of '#' dropped and lines joined as RankLib does; missing is 0; float32 leaves and sums."""
    assert text.startswith("## LambdaMART\n")
    lines = [line.strip() for line in text.split("\n") if not line.startswith("#")]
    root = ElementTree.fromstring("".join(lines))
    assert root.tag == "ensemble" and not re.search(r">\s+<", "".join(lines))
    trees, weights = [tree[0] for tree in root], [tree.get("weight") for tree in root]
    return _sum(trees, np.where(np.isnan(X), FLOAT(0), X), _open_xml(FLOAT), FLOAT, weights)


def evaluate_quickrank(text: str, X: np.ndarray) -> np.ndarray:
    """A ranker's ensemble: float32 thresholds and weights, float64 outputs and sums; NaN fails the test, goes right."""
    root = ElementTree.fromstring(text)
    assert root.tag == "ranker" and root.find("info/type").text == "LAMBDAMART"
    trees = list(root.find("ensemble"))
    weights = [FLOAT(tree.get("weight")) for tree in trees]
    return _sum([tree.find("split") for tree in trees], X, _open_xml(np.float64), np.float64, weights)


def evaluate_statistics(statistics, rows: list[list[float]]) -> list[list[float]]:
    """The statistics of each row, by integers of Python and a dictionary for each table."""
    multiplier, all_bits = 0x4906BA494954CB65, (1 << 64) - 1

    def element_number(element, row: list[float]) -> int | None:
        value = row[element.feature]
        if element.kind == "above":
            return int(element.missing if np.isnan(value) else value > element.value)
        code = -1 if np.isnan(value) or value <= -1 else int(value)
        if element.kind == "equal":
            return int(code == int(element.value))
        hashes = statistics.hashes[element.feature].tolist()
        return hashes[code] if 0 <= code < len(hashes) else None

    found = []
    for row in rows:
        found.append([])
        for table in statistics.tables:
            key = 0
            for element in table.elements:
                number = element_number(element, row)
                key = None if key is None or number is None else multiplier * (key + multiplier * number) & all_bits
            places = {one: place for place, one in enumerate(table.keys.tolist()[:-1])}
            found[-1] += [float(values[places.get(key, -1)]) for values in table.values]
    return found


def letor_rows(lines):
    """Label, query id, features and comment of each line that has them."""
    rows = []
    for line in lines:
        text, sign, comment = line.partition("#")
        label, *tokens = text.split() or [None]
        if label is None:
            continue
        id = tokens.pop(0)[4:] if tokens and tokens[0].startswith("qid:") else None
        features = {int(token.split(":")[0]): float(token.split(":")[1]) for token in tokens}
        rows.append((float(label), id, features, comment if sign else None))
    return rows
