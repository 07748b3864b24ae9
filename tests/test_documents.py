"""Every code block of the README and of the pages in docs/ runs, and every command that is named there exists.

The blocks of a page run in their order in one folder:

- `python` blocks share their names;
- lines of `sh` blocks, and the text after `$` in `text` blocks, are commands, run with less data (`smaller`);
- a `toml` block is put into the file that its first line names;
- blocks that a page needs and does not show are within a comment, `<!-- … -->`.

A line that ends in `# needs …` is not run, but its flags are checked, as are those of commands within the text.
`pip`, `make` and `source` are not run either; what they install and make must exist.
"""

from __future__ import annotations

import glob
import importlib
import pkgutil
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import sklearn
import typer.main
from typer.testing import CliRunner

from ranksieve.cli.app import MODULES, app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LANGUAGES = {"", "python", "sh", "text", "toml"}
MOST = {"--queries": 8, "--trees": 5, "--grow": 4, "--local-workers": 1}


def smaller(code: str) -> str:
    """The same on less data."""
    for flag, most in MOST.items():
        code = re.sub(rf"{flag}([ =])(\d+)", lambda found: f"{flag}{found[1]}{min(int(found[2]), most)}", code)  # noqa: B023
    code = re.sub(r"\btrees( ?= ?)(\d+)", lambda found: f"trees{found[1]}{min(int(found[2]), 10)}", code)
    code = re.sub(r"two_stage\((\d+)", lambda found: f"two_stage({min(int(found[1]), 12)}", code)
    code = code.replace("Client(n_workers=2, ", "Client(n_workers=2, processes=False, ")
    if code.startswith("ranksieve tune"):
        code += " --trials 2 --trees 5"
    if code.startswith(("ranksieve train", "ranksieve clicks train")) and "--trees" not in code:
        code += " --trees 5"
    if code.startswith("ranksieve experiment"):
        code = code.replace(" --quick", "").replace(" --jobs 4", "") + " --quick --jobs 1"
    return code


def commands(language: str, code: str) -> list[str]:
    if language == "sh":
        return code.splitlines()
    return [line[2:] for line in code.splitlines() if line.startswith("$ ")]


def check_flags(command: str) -> None:
    """Fail where a command or a flag of it does not exist."""
    words = shlex.split(command, comments=True)[1:]
    known = typer.main.get_command(app)
    if words and not words[0].startswith("-"):
        known = known.commands[words.pop(0)]
    if hasattr(known, "commands") and words and not words[0].startswith("-"):
        known = known.commands[words.pop(0)]
    flags = {flag for param in known.params for flag in (*param.opts, *param.secondary_opts)} | {"--help", "-h"}
    assert {word for word in words if re.match("-+[a-z]", word)} <= flags, command


def run(command: str) -> None:
    words = shlex.split(command, comments=True)
    if words[0] == "ranksieve" and "# needs " in command:
        check_flags(command)
    elif words[0] == "ranksieve":
        words = shlex.split(smaller(command.partition(" #")[0].rstrip()))
        found = [file for word in words[1:] for file in sorted(glob.glob(word)) or [word]]
        result = CliRunner().invoke(app, found)
        assert result.exit_code == 0, (command, result.output, result.exception)
    elif words[0] == "make":
        assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text()
    elif words[0] != "pip":
        subprocess.run(["bash", "-ec", command], check=True)


def put(code: str) -> None:
    """Keep a TOML block in the file its first line names."""
    with open(code.splitlines()[0].removeprefix("# "), "a") as file:
        file.write(code)


@pytest.mark.usefixtures("nothing_registered")
@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_the_blocks_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names: dict[str, object] = {"__name__": "__main__"}
    with sklearn.config_context(enable_metadata_routing=False):
        for language, code in BLOCK.findall(page.read_text()):
            assert language in LANGUAGES
            if language == "python":
                exec(compile(smaller(code), page.name, "exec"), names)
            elif language == "toml":
                put(code)
            else:
                for command in commands(language, code):
                    run(command)


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_commands_within_the_text_exist(page):
    text = BLOCK.sub("", page.read_text())
    for command in re.findall(r"`(ranksieve [^`]*)`", text.replace("\n", " ")):
        check_flags(command.replace("…", ""))


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_tables_of_rules_are_those_of_the_registries(page, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    written = importlib.import_module("tables").written(page)
    assert written == page.read_text(encoding="utf-8"), "run python docs/tables.py"


def test_an_unknown_table_is_named_with_its_page(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    page = tmp_path / "page.md"
    for marker in ("selektion", "parameters trees leafs"):
        page.write_text(f"<!-- table: {marker} -->\n<!-- end -->\n")
        with pytest.raises(ValueError, match=f"page.md: the marker 'table: {marker}' has the unknown name"):
            importlib.import_module("tables").written(page)


def test_the_pages_have_every_command():
    """Neither is a command removed by accident, nor one added that no page shows."""
    shown = set()
    for text in [page.read_text(encoding="utf-8") for page in PAGES]:
        code = "\n".join(code for _, code in BLOCK.findall(text))
        shown.update(re.findall(r"^(?:\$ )?ranksieve ([a-z][a-z-]*)", code, re.MULTILINE))
        shown.update(re.findall(r"`ranksieve ([a-z][a-z-]*)", BLOCK.sub("", text)))
    assert shown == set(MODULES)


def test_the_code_of_algorithms_exists():
    named = re.findall(
        r"`((?:boosting|data|kernels|pruning|rankers)[.][\w.]+)`", (ROOT / "docs/algorithms.md").read_text()
    )
    assert len(named) > 20
    for name in named:
        pkgutil.resolve_name(f"ranksieve.{name}")


def test_lowest_versions_are_those_of_the_project():
    project = (ROOT / "pyproject.toml").read_text()
    shown = (ROOT / "docs" / "versions.md").read_text()
    tables = re.search(r"^dependencies = \[.*?^test = ", project, re.DOTALL | re.MULTILINE)
    lowest = re.findall(r'"([\w-]+)>=([\d.]+)', tables[0])
    assert len(lowest) >= 16
    for name, version in lowest:
        assert re.search(rf"\b{name} {re.escape(version)}[,|; (]", shown.replace(" |", "|")), name


def test_the_site_is_searchable_from_the_disk():
    site = (ROOT / "mkdocs.yml").read_text()
    assert "\n  - offline" in site and "use_directory_urls: false" in site
    (shim,) = re.findall(r"polyfills: \[(.*?)\]", site)
    assert "iframe-worker" in shim  # the plugin would load its own from the network
    assert (ROOT / "docs" / shim).is_file()


def test_generated_results_have_scripts_and_figures():
    assert not (ROOT / "docs" / "results").exists()
    results = ROOT / "benchmarks" / "results"
    scripts = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    for path in results.glob("*.json"):
        assert any(path.stem == name or path.stem.startswith(f"{name}_") for name in scripts), path.name
    for page in (results / "experiments").glob("*.md"):
        figures = re.findall(r"!\[.*?\]\((.*?)\)", page.read_text(encoding="utf-8"))
        assert figures and all((page.parent / figure).is_file() for figure in figures)


def test_the_tests_that_pages_name_exist():
    named = {name for page in PAGES for name in re.findall(r"`(tests/[\w/]+(?:\.py)?)`", page.read_text())}
    assert len(named) > 15
    assert not [name for name in named if not (ROOT / name).exists()]


def test_the_tests_that_the_promises_name_exist():
    text = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/.]+|test_\w+\.py)`", text)
    known = {path.name for path in (ROOT / "tests").rglob("*.py")}
    assert len(named) > 30
    for name in named:
        assert (ROOT / name).exists() if "/" in name else name in known, name
