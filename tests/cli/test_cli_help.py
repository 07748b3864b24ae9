"""The help texts of the commands."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated, get_args

import pytest
import typer.main

import ranksieve
from ranksieve.cli.app import MODULES, app
from ranksieve.cli.command import option, takes_options
from ranksieve.cli.options import SHORT
from ranksieve.kernels import numba_cache
from ranksieve.parameter_table import algorithms, flag, table
from ranksieve.progress import waiting
from ranksieve.text_formats import duration, file_size


def test_version(run):
    outcome = run("--version")
    assert (outcome.code, outcome.output) == (0, f"ranksieve {ranksieve.__version__}\n")


def test_every_command_has_help(run):
    text = run("--help").output
    for command in MODULES:
        assert re.search(rf"\b{command}\b", text)
        outcome = run(command, "--help")
        assert outcome.code == 0
        assert "Usage" in outcome.output


def test_flags_are_one_vocabulary():
    """What is written goes to --out, a metric has one short name, and a flag is of one kind in all commands."""
    kinds: dict[str, set[str]] = {}
    found = typer.main.get_command(app).commands.values()
    for command in [one for some in found for one in (some.commands.values() if hasattr(some, "commands") else [some])]:
        types = inspect.signature(command.callback, eval_str=True).parameters
        for param in command.params:
            if param.opts[0].startswith("-"):
                kind = re.sub(r" \| None|list\[|\]|<class '|'>", "", str(get_args(types[param.name].annotation)[0]))
                kinds.setdefault(param.opts[0], set()).add(" ".join((kind, *param.opts[1:])))
    trained = table()
    for flags in kinds:
        name = flags.removeprefix("--").replace("-", "_")
        if name in trained and name not in ("base", "rate", "strategy"):
            kinds[flags].add(" ".join((trained[name].type.__name__, *SHORT.get(name, ()))))
    assert kinds["--out"] == {"pathlib.Path -o"} and kinds["--metric"] == {"str -m"}
    several = {flag: those for flag, those in kinds.items() if len(those) > 1}
    assert set(several) <= {"--tune", "--model"}, several  # trials or judgements; a model file or the first stage's
    assert len(kinds) > 80


def test_help_is_whole_in_80_columns(run, monkeypatch):
    for columns in (80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        for command in ((), *((name,) for name in MODULES)):
            text = run(*command, "--help").output
            assert max(map(len, text.splitlines())) <= columns and "───" not in text, command
            narrow = [line for line in text.splitlines() if line.startswith(" " * 40)]
            assert not narrow, narrow  # the column of texts is at least half as wide as the screen


def test_train_has_a_flag_for_every_parameter(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERMINAL_WIDTH", "200")
    text = " ".join(run("train", "--help").output.split())
    for item in table().values():
        entry = text[text.index(f" {flag(item.name)} ") :]
        assert item.help[:30] in entry[:90]
        if item.type is not bool:
            default = " ".join(map(str, item.default)) if isinstance(item.default, tuple) else item.default
            assert f"[default: {default}]" in entry[:400]


@pytest.mark.parametrize("command", ["train", "tune", "cv"])
def test_help_says_in_a_line_what_each_algorithm_is(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "200")
    lines = run(command, "--help").output.partition("Algorithms:")[2].splitlines()
    entries = [line for line in lines if line.startswith("  ") and not line.startswith("   ")]
    assert [line.split()[0] for line in entries] == list(algorithms())
    assert all(len(line.split()) > 3 for line in entries)


def test_wrong_usage_is_exit_code_2(run):
    assert run("train").code == 2
    assert run("nonsense").code == 2
    assert run("train", "x", "--out", "y", "--learn-rate", "1").code == 2


def test_durations_and_sizes_have_readable_units():
    assert [duration(s) for s in (0.5, 12.3, 185, 7800)] == ["0.50 s", "12 s", "3 min 05 s", "2 h 10 min"]
    assert [file_size(n) for n in (512, 3_400_000, 2 * 10**13)] == ["512 B", "3.4 MB", "20 TB"]


def test_the_shell_completes_commands(run, monkeypatch):
    monkeypatch.setenv("_RANKSIEVE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "ranksieve tr")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert run().output.split() == ["train"]


def test_compiling_is_reported_where_nothing_was_compiled_before(monkeypatch):
    compiled: set[str] = set()
    monkeypatch.setattr(numba_cache, "is_compiled", compiled.__contains__)
    assert waiting() == "reading the data; compiling kernels (first use only)…"
    compiled.add("growing")
    assert waiting("6 cells") == "6 cells…"
    assert "compiling" in waiting(kernels="retrieving")
    assert waiting(kernels="") == "reading the data…"


def test_help_shows_no_python_types(run):
    for command in MODULES:
        text = run(command, "--help").output
        assert not re.search(r"<\w|list\[|\{[A-Z]|range\]", text), text
        assert "\N{NO-BREAK SPACE}" not in text and "\N{NON-BREAKING HYPHEN}" not in text


def test_help_names_only_choices_that_the_command_has(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    pruning, training = (" ".join(run(name, "--help").output.split()) for name in ("prune", "train"))
    assert "How trees are chosen for removal;" in pruning and "(algo " not in pruning
    assert "(strategy random)" in pruning and "(algo xcleaver)" in training


def test_usage_names_arguments_and_required_options(run):
    usage = " ".join(run("prune", "--help").output.split())
    assert "prune MODEL --out FILE [OPTIONS]" in usage


def test_help_imports_no_command_and_neither_numpy_nor_rich():
    code = "import sys; from ranksieve.cli.app import app; app(['--help'], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = done.stdout.splitlines()[-1].split()
    assert "ranksieve.cli.app" in modules and "train" in done.stdout
    assert not {"numpy", "numba", "rich.console", "ranksieve.cli.train"} & set(modules)


def test_help_of_commands_imports_no_library_of_training():
    code = (
        "import sys; from ranksieve.cli.app import MODULES, app\n"
        "for name in MODULES: app([name, '--help'], standalone_mode=False)\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = done.stdout.splitlines()[-1].split()
    assert "ranksieve.rankers.algorithms" in modules
    assert not {"numba", "scipy", "sklearn", "lightgbm", "pyarrow", "pandas", "dask"} & set(modules)


@dataclass(frozen=True, kw_only=True)
class Sizes:
    width: Annotated[int, typer.Option()]
    height: int = option(3, "How high.", "--height", "-y", min=1)


def test_fields_of_a_dataclass_are_options_in_its_place() -> None:
    seen = []

    @takes_options
    def draw(name: str, sizes: Sizes, scale: float = 1.0) -> None:
        """Draw."""
        seen.append((name, sizes, scale))

    parameters = inspect.signature(draw).parameters
    assert list(parameters) == ["name", "width", "height", "scale"]
    assert parameters["width"].default is inspect.Parameter.empty and parameters["height"].default == 3
    kind, about = get_args(parameters["height"].annotation)
    assert (kind, about.help, about.min) == (int, "How high.", 1)
    draw(name="a", width=2, height=4, scale=0.5)
    assert seen == [("a", Sizes(width=2, height=4), 0.5)]
    assert draw.__doc__ == "Draw."


PARAMETERS = [
    "Algorithm and trees", "Selection", "Objective", "Learning rate", "Pruning", "Metric and early stopping",
    "Sampling and bagging", "Features, constraints and positions", "Categorical features", "Other algorithms",
    "Threads, memory and devices",
]  # fmt: skip


@pytest.mark.parametrize(("command", "own"), [("train", ["Checkpoints", "Cluster"]), ("tune", []), ("cv", [])])
def test_help_shows_the_groups_of_parameters_in_their_order(run, monkeypatch, command, own):
    monkeypatch.setenv("COLUMNS", "100")
    panels: dict[str, list[str]] = {}
    for line in run(command, "--help").output.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            flags = panels.setdefault(line[:-1], [])
        elif found := re.match(r"  (?:-\w, )?(--[\w-]+)", line):
            flags.append(found[1])
    assert list(panels) == ["Arguments", "Options", *PARAMETERS, *own, "Columns of Parquet and CSV", "Algorithms"]
    assert max(map(len, panels.values())) <= 12, panels
    for item in table().values():
        assert flag(item.name) in panels[item.group]
