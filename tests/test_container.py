"""The text of the Dockerfile: what it copies makes the wheel, and what it runs exists. No image is built here."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest
import typer.main

from ranksieve.cli.app import app

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def stages():
    """The instructions of each stage, pairs of a word and the rest."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    starts = [number for number, (word, _) in enumerate(lines) if word == "FROM"]
    return [lines[start:stop] for start, stop in zip(starts, [*starts[1:], None], strict=True)]


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_what_the_wheel_is_made_of_is_copied(stages, project):
    copied = {path for word, rest in stages[0] if word == "COPY" for path in rest.split()[:-1]}
    build = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {"pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]}
    needed |= {path.split("/")[0] for path in (*build["packages"], *build["force-include"])}
    assert copied == needed and all((ROOT / path).exists() for path in copied)
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert sent == copied


def test_the_wheel_is_installed_with_extras_that_exist(stages, project):
    (installed,) = (rest for word, rest in stages[1] if word == "RUN" and "pip install" in rest)
    assert "from=build" in installed and "/wheels/*.whl" in installed
    (extras,) = re.findall(r"\[([\w,]+)\]", installed)
    assert set(extras.split(",")) <= set(project["project"]["optional-dependencies"])
    (version,) = {re.search(r"python:3\.(\d+)-slim", stage[0][1])[1] for stage in stages}
    assert int(version) >= int(project["project"]["requires-python"].rpartition(".")[2])


def test_kernels_are_compiled_by_the_user_who_runs_into_the_folder_they_are_read_from(stages):
    words = [word for word, _ in stages[1]]
    places = {rest: number for number, (word, rest) in enumerate(stages[1]) if word in ("ENV", "USER", "RUN")}
    warm_up = places["ranksieve warm-up --quiet"]
    assert places["ranksieve"] < warm_up and places["NUMBA_CACHE_DIR=/var/cache/ranksieve"] < warm_up
    assert words.count("USER") == 1 and words.index("ENTRYPOINT") > warm_up
    assert any("--owner ranksieve /var/cache/ranksieve" in rest for rest in places)


def test_the_commands_exist():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    known = typer.main.get_command(app).commands
    named = [*re.findall(r"RUN ranksieve (.*)", text), *re.findall(r"# docker run .* ranksieve (.*)", text)]
    assert len(named) == 2
    for command in named:
        name, *words = shlex.split(command)
        flags = {flag for one in known[name].params for flag in one.opts}
        assert {word for word in words if word.startswith("--")} <= flags
