"""Where candidates come from: noted with data and models, compared before a model re-orders others."""

from __future__ import annotations

import numpy as np

from ranksieve.forest.forest import Forest
from ranksieve.forest.model import Model
from ranksieve.retrieval.families import of_candidates, of_list
from ranksieve.retrieval.models import spelling
from ranksieve.retrieval.queries import Queries
from ranksieve.retrieval.runs import Run
from ranksieve.retrieval.searching import Searcher
from ranksieve.text_formats import some_of

RUN = "--run"  # candidates of a run that our first stage has not made
DEPTH = " --depth "  # candidates of our first stage: its options, and how many
COMPARED = 5  # lists of a run that are retrieved again


def origin_of(searcher: Searcher, depth: int, run: Run | None, queries: Queries) -> str:
    """Where the `depth` best candidates of a run, or of the first stage, come from, in the words of the command line.

    A run that this first stage has made is the same as its candidates.
    """
    found = depth if run is None else _depth_of_own(run, searcher, queries)
    return RUN if found is None else f"{spelling(searcher.stage)}{DEPTH}{min(found, depth)}"


def _depth_of_own(run: Run, searcher: Searcher, queries: Queries) -> int | None:
    """How many candidates a query of the run has, if it has the scores that the first stage gives; else None."""
    lists = [(queries[id], scores) for id, _, scores in run.lists() if id in queries and len(scores)]
    if not lists:
        return None
    longest = max(range(len(lists)), key=lambda number: len(lists[number][1]))
    for number in dict.fromkeys((*(n for n in range(min(COMPARED, len(lists))) if n != longest), longest)):
        text, scores = lists[number]
        _, ours = searcher.candidates([text], len(scores) + 1).list_of(0)
        if len(ours) < len(scores) or not np.allclose(ours[: len(scores)], scores, rtol=1e-5):
            return None
    return len(scores) if len(ours) > len(scores) else searcher.index.n_docs  # all that there are, at any depth


def stage_and_depth(origin: str) -> tuple[str, int | None]:
    """The parts of an origin; runs have no depth, and neither has what was noted by earlier versions.

    Examples
    --------
    >>> stage_and_depth("--model dfr --set c=1 --depth 300")
    ('--model dfr --set c=1', 300)
    """
    stage, _, depth = origin.partition(DEPTH)
    return stage, int(depth) if depth else None


def in_words(stage: str) -> str:
    """A first stage by its options, as both a command line and Python understand it.

    Examples
    --------
    >>> in_words("--model bm25f --weights title=2 --set k1=1.2,b=0.75")
    'bm25f (weights title=2; k1=1.2,b=0.75)'
    """
    if stage == RUN:
        return "a run"
    model, _, settings = stage.removeprefix("--model ").partition(" --set ")
    model, _, weights = model.partition(" --weights ")
    return f"{model} ({f'weights {weights}; ' if weights else ''}{settings})"


def depends(model: Model) -> bool:
    """Whether it matters where candidates come from: the model says where its own did, and uses features of that."""
    return "candidates" in getattr(model, "info", {}) and any(map(of_candidates, _used_features(model)))


def difference(model: Model, origin: str, n_docs: int, *, of_run: bool) -> str | None:
    """What to warn of: features whose meaning changes as the candidates are not from where the model's were.

    None if there is nothing: the origin is the same, the model does not say, or it makes no use of such features. Of
    two runs nobody can tell.
    """
    learned = getattr(model, "info", {}).get("candidates")
    if learned is None or learned == origin or (learned == RUN and of_run):
        return None
    (stage, depth), (this_stage, this_depth) = stage_and_depth(learned), stage_and_depth(origin)
    used = _used_features(model)
    if stage != this_stage:
        bound = [name for name in used if of_candidates(name)]
        got = "a run with other scores" if this_stage == RUN else f"candidates of {in_words(this_stage)}"
        what, cause = f"candidates of {in_words(stage)} and gets {got}", "the first stage"
        remedy = "use the same one, or train on features of these candidates"
    else:
        same = depth is None or this_depth is None or min(depth, n_docs) == min(this_depth, n_docs)
        bound = [] if same else [name for name in used if of_list(name)]
        what, cause = f"the {depth} best candidates of a query and gets the {this_depth} best", "the whole list"
        as_deep = " and a run as deep" if of_run else ""
        remedy = f"use --depth={depth}{as_deep}, or train on features of this depth"
    if not bound:
        return None
    return (
        f"the model has learned from {what}; of the {len(used)} features that it uses {len(bound)} depend on {cause} "
        f"({some_of(bound, 3)}), so {remedy}"
    )


def _used_features(model: Model) -> list[str]:
    """The features that scores depend on; of models other than forests all."""
    if not isinstance(model, Forest):
        return list(model.feature_names)
    return [model.feature_names[number] for number in np.unique(model.feature)]
