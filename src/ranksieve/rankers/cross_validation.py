"""`cv`: cross-validation by query."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranksieve.boosting.job import TrainingJob
from ranksieve.data.read import read
from ranksieve.data.sampling import fold_queries
from ranksieve.errors import ParameterError, param
from ranksieve.evaluation.evaluate import Evaluation, ResultTable, evaluate, wanted_metrics
from ranksieve.evaluation.metrics import Metric, mean, metric_of
from ranksieve.evaluation.significance import paired_t_test
from ranksieve.html_tables import html_notes
from ranksieve.progress import ProgressDisplay, shown_in_python, training_display
from ranksieve.rankers.fold_processes import Fold, FoldTraining, fit_in_processes, fold_jobs
from ranksieve.rankers.train import run, training_job

Trained = Generator[tuple[int, Any], None, None]  # numbers of folds, from 1, and their models
NAME = "model"  # name of the one system in `CrossValidation.evaluation`


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation:
    """Values of every query by the model that was not trained on it, and the models, as `cv` returns them.

    Attributes
    ----------
    evaluation
        One number per metric and query, in the order of the data's queries; can be compared with that of another
        `cv` on the same data by the tests in `ranksieve.significance`.
    folds
        Per query, the fold in which it was a test query, from 1.
    models
        The model of each fold.

    Examples
    --------
    >>> import ranksieve as rs
    >>> result = rs.cv(rs.synth.cubic(12), folds=3, trees=5, leaves=4)
    >>> result.fold_means().shape, result.per_query().shape
    ((3,), (12,))
    >>> low, high = result.interval()
    >>> low < result.mean() < high
    True
    """

    evaluation: Evaluation
    folds: np.ndarray
    models: tuple[Any, ...]

    @property
    def query_ids(self) -> np.ndarray:
        """The ids of the queries."""
        return self.evaluation.query_ids

    def per_query(self, metric: str | Metric | None = None) -> np.ndarray:
        """One number per query; NaN where the query is left out."""
        return self.evaluation.per_query(metric=metric)

    def mean(self, metric: str | Metric | None = None) -> float:
        """Mean over the queries of all folds that count."""
        return self.evaluation.mean(metric=metric)

    def interval(self, metric: str | Metric | None = None) -> tuple[float, float]:
        """95% confidence interval of the mean, of Student's t over queries; NaN with fewer than two queries."""
        values = self.per_query(metric)
        values = values[~np.isnan(values)]
        found = paired_t_test(values, np.zeros_like(values)).interval if len(values) > 1 else None
        low, high = found or (np.nan, np.nan)
        return float(low), float(high)

    def fold_means(self, metric: str | Metric | None = None) -> np.ndarray:
        """The mean of each fold's test queries."""
        values = self.per_query(metric)
        return np.array([mean(values[self.folds == fold]) for fold in range(1, len(self.models) + 1)])

    def table(self) -> ResultTable:
        """One row per fold, and one for all queries with the interval of the mean."""
        table = ResultTable()
        for number, model in enumerate(self.models, start=1):
            queries = int((self.folds == number).sum())
            table.append({"fold": str(number), "queries": queries, "size": model.size})
        table.append({"fold": "all", "queries": len(self.folds), "size": ""})
        for metric in map(str, self.evaluation.metrics):
            for row, value in zip(table, [*self.fold_means(metric).tolist(), self.mean(metric)], strict=True):
                row |= {metric: value, f"{metric} interval": None}
            table[-1][f"{metric} interval"] = self.interval(metric)
        return table

    @property
    def conventions(self) -> list[str]:
        """The conventions of the numbers."""
        return [
            *self.evaluation.conventions,
            "intervals: 95%, Student's t over queries; they do not cover the choice of training queries",
        ]

    def __str__(self) -> str:
        return "\n".join([str(self.table()), *self.conventions])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What a notebook shows: the table, and the conventions."""
        return self.table()._repr_html_() + html_notes(self.conventions)


def cv(
    data: Any,
    folds: int = 5,
    *,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    jobs: int = 0,
    verbose: int = True,
    **params: Any,
) -> CrossValidation:
    """Cross-validate a ranker by query: every query is a test query once.

    The model of a fold is trained on the queries of all folds but two. One of the two is for validation and decides
    when to stop; the other is for testing. `ranksieve split --folds` writes the same folds. The result is the same for
    any number of threads and jobs.

    Parameters
    ----------
    data : Dataset, table or file name
        Documents with labels.
    folds : int
        Number of folds, from 3.
    metrics
        What to measure on the test queries; the metric of training by default.
    jobs : int
        Folds to train at the same time, in processes that share `threads` and `memory`. 1 trains them in this process,
        one after the other. 0, the default, trains as many as cores and free memory allow. It is the same as 1 for
        small data, with `callbacks`, and on a GPU.
    verbose : bool or int
        As in `train`.
    **params
        The training parameters, and `callbacks`, `missing` and `categorical`, as in `train`. `seed` is also the seed of
        the folds. Callbacks need `jobs` 0 or 1.

    Examples
    --------
    >>> import ranksieve as rs
    >>> result = rs.cv(rs.synth.cubic(12), folds=3, trees=5, leaves=4, metrics=["ndcg@10", "mrr"])
    >>> len(result.models), result.per_query("mrr").shape, sorted(result.folds.tolist())
    (3, (12,), [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3])
    >>> low, high = result.interval()
    >>> low < result.mean() < high
    True
    """
    job = training_job(data, params, arguments=("folds",))
    wanted = (metric_of(job.params),) if metrics is None else wanted_metrics(metrics)
    if job.callbacks and jobs > 1:
        raise ParameterError(param("callbacks"), " run only in the calling process; use ", param("jobs", 1))
    job = replace(job, data=read(job.data, missing=job.missing))
    console = shown_in_python(verbose=verbose)
    return cross_validate(job, folds, wanted, jobs=jobs, display=None if console is None else {"console": console})


def cross_validate(
    job: TrainingJob,
    folds: int,
    metrics: tuple[Metric, ...],
    *,
    jobs: int = 0,
    display: Mapping[str, Any] | None = None,
    on_fold: Callable[[int, Any], None] = lambda fold, model: None,
) -> CrossValidation:
    """Train a model on each fold of a job's data and measure it on the fold's test queries.

    `display` holds options of `ProgressDisplay`; None shows no progress. `on_fold` is called with the number of a fold,
    from 1, and its model as soon as that is trained.
    """
    data = job.data
    parts = list(fold_queries(data.n_queries, folds, seed=job.params.seed))
    values = {str(metric): np.full(data.n_queries, np.nan) for metric in metrics}
    tested_in = np.zeros(data.n_queries, dtype=np.int64)
    models: dict[int, Any] = {}
    jobs = 1 if job.callbacks else fold_jobs(jobs, folds, data, job.params)
    with closing(
        _train_here(job, parts, display) if jobs == 1 else _in_processes(job, parts, display, jobs)
    ) as trained:
        for number, model in trained:
            on_fold(number, model)
            test = parts[number - 1][2]
            measured = evaluate(model, data.take_queries(test), metrics)
            for metric, found in values.items():
                found[test] = measured.per_query(metric=metric)
            tested_in[test] = number
            models[number] = model
    by_fold = tuple(models[number] for number in sorted(models))
    return CrossValidation(Evaluation(data.query_ids, {NAME: values}, metrics), tested_in, by_fold)


def _train_here(job: TrainingJob, parts: Sequence[Fold], display: Mapping[str, Any] | None) -> Trained:
    """One fold after the other."""
    for number, (train, valid, _) in enumerate(parts, start=1):
        fold = replace(job, data=job.data.take_queries(train), valid=job.data.take_queries(valid))
        if display is None:
            yield number, run(fold)
            continue
        options = {
            "title": f"fold {number} of {len(parts)}",
            "notes": number == 1,
            **display,
        }  # folds have the same notes
        with training_display(job.params.algo, doing="binning the data", **options) as progress:
            model = run(replace(fold, callbacks=(*job.callbacks, progress)))
        yield number, model


def _in_processes(job: TrainingJob, parts: Sequence[Fold], display: Mapping[str, Any] | None, jobs: int) -> Trained:
    """Several folds at a time, in the order in which they are finished."""
    doing = f"training {jobs} of {len(parts)} folds at a time"
    with ProgressDisplay("cross-validation", doing=doing, **(display or {"quiet": True})) as progress:
        trained = fit_in_processes(job.data, parts, FoldTraining.of(job.params, job.missing, jobs), jobs)
        for n_done, (number, model) in enumerate(trained, start=1):
            progress.update(n_done, len(parts), unit="fold", details=[f"fold {number}: {model.size}"])
            yield number, model
