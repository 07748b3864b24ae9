"""From parameters to the slots of the loop: which algorithm is which choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranksieve.boosting.grower import Grower
from ranksieve.boosting.initial_scores import Base
from ranksieve.boosting.lessons import Lessons, Rules
from ranksieve.boosting.loop import Slots
from ranksieve.boosting.objectives import Objective, fit_labels, named_objective
from ranksieve.boosting.oblivious import ObliviousGrower
from ranksieve.boosting.registry import named_selection
from ranksieve.boosting.selections import Selection
from ranksieve.boosting.steps import Step
from ranksieve.data.binned import Binned
from ranksieve.errors import ParameterError
from ranksieve.evaluation.metric_table import highest_grade
from ranksieve.params import ALGORITHMS, Params

GROWERS: dict[str, type[Grower]] = {"best-first": Grower, "oblivious": ObliviousGrower}


def settle(
    params: Mapping[str, Any], selection: Selection | str | None, objective: Objective | str | None
) -> tuple[Params, Selection | None, Objective | None]:
    """The parameters with the names of a selection and an objective in them, and the user's own functions for these."""
    named = {"selection": selection, "objective": objective}
    settings = Params.from_mapping({**params, **{slot: name for slot, name in named.items() if isinstance(name, str)}})
    return (
        settings,
        None if isinstance(selection, str) else selection,
        None if isinstance(objective, str) else objective,
    )


def make_slots(
    data: Binned,
    params: Params,
    threads: int,
    base: Base,
    step: Step,
    selection: Selection | None = None,
    objective: Objective | None = None,
) -> Slots:
    """The slots that the parameters name, the user's own functions in their place where given."""
    best_grade = highest_grade(data.lists.labels)
    return Slots(
        lessons=Lessons(data.lists, make_rules(params, base, selection, objective, best_grade), params.seed),
        grower=GROWERS[ALGORITHMS[params.algo][2]](data, params, threads=threads),
        step=step,
    )


def make_rules(
    params: Params, base: Base, selection: Selection | None, objective: Objective | None, best_grade: float
) -> Rules:
    """Who teaches and what; `best_grade` is the highest label of the whole training set.

    A selection needs scores that rank: without a base the first tree sees everything.
    """
    if base.ranks and params.first_tree == "labels":
        raise ParameterError(
            "--first-tree=labels does not look at scores, so it cannot go on from --init; leave it out"
        )
    objective_name = ALGORITHMS[params.algo][1]
    chosen = named_objective(params, best_grade) if objective is None else _on_copies(objective)
    return Rules(
        select=selection or named_selection(params),
        first_selection=0 if base.ranks else 1,
        every=params.every,
        objective=chosen,
        first_objective=fit_labels if params.first_tree == "labels" and objective_name == "lambda" else chosen,
        row_fraction=params.row_fraction,
    )


def _on_copies(objective: Objective) -> Objective:
    """A user's objective, which may write into the scores it gets."""
    return lambda labels, scores, offsets: objective(labels, scores.copy(), offsets)
