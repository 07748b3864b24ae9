"""RankLib's and QuickRank's XML models: nested `split` elements, features counted from 1, `x <= threshold` in float32.

Neither stores where missing values go. RankLib takes them for 0. QuickRank compares them, which fails, and so sends
them right. A forest that does otherwise is not written. Tree weights are multiplied into the leaves: both read weights
as float32. RankLib stores leaves in float32 and adds them up in float32; QuickRank uses float64 for both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat

import numpy as np

from ranksieve.data.other_files import RANKLIB_FORESTS
from ranksieve.errors import ModelError
from ranksieve.forest.float32 import floor_single, single_texts, to_single
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.nodes import REMEDY, Nodes, is_count, join_nodes, parse_number
from ranksieve.forest.formats.writing import DEFAULT, Options, check_directions, nested, single_values
from ranksieve.forest.structure import checked_values

RANKLIB_FEATURES, QUICKRANK_FEATURES = "## No. of features = ", "features"  # written by us only


def read_ranklib(text: str, source: str, n_features: int | None = None) -> Forest:
    """The forest of a RankLib model. Its number of features is `n_features`, else the one that our writer adds, else as
    many as the trees use."""
    header, _, _ = text.partition("<ensemble>")
    first = header.split("\n", 1)[0].strip()
    if first.lstrip("# ") not in RANKLIB_FORESTS:
        raise ModelError(
            f"{source}:1: starts with {first[:40]!r}; expected a RankLib model of trees, which starts with "
            "'## LambdaMART', '## MART' or '## Random Forests'"
        )
    announced = re.search(rf"^{re.escape(RANKLIB_FEATURES)}(\d{{1,9}})$", header, re.MULTILINE | re.ASCII)
    found = _parse(re.sub(r"^#.*$", "", text, flags=re.MULTILINE), source)
    return _forest(found, source, "ranklib", n_features or (int(announced[1]) if announced else None))


def read_quickrank(text: str, source: str, n_features: int | None = None) -> Forest:
    """The forest of a QuickRank model; its number of features as in `read_ranklib`."""
    found = _parse(text, source)
    announced = found.info.get(QUICKRANK_FEATURES, "")
    return _forest(found, source, "quickrank", n_features or (int(announced) if is_count(announced) else None))


def _forest(found: _FileContent, source: str, kind: str, n_features: int | None) -> Forest:
    if not found.trees:
        raise ModelError(f"{source}: holds no trees; expected an <ensemble> of <tree> elements")
    trees = [tree.nodes(source, zero_is_missing=kind == "ranklib") for tree in found.trees]
    widest = max(int(nodes.feature.max()) for nodes in trees) + 1
    # a random forest of RankLib is the mean of several ensembles
    weights = np.array([tree.weight for tree in found.trees]) / max(found.n_ensembles, 1)
    if n_features is not None and n_features < widest:
        raise ModelError(f"{source}: uses feature {widest}, but {n_features} features were announced; {REMEDY}")
    return join_nodes(trees, source, n_features=n_features or max(widest, 1), weights=weights, info={"read_from": kind})


@dataclass
class _Tree:
    """The nodes of one tree, as far as they are read."""

    weight: float
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    feature: list[int] = field(default_factory=list)
    threshold: list[float | None] = field(default_factory=list)
    output: list[float | None] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def nodes(self, source: str, *, zero_is_missing: bool) -> Nodes:
        for node, line in enumerate(self.lines):
            parts = (
                self.left[node] >= 0,
                self.right[node] >= 0,
                self.feature[node] >= 0,
                self.threshold[node] is not None,
            )
            if any(parts) == (self.output[node] is not None) or (any(parts) and not all(parts)):
                raise ModelError(
                    f"{source}:{line}: this split has neither an output alone nor a feature, a threshold and "
                    f"a left and a right split; {REMEDY}"
                )
        if not self.lines:
            raise ModelError(f"{source}: a tree has no nodes; {REMEDY}")
        threshold = np.array([value or 0.0 for value in self.threshold])
        return Nodes(
            left=np.array(self.left),
            right=np.array(self.right),
            feature=np.array(self.feature),
            threshold=threshold,
            default_left=(threshold >= 0) & zero_is_missing,
            value=np.array([value or 0.0 for value in self.output]),
        )


@dataclass
class _FileContent:
    """The content of a file."""

    trees: list[_Tree] = field(default_factory=list)
    info: dict[str, str] = field(default_factory=dict)
    n_ensembles: int = 0


def _parse(text: str, source: str) -> _FileContent:
    # one root around several ensembles; the declaration would no longer come first
    text = re.sub(r"<\?xml[^>]*\?>", "", text, count=1)
    reader = _XmlHandler(source)
    try:
        reader.parser.Parse(f"<all>{text}</all>".encode(), True)
    except (expat.ExpatError, UnicodeEncodeError) as error:
        line = getattr(error, "lineno", 1)
        raise ModelError(f"{source}:{line}: is not well-formed XML ({error}); {REMEDY}") from error
    return reader.found


class _XmlHandler:
    """Collects trees element by element; the open elements are on two stacks."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.found = _FileContent()
        self.names: list[str] = []
        self.open: list[int] = []  # nodes of the current tree
        self.text: list[str] = []
        self.parser = expat.ParserCreate("utf-8")
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text.append
        self.parser.EntityDeclHandler = lambda *_: self.fail("declares entities, which models do not need")

    def fail(self, message: str) -> None:
        raise ModelError(f"{self.source}:{self.parser.CurrentLineNumber}: {message}; {REMEDY}")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        parent = self.names[-1] if self.names else ""
        self.names.append(name)
        self.text.clear()
        if name == "ensemble":
            self.found.n_ensembles += 1
        elif name == "tree":
            self.found.trees.append(_Tree(self.number(attributes.get("weight", "1"), single=True)))
        elif name == "split":
            self.start_split(attributes.get("pos", ""), parent)

    def start_split(self, side: str, parent: str) -> None:
        if parent not in ("tree", "split") or (parent == "split") != (side in ("left", "right")):
            self.fail(f"a split with pos {side[:20]!r} inside {parent[:20]!r}")
        tree = self.found.trees[-1]
        number = len(tree.lines)
        if parent == "split":
            children = tree.left if side == "left" else tree.right
            if children[self.open[-1]] >= 0:
                self.fail(f"a second {side} split")
            children[self.open[-1]] = number
        elif number:
            self.fail("a second root")
        for values, empty in ((tree.left, -1), (tree.right, -1), (tree.feature, -1)):
            values.append(empty)
        tree.threshold.append(None)
        tree.output.append(None)
        tree.lines.append(self.parser.CurrentLineNumber)
        self.open.append(number)

    def end(self, name: str) -> None:
        self.names.pop()
        text, parent = "".join(self.text).strip(), self.names[-1] if self.names else ""
        self.text.clear()
        if name == "split":
            self.open.pop()
        elif parent == "info":
            self.found.info[name] = text
        elif parent == "split":
            tree, node = self.found.trees[-1], self.open[-1]
            if name == "feature":
                if not is_count(text) or int(text) < 1:
                    self.fail(f"feature is {text[:20]!r}, expected an integer from 1 to 999999999")
                tree.feature[node] = int(text) - 1
            elif name == "threshold":
                tree.threshold[node] = self.number(text, single=True)
            elif name == "output":
                tree.output[node] = self.number(text, single="ranker" not in self.names)

    def number(self, text: str, *, single: bool) -> float:
        """A number as the other library stores it."""
        try:
            value = parse_number(text)
        except ValueError:
            self.fail(f"{text[:20]!r} is not a number")
        return float(to_single(value)) if single else value


def to_ranklib(forest: Forest, options: Options = DEFAULT) -> str:
    """The text of a LambdaMART model of RankLib, which the plugins for Elasticsearch and OpenSearch read, too."""
    values = checked_values(forest, numerical_only="RankLib")
    check_directions(forest, "RankLib (missing is 0)", forest.threshold >= 0, options)
    leaves = single_texts(single_values(values, "RankLib"))
    most_leaves = int(forest.n_leaves.max(initial=0))
    header = (
        f"## LambdaMART\n## No. of trees = {forest.n_trees}\n## No. of leaves = {most_leaves}\n"
        f"## No. of threshold candidates = 256\n## Learning rate = 1.0\n## Stop early = 100\n"
        f"{RANKLIB_FEATURES}{forest.n_features}\n"
    )
    # RankLib takes the first child of an element for its content: every tag starts its own line, and nothing else
    return f"{header}\n{_ensemble(forest, leaves)}"


def to_quickrank(forest: Forest, options: Options = DEFAULT) -> str:
    """The text of a LAMBDAMART model of QuickRank."""
    values = checked_values(forest, numerical_only="QuickRank")
    check_directions(forest, "QuickRank", np.zeros(len(forest.feature), dtype=bool), options)
    facts = {
        "type": "LAMBDAMART",
        "trees": forest.n_trees,
        "leaves": int(forest.n_leaves.max(initial=0)),
        "shrinkage": 1,
        "leafsupport": 1,
        "discretization": 0,
        "estop": 0,
        QUICKRANK_FEATURES: forest.n_features,
    }
    info = "".join(f"\t\t<{key}>{value}</{key}>\n" for key, value in facts.items())
    body = _ensemble(forest, [repr(value) for value in values.tolist()])
    return f'<?xml version="1.0"?>\n<ranker>\n\t<info>\n{info}\t</info>\n{body}</ranker>\n'


def _ensemble(forest: Forest, leaves: list[str]) -> str:
    thresholds = single_texts(floor_single(forest.threshold), infinity="Infinity")

    def before(at: int, depth: int) -> str:
        tab = "\t" * (depth + 3)
        return (
            f"{tab}<feature>{forest.feature[at] + 1}</feature>\n{tab}<threshold>{thresholds[at]}</threshold>\n"
            f'{tab}<split pos="left">\n'
        )

    def between(at: int, depth: int) -> str:
        tab = "\t" * (depth + 3)
        return f'{tab}</split>\n{tab}<split pos="right">\n'

    def after(at: int, depth: int) -> str:
        return "\t" * (depth + 3) + "</split>\n"

    def leaf(at: int, depth: int) -> str:
        return "\t" * (depth + 3) + f"<output>{leaves[at]}</output>\n"

    trees = []
    for tree in range(forest.n_trees):
        content = nested(forest, tree, before=before, between=between, after=after, leaf=leaf)
        trees.append(f'\t<tree id="{tree + 1}" weight="1.0">\n\t\t<split>\n{content}\t\t</split>\n\t</tree>\n')
    return f"<ensemble>\n{''.join(trees)}</ensemble>\n"
