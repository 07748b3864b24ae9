"""Its place makes the modules beside it importable from every test."""

import itertools
import os
import sys
import time
from collections.abc import Iterator

import hypothesis
import numpy as np
import pytest

# the same examples on every machine; --hypothesis-profile=random draws others
hypothesis.settings.register_profile("random", deadline=None)
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")

# small kernels by the thousand: threads that spin between them starve each other on a busy machine
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def pytest_addoption(parser):
    parser.addoption("--fuzz-seconds", type=float, default=None, help="seconds of each fuzz test, for more cases")
    parser.addoption("--fuzz-first", type=int, default=0, help="number of the first case of each fuzz test")


@pytest.fixture
def fuzz_cases(request):
    """A function that yields one seeded generator per case.

    The cases are the same on every machine. With `--fuzz-seconds` they go on until the time is over.
    """
    seconds, first = (request.config.getoption(f"--fuzz-{name}") for name in ("seconds", "first"))

    def cases(n_cases: int) -> Iterator[np.random.Generator]:
        start = time.monotonic()
        for seed in itertools.count(first):
            if seed >= first + n_cases and (seconds is None or time.monotonic() - start > seconds):
                return
            yield np.random.default_rng(seed)

    return cases


def pytest_collection_modifyitems(items):
    """Clusters last: threads of theirs go on for a while and draw random numbers, which Hypothesis does not like.

    With a process per core they come first: one process runs them all, and the others do not wait for it in the end.
    """
    is_parallel = "PYTEST_XDIST_WORKER" in os.environ
    items.sort(key=lambda item: ("tests/cluster/" in item.path.as_posix()) != is_parallel)


@pytest.fixture(autouse=True)
def close_figures():
    """Figures that a test leaves open are not seen by the next one."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def nothing_registered():
    """Pages and docstrings show how to register rules and metrics; other tests must not see them."""
    from ranksieve.evaluation.metric_table import METRICS
    from ranksieve.rules import SLOTS

    known = [(registry, dict(registry)) for registry in SLOTS]
    metrics = dict(METRICS)
    yield
    for registry, rules in known:
        registry.restore(rules)
    for name in METRICS.keys() - metrics.keys():
        del METRICS[name]


@pytest.fixture
def small_memory(monkeypatch):
    """The program itself counts as nothing, and files are read in small blocks: limits of some kilobytes work."""
    from ranksieve.data import bin_file, bin_store, disk_rows

    monkeypatch.setattr(disk_rows, "TAKEN_BYTES", 0)
    monkeypatch.setattr(bin_store, "resident_memory", lambda: 0)
    monkeypatch.setattr(bin_store, "sample_bytes", lambda n_rows, n_features: 0)
    sizes = {"WORK_BYTES": 0, "FEATURE_BYTES": 0, "LEAST_ROWS": 8, "DOC_BYTES": 0, "LABEL_BYTES": 4,
             "WHOLE_BYTES": 0, "TOP_BYTES": 0, "MEMORY_BYTES": 4}  # fmt: skip
    for name, value in sizes.items():
        monkeypatch.setattr(bin_store, name, value)
    monkeypatch.setattr(bin_file, "BLOCK_BYTES", 1_024)
    monkeypatch.setattr(bin_file, "NEAR_BYTES", 64)
