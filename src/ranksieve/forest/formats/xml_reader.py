"""RankLib's and QuickRank's XML models: both nest `split` elements, and send `x <= threshold` left in float32.

RankLib counts a missing value as 0. QuickRank compares it, which fails, and so sends it right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.parsers import expat

import numpy as np

from ranksieve.errors import ModelError
from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.nodes import REMEDY, Nodes, to_forest
from ranksieve.forest.singles import to_single

TREES = ("LambdaMART", "MART", "Random Forests")  # RankLib's rankers that are forests
RANKLIB_FEATURES, QUICKRANK_FEATURES = "## No. of features = ", "features"  # where our own writers say how many


def read_ranklib(text: str, source: str, n_features: int | None = None) -> Forest:
    """The forest of a RankLib model; it does not say how many features there are, if `n_features` does not."""
    header, _, _ = text.partition("<ensemble>")
    first = header.split("\n", 1)[0].strip()
    if first.lstrip("# ") not in TREES:
        raise ModelError(
            f"{source}:1: starts with {first[:40]!r}; a RankLib model of trees, which alone is read, starts with "
            "'## LambdaMART', '## MART' or '## Random Forests'"
        )
    announced = re.search(rf"^{re.escape(RANKLIB_FEATURES)}(\d{{1,9}})$", header, re.MULTILINE)
    found = _parse(re.sub(r"^#.*$", "", text, flags=re.MULTILINE), source)
    return _forest(found, source, "ranklib", n_features or (int(announced[1]) if announced else None))


def read_quickrank(text: str, source: str, n_features: int | None = None) -> Forest:
    """The forest of a QuickRank model; it does not say how many features there are, if `n_features` does not."""
    found = _parse(text, source)
    announced = found.info.get(QUICKRANK_FEATURES, "")
    if announced.isdigit() and len(announced) < 10:
        n_features = n_features or int(announced)
    return _forest(found, source, "quickrank", n_features)


def _forest(found: _Found, source: str, kind: str, n_features: int | None) -> Forest:
    if not found.trees:
        raise ModelError(f"{source}: holds no trees; expected an <ensemble> of <tree> elements")
    trees = [tree.nodes(source, zero_is_missing=kind == "ranklib") for tree in found.trees]
    widest = max(int(nodes.feature.max()) for nodes in trees) + 1
    # a random forest of RankLib is the mean of several ensembles
    weights = np.array([tree.weight for tree in found.trees]) / max(found.n_ensembles, 1)
    if n_features is not None and n_features < widest:
        raise ModelError(f"{source}: uses feature {widest}, but {n_features} features were announced; {REMEDY}")
    return to_forest(trees, source, n_features=n_features or max(widest, 1), weights=weights, info={"read_from": kind})


@dataclass
class _Tree:
    """What was read of one tree, node by node."""

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
class _Found:
    """Everything read from a file."""

    trees: list[_Tree] = field(default_factory=list)
    info: dict[str, str] = field(default_factory=dict)
    n_ensembles: int = 0


def _parse(text: str, source: str) -> _Found:
    # a declaration would not stand first any more; the root holds several ensembles together
    text = re.sub(r"<\?xml[^>]*\?>", "", text, count=1)
    reader = _Reader(source)
    try:
        reader.parser.Parse(f"<all>{text}</all>".encode(), True)
    except (expat.ExpatError, UnicodeEncodeError) as error:
        line = getattr(error, "lineno", 1)
        raise ModelError(f"{source}:{line}: is no whole XML ({error}); {REMEDY}") from error
    return reader.found


class _Reader:
    """Takes in element after element; the open ones stand on two stacks."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.found = _Found()
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
                if not (text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text) > 0):
                    self.fail(f"feature is {text[:20]!r}, expected a whole number from 1")
                tree.feature[node] = int(text) - 1
            elif name == "threshold":
                tree.threshold[node] = self.number(text, single=True)
            elif name == "output":
                tree.output[node] = self.number(text, single="ranker" not in self.names)

    def number(self, text: str, *, single: bool) -> float:
        """A number as the other library keeps it."""
        try:
            value = float(text)
        except ValueError:
            self.fail(f"{text[:20]!r} is no number")
        return float(to_single(value)) if single else value
