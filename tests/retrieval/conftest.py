"""The small corpus, indexed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from corpus_samples import random_documents
from ranksieve.retrieval.index import Index


@pytest.fixture(scope="session")
def documents() -> list[dict]:
    return random_documents(60)


@pytest.fixture(scope="session")
def index(documents: list[dict], tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.build(
        documents, tmp_path_factory.mktemp("indexes") / "small", fields=["title", "body:nostem"], numbers=["price"]
    )


FEWEST_CASES = 20  # of a fuzz test, however slow the machine is


@pytest.fixture
def fuzz_cases(fuzz_seconds: Callable[[float], float]) -> Callable[[], Iterator[np.random.Generator]]:
    """A function that yields one seeded generator per case until the time of a fuzz test is over."""

    def cases() -> Iterator[np.random.Generator]:
        end, seed = time.monotonic() + fuzz_seconds(4.0), 0
        while seed < FEWEST_CASES or time.monotonic() < end:
            yield np.random.default_rng(seed)
            seed += 1

    return cases
