"""Small binned lists for the tests of boosting."""

from __future__ import annotations

import pytest

from ranksieve.data.binned import Binned, bin_data
from ranksieve.data.dataset import Dataset
from samples import small_dataset


@pytest.fixture
def data() -> Dataset:
    return small_dataset()


@pytest.fixture
def binned(data: Dataset) -> Binned:
    return bin_data(data, max_bins=32)
