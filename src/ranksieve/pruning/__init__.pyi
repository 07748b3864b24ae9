from .coordinate_ascent import refit
from .prune import prune, reweight

__all__ = ["prune", "refit", "reweight"]
