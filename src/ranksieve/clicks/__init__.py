"""Learning from clicks: logs, click models, propensities, judgements, simulation and online comparison."""

from ranksieve.clicks.counterfactual import Estimate, estimate, ranking_of
from ranksieve.clicks.fitted import FittedModel, ModelScores
from ranksieve.clicks.interleaving import (
    Interleaved,
    Preference,
    balanced,
    balanced_outcome,
    needed_pages,
    preference,
    sign_test,
    team_draft,
)
from ranksieve.clicks.interventions import propensities
from ranksieve.clicks.judgements import Judgements, judge
from ranksieve.clicks.lists import inverse_propensity_weights, judged_lists, page_lists, rated_lists
from ranksieve.clicks.log import ClickLog
from ranksieve.clicks.models import fit
from ranksieve.clicks.propensity import Propensities
from ranksieve.clicks.rates import RateLambdas
from ranksieve.clicks.reading import read, write
from ranksieve.clicks.simulation import LoggingPolicy, Users, logging_ranker, simulate
from ranksieve.clicks.training import train

__all__ = [
    "ClickLog",
    "Estimate",
    "FittedModel",
    "Interleaved",
    "Judgements",
    "LoggingPolicy",
    "ModelScores",
    "Preference",
    "Propensities",
    "RateLambdas",
    "Users",
    "balanced",
    "balanced_outcome",
    "estimate",
    "fit",
    "inverse_propensity_weights",
    "judge",
    "judged_lists",
    "logging_ranker",
    "needed_pages",
    "page_lists",
    "preference",
    "propensities",
    "ranking_of",
    "rated_lists",
    "read",
    "sign_test",
    "simulate",
    "team_draft",
    "train",
    "write",
]
