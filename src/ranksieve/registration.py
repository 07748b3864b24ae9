"""Registering the user's own selections and objectives under a name."""

from __future__ import annotations

from typing import Any

from ranksieve.errors import ParameterError
from ranksieve.parameter_table import table
from ranksieve.rules import OBJECTIVES, SELECTIONS, Registry


def register_selection(name: str, rule: Any, *, replace: bool = False) -> None:
    """Give a selection a name, usable as `selection="name"` (`--selection name`) from then on.

    Parameters
    ----------
    name : str
    rule : function or class
        A function `(view) -> rows`: the numbers of the rows that the next tree is trained on, positives included;
        None for all. `view` has the lists, the current scores, the step, a random generator, and the gradients. Or a
        frozen dataclass whose fields are parameters with defaults, and whose `__call__` is such a function.
    replace : bool
        Replace the selection that has the name. Without it, a name that is taken is an error.

    Examples
    --------
    >>> import numpy as np
    >>> import ranksieve as rs
    >>> def first_ten(view):
    ...     rank = np.arange(view.lists.n_docs) - np.repeat(view.lists.offsets[:-1], view.lists.sizes)
    ...     return np.flatnonzero((view.lists.labels > 0) | (rank < 10))
    >>> rs.params.register_selection("first-ten", first_ten)
    >>> rs.train(rs.synth.cubic(20), selection="first-ten", trees=3, leaves=4).n_trees
    3
    """
    register(SELECTIONS, name, rule, replace=replace)


def register_objective(name: str, rule: Any, *, replace: bool = False) -> None:
    """Give an objective a name, usable as `objective="name"` (`--objective name`) from then on.

    Parameters
    ----------
    name, replace
        As for `register_selection`.
    rule : function or class
        A function `(labels, scores, offsets) -> (gradients, second derivatives)`; query q owns the documents
        `offsets[q]:offsets[q + 1]`, and positive gradients raise scores. Or a frozen dataclass whose fields are
        parameters with defaults, and whose `__call__` takes an `ObjectiveView` with labels, scores, offsets and more.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import ranksieve as rs
    >>> @dataclass(frozen=True)
    ... class Huber:
    ...     limit: float = 0.5
    ...     def __call__(self, view):
    ...         return np.clip(view.labels - view.scores, -self.limit, self.limit), np.ones(len(view.labels))
    >>> rs.params.register_objective("huber", Huber)
    >>> rs.train(rs.synth.cubic(20), objective="huber", limit=0.8, trees=3, leaves=4).info["params"]["limit"]
    0.8
    """
    register(OBJECTIVES, name, rule, replace=replace)


def register(registry: Registry, name: str, rule: Any, *, replace: bool = False) -> None:
    """Register a rule of any kind; an error, and no change, where its parameters do not fit into the table."""
    before = dict(registry)
    registry.add(name, rule, replace=replace)
    try:
        table()
    except ParameterError:
        registry.restore(before)
        raise
