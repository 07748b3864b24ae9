"""What selections and objectives of your own are called with."""

from ranksieve.boosting.scores import Choice
from ranksieve.boosting.views import ObjectiveView, ReadOnlyScores, View
from ranksieve.data.lists import Lists
from ranksieve.data.negatives import Negatives

__all__ = ["Choice", "Lists", "Negatives", "ObjectiveView", "ReadOnlyScores", "View"]
