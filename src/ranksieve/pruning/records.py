"""Progress of pruning: the records that callbacks get, and the seconds of each phase."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class PruningRecord:
    """How far pruning is, passed to the callbacks of `prune` and `reweight`, and of X-CLEaVER.

    Attributes
    ----------
    round
        The round of X-CLEaVER; otherwise 1.
    phase
        "grow", "leaves", "check" (cross-fitting), "prune" or "reweight".
    done
        The share of the phase that is done.
    metric
        The name of the metric.
    value
        The metric now, on the lists that trees are judged on.
    best_valid
        The best value on the lists that stop the re-weighting.
    seconds
        Time of the phase so far.
    ended
        Why the phase is over before all of it was done; else None.
    seconds_left
        Time to the end of the phase; re-weighting may end sooner.
    judge_on
        The lists that trees are judged on: "train" or "valid".

    Examples
    --------
    >>> import ranksieve as rs
    >>> model = rs.train(rs.synth.cubic(20), trees=8, leaves=4)
    >>> phases = []
    >>> valid = rs.synth.cubic(20, start=20)
    >>> _ = rs.pruning.reweight(model, valid=valid, rounds=2, callbacks=[lambda record: phases.append(record.phase)])
    >>> "reweight" in phases
    True
    """

    round: int
    phase: str
    done: float
    metric: str
    value: float | None
    best_valid: float | None
    seconds: float
    ended: str | None = None
    seconds_left: float | None = None
    judge_on: str = "train"


Callbacks = Sequence[Callable[[PruningRecord], None]]


class Report(Protocol):
    """Reports the progress of a phase to callbacks; the arguments are fields of `PruningRecord`."""

    def __call__(
        self, done: float, value: float | None, best_valid: float | None, ended: str | None = None
    ) -> None: ...


@dataclass
class Reporter:
    """Reports the progress of phases to callbacks, and keeps the seconds of every phase."""

    metric: str
    callbacks: Callbacks
    judge_on: str = "train"
    seconds: dict[str, float] = field(default_factory=dict)
    round: int = 1

    @contextmanager
    def phase(self, name: str) -> Iterator[Report]:
        begin = time.perf_counter()
        first: list[tuple[float, float]] = []  # how much the first step did, and when: it may have compiled kernels

        def report(done: float, value: float | None, best_valid: float | None, ended: str | None = None) -> None:
            seconds, left = time.perf_counter() - begin, None
            if done and not first:
                first.append((done, seconds))
            elif done and ended is None:
                known, since = first[0]
                left = (seconds - since) * (1 - done) / max(done - known, 1e-9)
            for callback in self.callbacks:
                callback(
                    PruningRecord(
                        self.round, name, done, self.metric, value, best_valid, seconds, ended, left, self.judge_on
                    )
                )

        report(0.0, None, None)
        try:
            yield report
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin


def until_interrupted(steps: Iterable[T], take: Callable[[T], None]) -> bool:
    """Take every step; True if Ctrl-C ended them. Before the first step KeyboardInterrupt is raised again."""
    taken = False
    try:
        for step in steps:
            take(step)
            taken = True
    except KeyboardInterrupt:
        if not taken:
            raise
        return True
    return False
