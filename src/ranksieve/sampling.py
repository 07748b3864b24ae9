"""Static samples of a data set: fewer negatives, the same queries."""

from ranksieve.data.sampling import by_model, truncate, undersample

__all__ = ["by_model", "truncate", "undersample"]
