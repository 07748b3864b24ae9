"""What `evaluate`, `explain`, `cv`, `combine`, `interpolate` and `tune` return."""

from ranksieve.boosting.line_search import Curve
from ranksieve.evaluation.evaluate import Evaluation, ResultTable
from ranksieve.evaluation.explanations import Difference, Explanation
from ranksieve.rankers.combination import Combination
from ranksieve.rankers.cross_validation import CrossValidation
from ranksieve.rankers.interpolation import Interpolation
from ranksieve.rankers.trials import Trial
from ranksieve.rankers.tune import ChosenTrial, Tuned

__all__ = [
    "ChosenTrial",
    "Combination",
    "CrossValidation",
    "Curve",
    "Difference",
    "Evaluation",
    "Explanation",
    "Interpolation",
    "ResultTable",
    "Trial",
    "Tuned",
]
