from .coordinate_ascent import refit as refit
from .prune import reweight as reweight
from .removals import Removals as Removals
from .strategies import register_strategy as register_strategy
from .tree_outputs import TreeOutputs as TreeOutputs
