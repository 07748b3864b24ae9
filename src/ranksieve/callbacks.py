"""What training, pruning and tuning report to callbacks."""

from ranksieve.boosting.callbacks import Record, SelectionCounter
from ranksieve.pruning.records import PruningRecord
from ranksieve.rankers.tune import TuningRecord

__all__ = ["PruningRecord", "Record", "SelectionCounter", "TuningRecord"]
