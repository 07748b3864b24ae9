"""Starts the CUDA simulator with the first test: it keeps one core busy for minutes, and most tests use only one."""

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
    if not wanted or session.config.option.collectonly:
        return
    output, errors = (tempfile.TemporaryFile("w+") for _ in range(2))  # noqa: SIM115 (closed when the session ends)
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("simulated.py"))],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}, stdout=output, stderr=errors, text=True,
    )  # fmt: skip
    session.config.stash[SIMULATION] = Simulation(process, output, errors)


def pytest_sessionfinish(session: pytest.Session) -> None:
    simulation = session.config.stash.get(SIMULATION, None)
    if simulation is not None:
        simulation.process.kill()
        simulation.process.wait()
        simulation.output.close()
        simulation.errors.close()


@pytest.fixture(scope="session")
def simulation(request: pytest.FixtureRequest) -> Simulation:
    return request.config.stash[SIMULATION]
