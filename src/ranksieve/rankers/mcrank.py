"""McRank: boosted trees that predict grades (Li, Burges, Wu 2007), one tree per output in each round.

All outputs are boosted by the same loop, one tree at a time in turn. The objective couples them: an output's
probabilities depend on the sums of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ranksieve.boosting.callbacks import Monitor, checked_mean
from ranksieve.boosting.grower import Grower
from ranksieve.boosting.initial_scores import TRAIN
from ranksieve.boosting.job import TrainingJob, model_info, named_sets, report_data, sizes_of
from ranksieve.boosting.loop import BoostingParts, Rounds, State, boost
from ranksieve.boosting.query_labels import QueryLabels
from ranksieve.boosting.scores import Scores
from ranksieve.boosting.training_rows import TrainingLists, TrainingRows
from ranksieve.boosting.tree import to_forest
from ranksieve.boosting.views import Objective
from ranksieve.data.binned import Binned, bin_data, bin_like
from ranksieve.errors import DataError, InterruptedTraining, param
from ranksieve.evaluation.metrics import Metric, metric_of
from ranksieve.models.grades import LINKS, Grades, Link
from ranksieve.rankers.inputs import warn_of_positions

MOST_GRADES = 100


@dataclass
class Outputs(Rounds):
    """The forests of all outputs during training, and the probabilities of the training documents."""

    states: list[State[TrainingRows, Scores]]
    scores: list[Scores]  # the scores of the states
    link: Link
    probabilities: np.ndarray

    def drop_unfinished(self) -> None:
        """Drop the trees of a round that was interrupted."""
        n = self.drop_unmeasured()
        for state in self.states:
            del state.trees[n:]

    def update_probabilities(self) -> None:
        self.probabilities = self.link.probabilities(np.stack([scores.all() for scores in self.scores]))

    def objective(self, output: int, targets: np.ndarray) -> Objective:
        """The objective of one output; its probabilities depend on the sums of all outputs."""
        curvature = self.link.curvature(len(self.states))

        def gradients(labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            probability = self.probabilities[output]
            return targets - probability, curvature * probability * (1.0 - probability)

        return gradients


@dataclass(frozen=True)
class GradesValidSet:
    """A validation set, ranked by the expected grade."""

    name: str
    data: Binned
    scores: list[Scores]  # per output
    grades: np.ndarray

    def measure(self, state: Outputs, metric: Metric) -> float:
        for scores, output in zip(self.scores, state.states, strict=True):
            for tree in output.trees[scores.n_trees :]:
                scores.add(tree)
        sums = np.stack([scores.all() for scores in self.scores])
        expected = state.link.expected(state.link.probabilities(sums), self.grades)
        return checked_mean(metric, self.data.lists, expected, self.name)


def train_grades(job: TrainingJob, link_name: str) -> Grades:
    """Grow one tree per output and round until validation stops improving or there are `trees` rounds."""
    params = job.params
    data = bin_data(job.data, **params.bin_limits, missing=job.missing)
    report_data(job.callbacks, TRAIN, data)
    lists = data.lists
    QueryLabels.of(lists).check_grades(data.source, pairs=False)
    warn_of_positions(lists, params)
    grades = _grades(lists.labels, data.source)
    link = LINKS[link_name]
    targets = link.targets(lists.labels, grades)
    starts = link.initial_sums(np.average(targets, axis=1, weights=lists.weights))
    scores = [Scores(data, start=start) for start in starts]
    states = [State([], one, TrainingRows.of(lists, None)) for one in scores]
    outputs = Outputs(states, scores, link, np.empty(0))
    metric = metric_of(params)
    grower = Grower(data, params, threads=job.threads)
    parts = []
    for k, own_scores in enumerate(scores):
        one = params.replace(algo="mart", objective=outputs.objective(k, targets[k]))
        step_size = params.step_rule((data, own_scores), [], metric)
        parts.append(BoostingParts(TrainingLists(lists, one, metric), grower, step_size))
    watched = list(_watched(job, data, grades, starts))
    monitor = Monitor(watched, metric, params.trees, params.early_stopping, job.callbacks, round="round")
    try:
        while outputs.step < params.trees and not outputs.stopped:
            outputs.update_probabilities()
            for part, state in zip(parts, states, strict=True):
                boost(part, state, n_trees=state.step + 1, seed=params.seed)
            monitor(outputs)
    except KeyboardInterrupt:
        outputs.drop_unfinished()
        if not outputs.step:
            raise
        raise InterruptedTraining(_model(job, data, outputs, monitor, grades, starts)) from None
    return _model(job, data, outputs, monitor, grades, starts)


def _grades(labels: np.ndarray, source: str) -> np.ndarray:
    grades = np.unique(labels)
    if len(grades) > MOST_GRADES:
        raise DataError(
            f"{source}: has {len(grades)} different labels, and one forest is grown per label; expected at most "
            f"{MOST_GRADES} grades; use ",
            param("algo", "mart"),
            " for labels that are measurements",
        )
    return grades.astype(np.float64)


def _watched(job: TrainingJob, data: Binned, grades: np.ndarray, starts: np.ndarray) -> Iterator[GradesValidSet]:
    for name, given in named_sets(job.valid).items():
        binned = bin_like(given, data, missing=job.missing)
        report_data(job.callbacks, name, binned)
        yield GradesValidSet(name, binned, [Scores(binned, start=start) for start in starts], grades)


def _model(
    job: TrainingJob, data: Binned, outputs: Outputs, monitor: Monitor, grades: np.ndarray, starts: np.ndarray
) -> Grades:
    """The trees of the best rounds in turn; the first tree of each output includes its initial sum."""
    facts = monitor.facts(outputs)
    kept = facts["best_iteration"]
    for state, start in zip(outputs.states, starts, strict=True):
        state.trees[0].leaf_values[:] += start
    trees = [state.trees[number] for number in range(kept) for state in outputs.states]
    info = {**model_info(job.params, data.info, data=sizes_of(data.lists)), **facts}
    return Grades(to_forest(trees, data.binning, data.feature_names, info), grades, job.params.ranker_rule.link)
