from .coordinate_ascent import refit
from .prune import prune, reweight
from .strategies import register_strategy

__all__ = ["prune", "refit", "register_strategy", "reweight"]
