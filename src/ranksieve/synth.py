"""Generated data sets."""

from ranksieve.data.generators import cubic, two_stage

__all__ = ["cubic", "two_stage"]
