"""What training reports after each tree."""

from ranksieve.boosting.callbacks import Record, SelectionCounter

__all__ = ["Record", "SelectionCounter"]
