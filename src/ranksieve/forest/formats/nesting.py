"""A tree written as text inside text, as XML and JSON have it. No recursion: a tree may be thousands of splits deep."""

from __future__ import annotations

from collections.abc import Callable

from ranksieve.forest.forest import Forest

Piece = Callable[[int, int], str]  # (split or leaf in the forest's arrays, depth) -> text


def nested(forest: Forest, tree: int, *, before: Piece, between: Piece, after: Piece, leaf: Piece) -> str:
    """The text of a tree: a split is `before`, its left child, `between`, its right child and `after`."""
    first_split, first_leaf = int(forest.split_offsets[tree]), int(forest.leaf_offsets[tree])
    left, right = (side[first_split : forest.split_offsets[tree + 1]].tolist() for side in (forest.left, forest.right))
    pieces: list[str] = []
    pending: list[tuple[Piece | None, int, int]] = [(None, 0 if left else ~0, 0)]
    while pending:
        piece, node, depth = pending.pop()
        if piece is not None:
            pieces.append(piece(first_split + node, depth))
        elif node < 0:
            pieces.append(leaf(first_leaf + ~node, depth))
        else:
            pending += [
                (after, node, depth),
                (None, right[node], depth + 1),
                (between, node, depth),
                (None, left[node], depth + 1),
                (before, node, depth),
            ]
    return "".join(pieces)
