"""Posteriors of browsing, against all courses that a user may have taken; and harvested clicks, against loops."""

import numpy as np
import pytest

from naive_clicks import browsing_click_chances, browsing_posteriors, harvested, make_log, position_clicks
from ranksieve.clicks.log import cells_of
from ranksieve.kernels import click_models as kernels


def test_posteriors_of_browsing_equal_those_of_all_courses():
    rng = np.random.default_rng(3)
    sizes = [1, 4, 2, 5, 3, 5]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n = offsets[-1]
    attraction, satisfaction, clicks = rng.uniform(0.1, 0.9, n), rng.uniform(0.1, 0.9, n), rng.random(n) < 0.4
    clicks[offsets[2] : offsets[3]] = False
    examined, satisfied, chains = np.empty(n), np.empty(n), np.empty((len(sizes), 3))
    kernels.browsing_posteriors(offsets, clicks, attraction, satisfaction, 0.7, examined, satisfied, chains)
    full, conditional = np.empty(n), np.empty(n)
    kernels.browsing_clicks(offsets, clicks, attraction, satisfaction, 0.7, full, conditional)
    for page in range(len(sizes)):
        own = slice(offsets[page], offsets[page + 1])
        parts = attraction[own], satisfaction[own], 0.7, clicks[own].astype(int).tolist()
        seen, happy, decisions, went_on, chance = browsing_posteriors(*parts)
        assert examined[own] == pytest.approx(seen) and satisfied[own] == pytest.approx(happy)
        assert chains[page] == pytest.approx([decisions, went_on, np.log(chance)])
        slow_full, slow_conditional = browsing_click_chances(*parts)
        assert full[own] == pytest.approx(slow_full) and conditional[own] == pytest.approx(slow_conditional)


def test_harvested_clicks_equal_their_twin():
    small = make_log(60, click=position_clicks(0.8), seed=1)[0]
    cells = cells_of(small)
    sums = np.zeros((cells.n_places, cells.n_places, 2))
    kernels.harvest(cells.starts, cells.places, cells.shown, cells.clicked, sums)
    assert sums == pytest.approx(harvested(small, cells.n_places))
