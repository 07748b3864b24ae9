"""The code of the README and of the pages in docs/ runs as it stands."""

import re
from pathlib import Path

import pytest
import sklearn

from ranksieve.boosting.registry import SELECTIONS
from ranksieve.pruning.strategies import STRATEGIES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PAGES = sorted(page for page in (ROOT / "docs").glob("*.md") if "```python" in page.read_text())
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=[block.splitlines()[0] for block in BLOCKS])
def test_python_blocks_run(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    smaller = block.replace("two_stage(200,", "two_stage(12,").replace("(0, 200, 400)", "(0, 12, 24)")
    with sklearn.config_context(enable_metadata_routing=False):
        exec(compile(smaller, "README.md", "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_python_blocks_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    known = dict(SELECTIONS)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, page.name, "exec"), names)
    for name in SELECTIONS.keys() - known:  # a page shows how to register one
        del SELECTIONS[name]


def test_commands_of_the_readme_run(tmp_path, monkeypatch, capsys):
    from ranksieve.cli import main

    monkeypatch.chdir(tmp_path)
    shell = "".join(re.findall(r"```sh\n(.*?)```", README, re.DOTALL))
    commands = re.findall(r"^ranksieve (.*)$", shell, re.MULTILINE)
    assert len(commands) >= 7
    for command in commands:
        smaller = command.replace("--queries 200", "--queries 8").replace("--queries 100", "--queries 4")
        smaller = smaller.replace("--trees 200", "--trees 5").replace("--trees 50", "--trees 5")
        monkeypatch.setattr("sys.argv", ["ranksieve", *smaller.split()])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 0, (command, capsys.readouterr())


def test_pages_name_what_there_is():
    for page, names in (("selections.md", SELECTIONS), ("pruning.md", STRATEGIES)):
        text = (ROOT / "docs" / page).read_text()
        assert all(f"| `{name}` |" in text for name in names)
