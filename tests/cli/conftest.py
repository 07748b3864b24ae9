"""Small files to work on, and the command line as a function."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_samples import QUICK, letor_text
from typer.testing import CliRunner

from ranksieve.cli.app import app


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train.txt, valid.txt, test.txt."""
    folder = tmp_path_factory.mktemp("letor")
    for seed, (name, n_queries) in enumerate({"train": 30, "valid": 12, "test": 14}.items(), 1):
        (folder / f"{name}.txt").write_text(letor_text(n_queries, seed))
    return folder


class Outcome:
    def __init__(self, code: int, output: str) -> None:
        self.code, self.output = code, output


@pytest.fixture(scope="session")
def run():
    """`run("train", path, ...)` → exit code and everything printed; an error that escapes is raised."""

    def call(*arguments: object) -> Outcome:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.output)

    return call


@pytest.fixture(scope="session")
def model(files: Path, run) -> Path:
    path = files / "model.txt"
    outcome = run("train", files / "train.txt", "--valid", files / "valid.txt", "--out", path, "--quiet", *QUICK)
    assert outcome.code == 0, outcome.output
    return path
