"""Parts of a data set: sets of whole queries, and samples with fewer negatives."""

from ranksieve.data.sampling import by_model, split, truncate, undersample

__all__ = ["by_model", "split", "truncate", "undersample"]
