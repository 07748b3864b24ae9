"""`tree`: a figure of one tree of a forest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.errors import ModelError, ParameterError, param
from ranksieve.forest.contributions import covers
from ranksieve.forest.forest import Forest, forest_of
from ranksieve.plots.style import axes_for
from ranksieve.text_formats import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAF_INCHES, LEVEL_INCHES = 0.85, 1.05
MOST_CATEGORIES = 3  # more categories of a split are not named
EDGE, PATH = "#9aa5b1", "#d97706"
MISSING: Any = {"marker": "o", "markersize": 6, "markerfacecolor": "white", "markeredgecolor": "#52606d",
                "markeredgewidth": 0.8}  # fmt: skip
THICKEST, THINNEST = 9.0, 0.8  # points: an edge that all training documents take, and one that hardly any does


@dataclass
class DrawnNode:
    """A split, a leaf, or a subtree that is drawn as one leaf."""

    text: str
    cover: float
    depth: int
    value: float = 0.0
    children: tuple[DrawnNode, ...] = ()  # left, right
    missing: int = 0  # which child documents without the value go to
    taken: bool = False  # on the path of the given document
    x: float = 0.0


def tree(
    model: Any, number: int = 0, *, ax: Axes | None = None, max_depth: int | None = None, document: Any = None
) -> Axes:
    """Draw one tree of a forest.

    Documents for which a test holds go left. Edges are as thick as the share of the training documents that took them;
    a small circle sits on the edge that documents without the value take. Leaves show what they add to a score and how
    many training documents they hold, blue where they raise it, red where they lower it.

    Parameters
    ----------
    model : Forest or a fitted Ranker
    number
        Which tree, from 0.
    ax
        Axes to draw on; a new figure if not given.
    max_depth
        Draw deeper subtrees as one leaf with their mean value.
    document
        Features of one document, whose path is highlighted.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> model = rs.train(data, trees=2, leaves=6, algo="lambdamart")
    >>> ax = rs.plots.tree(model, 1, document=data.features[0])
    >>> ax.get_title()
    'tree 2 of 2, 6 leaves'
    """
    forest = forest_of(model)
    if not 0 <= number < forest.n_trees:
        raise ModelError(f"tree {number} does not exist; the forest has {forest.n_trees}, counted from 0")
    if max_depth is not None and max_depth < 0:
        raise ParameterError(param("max_depth"), f" is {max_depth}; expected an integer from 0, or None to draw all")
    one = forest.take([number])
    root = _build(one, max_depth, _leaf_of(one, document))
    width, depth = _place(root)
    ax = axes_for(ax, (max(5.0, LEAF_INCHES * width + 0.6), max(2.0, LEVEL_INCHES * (depth + 1))))
    _draw_edges(ax, root, root.cover)
    _draw_nodes(ax, root, max((abs(node.value) for node in _below(root) if not node.children), default=0.0))
    ax.set(xlim=(-0.7, width - 0.3), ylim=(-depth - 0.55, 0.55))
    ax.set_axis_off()
    if root.children:
        _add_legend(ax)
    ax.set_title(f"tree {number + 1} of {forest.n_trees}, {counted(leaf=int(forest.n_leaves[number]))}", fontsize=10)
    return ax


def _leaf_of(forest: Forest, document: Any) -> int | None:
    if document is None:
        return None
    leaves = forest.predict_leaves(document)
    if len(leaves) != 1:
        raise ParameterError(param("document"), f" has {len(leaves)} rows; give the features of one document")
    return int(leaves[0, 0])


def _build(forest: Forest, max_depth: int | None, reached: int | None) -> DrawnNode:
    leaf_covers, split_covers = np.zeros(len(forest.leaf_count)), np.zeros(len(forest.feature))
    if forest.leaf_count.any() or forest.leaf_weight.any():
        leaf_covers, split_covers = covers(forest)
    values = forest.scaled_leaf_values()

    def node(child: int, depth: int) -> DrawnNode:
        if child < 0:
            count = leaf_covers[~child]
            return DrawnNode(f"{values[~child]:+.3g}{_count(count)}", count, depth, values[~child],
                        taken=~child == reached)  # fmt: skip
        ends = tuple(node(int(end[child]), depth + 1) for end in (forest.left, forest.right))
        count, taken = split_covers[child], any(end.taken for end in ends)
        if depth == max_depth:
            leaves = [leaf for leaf in _below(*ends) if not leaf.children]
            shares = [leaf.cover for leaf in leaves] if count > 0 else None
            mean = float(np.average([leaf.value for leaf in leaves], weights=shares))
            text = f"{len(leaves)} leaves\n{mean:+.3g}{_count(count)}"
            return DrawnNode(text, count, depth, mean, taken=taken)
        text = f"{forest.feature_names[forest.feature[child]]}\n{split_text(forest, child)}"
        return DrawnNode(text, count, depth, children=ends, missing=int(not forest.default_left[child]), taken=taken)

    return node(0 if len(forest.feature) else -1, 0)


def split_text(forest: Forest, split: int) -> str:
    """What a split tests, such as `≤ 0.5` or `in “drama”, “war”, … (9)`."""
    if not forest.categorical[split]:
        return f"≤ {forest.threshold[split]:.4g}"
    codes = forest.set_of(split).tolist()
    names = forest.categories.get(forest.feature_names[forest.feature[split]], ())
    words = [f"“{names[code]}”" if code < len(names) else str(code) for code in codes[:MOST_CATEGORIES]]
    return f"in {', '.join(words)}" + (f", … ({len(codes)})" if len(codes) > MOST_CATEGORIES else "")


def _below(*nodes: DrawnNode) -> list[DrawnNode]:
    """The nodes and all below them, from left to right within each branch."""
    return [found for node in nodes for found in (node, *_below(*node.children))]


def _place(root: DrawnNode) -> tuple[int, int]:
    """Place every leaf beside the last one, every split between its children; return width and depth."""
    nodes = _below(root)
    leaves = [node for node in nodes if not node.children]
    for place, leaf in enumerate(leaves):
        leaf.x = float(place)
    for node in reversed(nodes):  # children come after their parents
        if node.children:
            node.x = (node.children[0].x + node.children[1].x) / 2
    return len(leaves), max(node.depth for node in nodes)


def _draw_edges(ax: Axes, node: DrawnNode, total: float) -> None:
    steps = np.linspace(0.0, 1.0, 24)
    bend = steps * steps * (3.0 - 2.0 * steps)
    for side, child in enumerate(node.children):
        xs, ys = node.x + (child.x - node.x) * bend, -node.depth - steps
        width = max(THINNEST, THICKEST * child.cover / total) if total > 0 else THINNEST
        ax.plot(xs, ys, color=PATH if child.taken else EDGE, linewidth=width, solid_capstyle="round",
                alpha=0.9 if child.taken else 0.55, zorder=2 if child.taken else 1)  # fmt: skip
        if side == node.missing:
            ax.plot(xs[12], ys[12], **MISSING, zorder=3)
        _draw_edges(ax, child, total)


def _draw_nodes(ax: Axes, root: DrawnNode, largest: float) -> None:
    from matplotlib import colormaps

    colours = colormaps["RdBu"]
    for node in _below(root):
        face: Any = "#f4f6f8"
        text = "#1f2933"
        if not node.children:
            face = colours(0.5 + 0.42 * node.value / largest if largest > 0 else 0.5)
            text = "white" if 0.3 * face[0] + 0.59 * face[1] + 0.11 * face[2] < 0.5 else text
        edge = PATH if node.taken else "#cbd2d9"
        ax.text(node.x, -node.depth, node.text, ha="center", va="center", fontsize=7.5, color=text, zorder=4,
                linespacing=1.25, bbox={"boxstyle": "round,pad=0.35", "facecolor": face, "edgecolor": edge,
                                        "linewidth": 1.8 if node.taken else 0.8})  # fmt: skip


def _add_legend(ax: Axes) -> None:
    """Below the tree: which way documents go."""
    from matplotlib.lines import Line2D

    ways = [
        Line2D([], [], linestyle="none", marker="<", markersize=5, color="#52606d", label="yes: to the left"),
        Line2D([], [], linestyle="none", **MISSING, label="where missing values go"),
    ]
    ax.legend(handles=ways, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False, fontsize=7.5)


def _count(cover: float) -> str:
    """A line with the number of documents; empty if the model does not have it."""
    if cover <= 0:
        return ""
    return f"\n{cover:,.0f} docs" if cover == int(cover) else f"\n{cover:,.3g}"
