"""Propensities from interventions: documents that stood at several places, by accident or by design."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from ranksieve.clicks.log import Cells, ClickLog, cells_from, cells_of
from ranksieve.clicks.models import FitOptions, fit, fit_positions
from ranksieve.clicks.propensity import Propensities
from ranksieve.errors import DataError, RanksieveWarning, caller_level, check_choice, param
from ranksieve.kernels import click_models as kernels

METHODS = ("harvest", "swaps", "pbm", "trust", "rctr")


def propensities(log: ClickLog, method: str = "harvest", **options: Any) -> Propensities:
    """Estimate how likely each place is examined, relative to the first one.

    Parameters
    ----------
    log
        Result pages with clicks.
    method
        - "harvest": from documents that were shown at several places for the same query, as happens when rankers change
          (intervention harvesting, Agarwal et al. 2019);
        - "swaps": from pages on which two documents were exchanged at random (Joachims et al. 2017);
        - "pbm", "trust", "rctr": from that click model, with **options as for `fit`.

    Examples
    --------
    >>> import ranksieve as rs
    >>> pages = [{"query": "wine", "documents": docs, "clicks": [0] if n % 2 else [1]}
    ...          for n in range(8) for docs in (["a", "b"], ["b", "a"])]
    >>> rs.clicks.propensities(rs.clicks.read(pages)).values.round(3).tolist()
    [1.0, 1.0]
    """
    check_choice("method", method, METHODS)
    if method == "swaps":
        return _of_experiments(_swap_cells(log), log.n_places, method)
    if method == "harvest":
        return _of_experiments(_harvest_cells(cells_of(log)), log.n_places, method)
    return fit(log, method, **options).propensities()


def _harvest_cells(cells: Cells) -> Cells:
    """Clicks of the same pairs at two places; two places are one document of a position-based model."""
    n = cells.n_places
    sums = np.zeros((n, n, 2))
    kernels.harvest(cells.starts, cells.places, cells.shown, cells.clicked, sums)
    upper, lower = np.nonzero(np.triu(sums[:, :, 0]))
    if not len(upper):
        raise DataError(
            "no document was shown at two places for the same query, so propensities cannot be harvested; use logs of "
            "several rankers, or randomised swaps and the method swaps of clicks propensities"
        )
    places = np.stack([upper, lower], axis=1).ravel()
    others = np.stack([lower, upper], axis=1).ravel()
    return cells_from(np.repeat(np.arange(len(upper)), 2), places, sums[places, others, 0], sums[places, others, 1])


def _swap_cells(log: ClickLog) -> Cells:
    """Clicks at both places of each pair of places that was exchanged at random."""
    if log.swaps is None:
        raise DataError(
            "the log has no randomised swaps; give pages a field 'swap', or use ", param("method", "harvest")
        )
    pages = np.flatnonzero(log.swaps[:, 0] >= 0)
    sides = np.sort(log.swaps[pages], axis=1)
    experiments, numbers = np.unique(sides, axis=0, return_inverse=True)
    numbers = numbers.ravel()
    shown = np.bincount(numbers, minlength=len(experiments))
    clicked = [
        np.bincount(numbers, weights=log.clicks[log.offsets[pages] + sides[:, side]], minlength=len(experiments))
        for side in (0, 1)
    ]
    return cells_from(
        np.repeat(np.arange(len(experiments)), 2),
        experiments.ravel(),
        np.repeat(shown, 2),
        np.stack(clicked, 1).ravel(),
    )


def _of_experiments(cells: Cells, n_places: int, method: str) -> Propensities:
    """The examination of places from clicks of the same documents at two places each."""
    examination = np.full(n_places, np.nan)
    values = fit_positions(cells, FitOptions(iterations=3000, tolerance=1e-7))[0]
    links = cells.places.reshape(-1, 2)
    graph = scipy.sparse.coo_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(n_places, n_places))
    connected = connected_components(graph, directed=False)[1]
    with_clicks = np.zeros(n_places, bool)
    with_clicks[: cells.n_places] = cells.by_place(cells.clicked) > 0
    known = np.flatnonzero((connected == connected[0]) & with_clicks)
    if not len(known) or known[0] != 0:
        raise DataError("no document was clicked at the first place and shown at others; use more pages")
    examination[known] = values[known] / values[0]
    missing = np.flatnonzero(np.isnan(examination))
    if len(missing):
        shown = ", ".join(str(place + 1) for place in missing[:5]) + (", …" if len(missing) > 5 else "")
        warnings.warn(
            RanksieveWarning(
                f"rank {shown} shares no documents with known ranks; it gets the propensity of the known rank above it"
            ),
            stacklevel=caller_level(),
        )
        for place in missing:
            examination[place] = examination[place - 1]
    return Propensities(examination, method)
