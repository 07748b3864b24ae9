"""Models other than a `Forest`: linear ones, nets, blends, and forests that predict grades or split by statistics."""

from ranksieve.forest.ctr_forest import CtrForest
from ranksieve.forest.model import Model
from ranksieve.models.blend import Blend
from ranksieve.models.grades import Grades
from ranksieve.models.linear import Linear
from ranksieve.models.net import Net

__all__ = ["Blend", "CtrForest", "Grades", "Linear", "Model", "Net"]
