"""Pictures: every function takes axes to draw on, or makes some, and returns them. Needs the extra `plots`."""

from ranksieve.plots.trees import tree

__all__ = ["tree"]
