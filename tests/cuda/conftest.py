"""Starts the CUDA simulator: it keeps one core busy for minutes.

It runs from the first test on, as most tests use one core only. Where there is a process of tests for each core, it is
started by the one that needs it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, NamedTuple

import pytest


class Simulation(NamedTuple):
    """The process that runs `simulated.py`, and what it prints."""

    process: subprocess.Popen[str]
    output: IO[str]
    errors: IO[str]


SIMULATION = pytest.StashKey[Simulation]()


def pytest_collection_finish(session: pytest.Session) -> None:
    wanted = any(item.path.name == "test_simulated.py" for item in session.items)
    if wanted and not session.config.option.collectonly and "PYTEST_XDIST_WORKER" not in os.environ:
        session.config.stash[SIMULATION] = start_simulation()


def start_simulation() -> Simulation:
    output, errors = (tempfile.TemporaryFile("w+") for _ in range(2))  # noqa: SIM115 (closed when the session ends)
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("simulated.py"))],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}, stdout=output, stderr=errors, text=True,
    )  # fmt: skip
    return Simulation(process, output, errors)


def pytest_sessionfinish(session: pytest.Session) -> None:
    simulation = session.config.stash.get(SIMULATION, None)
    if simulation is not None:
        simulation.process.kill()
        simulation.process.wait()
        simulation.output.close()
        simulation.errors.close()


@pytest.fixture(scope="session")
def simulation(request: pytest.FixtureRequest) -> Simulation:
    stash = request.config.stash
    if SIMULATION not in stash:
        stash[SIMULATION] = start_simulation()
    return stash[SIMULATION]
