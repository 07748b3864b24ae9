"""What training reports after each tree."""

from ranksieve.boosting.callbacks import Record, Tally

__all__ = ["Record", "Tally"]
