"""Selections by name: the library's, the user's own, and functions in files."""

from __future__ import annotations

from collections.abc import Callable

from ranksieve.boosting import selections as plain
from ranksieve.boosting.adaptive_selections import by_progress, near_positives
from ranksieve.boosting.gradient_selections import goss, steepest_negatives
from ranksieve.boosting.mixed_selections import top_and_bottom, top_and_random
from ranksieve.boosting.selections import Selection
from ranksieve.errors import ParameterError, did_you_mean
from ranksieve.params import ALGORITHMS, Params
from ranksieve.text_formats import AUTO
from ranksieve.user_functions import import_function

ADAPTIVE_MINIMUM = 20  # a list chosen by its scores alone can get so short that trees become unstable


def _at_least(params: Params, default: int = 1) -> int:
    return default if params.min_negatives < 0 else params.min_negatives


SELECTIONS: dict[str, Callable[[Params], Selection]] = {
    "everything": lambda p: plain.everything,
    "top": lambda p: plain.top_negatives(share=p.negatives, at_least=_at_least(p)),
    "random": lambda p: plain.random_negatives(share=p.negatives, at_least=_at_least(p)),
    "rows": lambda p: plain.random_rows(share=p.negatives),
    "gradient": lambda p: steepest_negatives(share=p.negatives, at_least=_at_least(p)),
    "adaptive": lambda p: near_positives(
        margin=p.margin, at_least=_at_least(p, ADAPTIVE_MINIMUM), at_most=p.max_negatives
    ),
    "progress": lambda p: by_progress(
        share=p.negatives, margin=p.margin, at_least=_at_least(p, ADAPTIVE_MINIMUM), at_most=p.max_negatives
    ),
    "top+random": lambda p: top_and_random(share=p.negatives, rest=p.rest, at_least=_at_least(p)),
    "top+bottom": lambda p: top_and_bottom(share=p.negatives, rest=p.rest, at_least=_at_least(p)),
    "goss": lambda p: goss(share=p.negatives, rest=p.rest),
}


def register_selection(name: str, rule: Selection) -> None:
    """Give a rule for who teaches a tree a name, usable as `selection="name"` (`--selection name`) from then on.

    Parameters
    ----------
    name : str
    rule : function
        `(view) -> rows`: the numbers of the rows that teach the next tree, positives included; None for all. `view`
        has the lists, the current scores, the step, a random generator, and the gradients.

    Examples
    --------
    >>> import numpy as np
    >>> import ranksieve as rs
    >>> def first_ten(view):
    ...     rank = np.arange(view.lists.n_docs) - np.repeat(view.lists.offsets[:-1], view.lists.sizes)
    ...     return np.flatnonzero((view.lists.labels > 0) | (rank < 10))
    >>> rs.register_selection("first-ten", first_ten)
    >>> rs.train(rs.synth.cubic(20), selection="first-ten", trees=3, leaves=4).n_trees
    3
    """
    if not isinstance(name, str) or not name or ":" in name or name == AUTO:
        raise ParameterError(f"{name!r} cannot name a selection; give a word without a colon, other than {AUTO!r}")
    if not callable(rule):
        raise ParameterError(f"the selection {name!r} is {type(rule).__name__}; expected a function of a view")
    SELECTIONS[name] = lambda params: rule


def selection_name(params: Params) -> str:
    """The name of the rule by which a boosted forest, or the one that X-CLEaVER grows, selects."""
    algo = params.base if params.algo == "xcleaver" else params.algo
    return ALGORITHMS[algo][0] if params.selection == AUTO else params.selection


def named_selection(params: Params) -> Selection:
    """The rule that `params.selection` names; `auto` is the algorithm's, `file.py:function` the user's own."""
    name = selection_name(params)
    if name in SELECTIONS:
        return SELECTIONS[name](params)
    if ":" in name:
        return import_function(name, parameter="selection", signature="a function of a view")
    hint = did_you_mean(name, SELECTIONS)
    raise ParameterError(
        f"--selection is {name!r}; {hint}known: {', '.join([AUTO, *SELECTIONS])}, what register_selection added, "
        "and file.py:function"
    )
