"""Click models: fitting them to a log. `fit` is the way in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ranksieve.clicks.em import maximize
from ranksieve.clicks.fitted import FittedModel
from ranksieve.clicks.log import Cells, ClickLog, cells_of
from ranksieve.clicks.propensity import Propensities
from ranksieve.errors import DataError, ParameterError, check_choice, check_number, check_whole
from ranksieve.kernels import click_models as kernels

START_EXAMINATION = 0.9  # of the place with most clicks: parameters start away from the ends of their range
LOWEST_START = 0.01


@dataclass(frozen=True)
class FitOptions:
    """How a click model is fitted."""

    prior: float = 2.0
    iterations: int = 600
    tolerance: float = 1e-5
    propensities: Propensities | None = None


def fit(
    log: ClickLog,
    model: str = "pbm",
    *,
    propensities: Propensities | None = None,
    prior: float = 2.0,
    iterations: int = 600,
    tolerance: float = 1e-5,
) -> FittedModel:
    """Fit a click model to a log.

    Parameters
    ----------
    log
        Result pages with clicks.
    model
        - "ctr": clicks per impression of each query and document (DCTR);
        - "rctr": clicks per impression of each place (RCTR);
        - "coec": clicks over expected clicks, those of "rctr";
        - "pbm": position-based, a click needs that the place is examined and the document attracts;
        - "trust": position-based with trust bias (Agarwal et al. 2019): examined documents that are not relevant are
          clicked, too, depending on the place;
        - "cascade": users read from the top to their first click (Craswell et al. 2008);
        - "sdbn": users read to their last click, which satisfied them (Chapelle and Zhang 2009, simplified);
        - "dbn": users go on with a fixed chance after each document that did not satisfy them (the full model).
    propensities
        Those of the places, where they are known or estimated otherwise ("pbm"): only attraction is fitted.
    prior
        Weight of the mean over all documents, in examinations: rare documents stay near the mean.
    iterations, tolerance
        Most steps of expectation maximisation, and the change of a parameter that ends them ("pbm", "trust", "dbn").

    Examples
    --------
    >>> import ranksieve as rs
    >>> log = rs.clicks.read([{"query": "wine", "documents": ["a", "b"], "clicks": [0]}] * 8)
    >>> model = fit(log, "ctr", prior=0)
    >>> model.attraction.tolist()
    [1.0, 0.0]
    """
    check_choice("model", model, MODELS)
    check_number("prior", prior)
    check_whole("iterations", iterations)
    check_number("tolerance", tolerance)
    if propensities is not None and model != "pbm":
        raise ParameterError(f"the click model {model!r} takes no propensities; fit 'pbm', or leave them out")
    if not log.n_clicks:
        raise DataError(f"the log has {log.n_pages:,} pages and no click; use a log with clicks")
    return MODELS[model](log, FitOptions(prior, iterations, tolerance, propensities))


def _fitted(name: str, log: ClickLog, options: FitOptions, **parameters: object) -> FittedModel:
    return FittedModel(
        name=name,
        keys=log.pairs.keys,
        query_ids=log.query_ids,
        doc_ids=log.doc_ids,
        shown=np.bincount(log.pairs.of_rows, minlength=len(log.pairs)),
        prior=options.prior,
        **parameters,  # type: ignore[arg-type]
    )


def _shares(log: ClickLog) -> np.ndarray:
    """Clicks per impression of each place."""
    shown, clicked = log.by_place()
    return np.asarray(clicked / np.maximum(shown, 1))


def _fit_ctr(log: ClickLog, options: FitOptions) -> FittedModel:
    shown = log.pairs.sums(np.ones(len(log.clicks)))
    return _fitted("ctr", log, options, clicked=log.pairs.sums(log.clicks), examined=shown)


def _fit_rctr(log: ClickLog, options: FitOptions) -> FittedModel:
    ones = np.ones(len(log.pairs))
    return _fitted("rctr", log, options, clicked=ones, examined=ones, examination=_shares(log))


def _fit_coec(log: ClickLog, options: FitOptions) -> FittedModel:
    shares = _shares(log)
    expected = log.pairs.sums(shares[log.places])
    return _fitted("coec", log, options, clicked=log.pairs.sums(log.clicks), examined=expected, examination=shares)


def _fit_pbm(log: ClickLog, options: FitOptions) -> FittedModel:
    cells, steps = cells_of(log), 0
    if options.propensities is None:
        examination, steps = fit_positions(cells, options)
    else:
        examination = np.minimum(options.propensities.at(np.arange(cells.n_places)), 1.0)
    scale = examination[0]
    return _fitted(
        "pbm",
        log,
        options,
        clicked=cells.by_pair(cells.clicked),
        examined=_examined(cells, examination, options) / scale,
        examination=examination / scale,
        steps=steps,
    )


def fit_positions(cells: Cells, options: FitOptions) -> tuple[np.ndarray, int]:
    """The examination of each place under the position-based model with the largest likelihood, and the steps taken.

    The hidden variable is whether a cell was examined. Only products of attraction and examination are determined. The
    prior is not used: documents at low places attract less than the mean, so that it would lower their examination.
    """
    n_pairs = len(cells.starts)
    shown, clicked = cells.by_place(cells.shown), cells.by_pair(cells.clicked)
    expected, logs = np.empty(len(cells.pairs)), np.empty(len(cells.pairs))

    def step(parameters: np.ndarray) -> tuple[np.ndarray, float]:
        attraction, examination = parameters[:n_pairs], parameters[n_pairs:]
        kernels.expected_examinations(
            cells.pairs, cells.places, cells.shown, cells.clicked, attraction, examination, expected, logs
        )
        attraction = clicked / np.maximum(cells.by_pair(expected), 1e-300)
        return np.concatenate([attraction, cells.by_place(expected) / np.maximum(shown, 1e-300)]), float(logs.sum())

    shares = cells.by_place(cells.clicked) / np.maximum(shown, 1e-300)
    examination = np.clip(START_EXAMINATION * shares / max(shares.max(), 1e-300), LOWEST_START, 1.0)
    attraction = clicked / cells.by_pair(cells.shown * examination[cells.places])
    start = np.concatenate([np.clip(attraction, LOWEST_START, START_EXAMINATION), examination])
    found, steps = maximize(
        step, start, iterations=options.iterations, tolerance=options.tolerance, watched=cells.n_places
    )
    return found[n_pairs:], steps


def _examined(cells: Cells, examination: np.ndarray, options: FitOptions) -> np.ndarray:
    """Expected examinations of each pair, of attractions with a prior; the examination of places is given."""
    clicked = cells.by_pair(cells.clicked)
    expected, logs = np.empty(len(cells.pairs)), np.empty(len(cells.pairs))

    def step(attraction: np.ndarray) -> tuple[np.ndarray, float]:
        kernels.expected_examinations(
            cells.pairs, cells.places, cells.shown, cells.clicked, attraction, examination, expected, logs
        )
        return shrunk(clicked, cells.by_pair(expected), options.prior), float(logs.sum())

    start = np.clip(shrunk(clicked, cells.by_pair(cells.shown), options.prior), LOWEST_START, 1.0 - LOWEST_START)
    found, _ = maximize(step, start, iterations=options.iterations, tolerance=options.tolerance, watched=0)
    step(found)  # the last step taken may have been refused
    return cells.by_pair(expected)


def shrunk(clicked: np.ndarray, examined: np.ndarray, prior: float) -> np.ndarray:
    """Clicks per examination; documents with few examinations are near the mean of all."""
    mean = clicked.sum() / max(examined.sum(), 1e-300)
    return np.asarray((clicked + prior * mean) / np.maximum(examined + prior, 1e-300))


def _fit_trust(log: ClickLog, options: FitOptions) -> FittedModel:
    """Each document is relevant or not; its clicks are those of one of two position-based models."""
    cells = cells_of(log)
    others, n = cells.shown - cells.clicked, cells.n_places
    relevant = np.empty(len(cells.starts))

    def step(parameters: np.ndarray) -> tuple[np.ndarray, float]:
        parameters = np.clip(parameters, kernels.SMALLEST, 1.0 - kernels.SMALLEST)
        positive, negative, share = parameters[1 : n + 1], parameters[n + 1 :], parameters[0]
        logs = [
            cells.by_pair(cells.clicked * np.log(one)[cells.places] + others * np.log1p(-one)[cells.places])
            for one in (positive, negative)
        ]
        logs = [logs[0] + np.log(share), logs[1] + np.log1p(-share)]
        total = np.logaddexp(*logs)
        np.exp(logs[0] - total, out=relevant)
        new = [
            cells.by_place(weights * cells.clicked) / np.maximum(cells.by_place(weights * cells.shown), 1e-300)
            for weights in (relevant[cells.pairs], 1.0 - relevant[cells.pairs])
        ]
        return np.concatenate([[relevant.mean()], *new]), float(total.sum())

    shares = np.clip(_shares(log), LOWEST_START, 0.5)
    start = np.concatenate([[0.3], np.minimum(2.0 * shares, START_EXAMINATION), 0.3 * shares])
    found, steps = maximize(step, start, iterations=options.iterations, tolerance=options.tolerance, watched=2 * n)
    step(found)
    shown = cells.by_pair(cells.shown)
    return _fitted(
        "trust",
        log,
        options,
        clicked=relevant * shown,
        examined=shown,
        examination=found[1 : n + 1],
        irrelevant_clicks=found[n + 1 :],
        steps=steps,
    )


def _fit_counts(log: ClickLog, options: FitOptions, *, name: str, last: bool) -> FittedModel:
    examined = np.empty(len(log.clicks))
    kernels.until_click(log.offsets, log.clicks, last, examined)
    clicks = log.clicks & (examined > 0)
    clicked = log.pairs.sums(clicks)
    ends = np.zeros(len(clicks))
    ends[_last_rows(log.offsets, clicks)] = 1.0
    return _fitted(
        name,
        log,
        options,
        clicked=clicked,
        examined=log.pairs.sums(examined),
        satisfied=log.pairs.sums(ends) if last else clicked,
        continuation=1.0,
    )


def _last_rows(offsets: np.ndarray, clicks: np.ndarray) -> np.ndarray:
    """The row of each page's last click, of pages with clicks."""
    rows = np.where(clicks, np.arange(len(clicks)), -1)
    last = np.maximum.reduceat(rows, offsets[:-1])
    return last[last >= 0]


def _fit_dbn(log: ClickLog, options: FitOptions) -> FittedModel:
    pairs, n_pairs = log.pairs, len(log.pairs)
    clicked = pairs.sums(log.clicks)
    examined, satisfied = np.empty(len(log.clicks)), np.empty(len(log.clicks))
    chains = np.empty((log.n_pages, 3))

    def step(parameters: np.ndarray) -> tuple[np.ndarray, float]:
        attraction, satisfaction = parameters[:n_pairs][pairs.of_rows], parameters[n_pairs:-1][pairs.of_rows]
        kernels.browsing_posteriors(
            log.offsets, log.clicks, attraction, satisfaction, parameters[-1], examined, satisfied, chains
        )
        decisions, went_on, value = chains.sum(axis=0)
        new = (
            shrunk(clicked, pairs.sums(examined), options.prior),
            shrunk(pairs.sums(satisfied), clicked, options.prior),
            [went_on / max(decisions, 1e-300)],
        )
        return np.concatenate(new), float(value)

    simple = MODELS["sdbn"](log, options)
    start = np.concatenate([simple.attraction, simple.satisfaction, [0.9]])
    start = np.clip(start, LOWEST_START, 1.0 - LOWEST_START)
    found, steps = maximize(step, start, iterations=options.iterations, tolerance=options.tolerance, watched=1)
    step(found)
    return _fitted(
        "dbn",
        log,
        options,
        clicked=clicked,
        examined=pairs.sums(examined),
        satisfied=pairs.sums(satisfied),
        continuation=float(found[-1]),
        steps=steps,
    )


MODELS: dict[str, Callable[[ClickLog, FitOptions], FittedModel]] = {
    "ctr": _fit_ctr,
    "rctr": _fit_rctr,
    "coec": _fit_coec,
    "pbm": _fit_pbm,
    "trust": _fit_trust,
    "cascade": partial(_fit_counts, name="cascade", last=False),
    "sdbn": partial(_fit_counts, name="sdbn", last=True),
    "dbn": _fit_dbn,
}
