"""The code of the README runs as it stands."""

import re
from pathlib import Path

import pytest
import sklearn

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=[block.splitlines()[0] for block in BLOCKS])
def test_python_blocks_run(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    smaller = block.replace("two_stage(200,", "two_stage(12,").replace("(0, 200, 400)", "(0, 12, 24)")
    with sklearn.config_context(enable_metadata_routing=False):
        exec(compile(smaller, "README.md", "exec"), {})


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


def test_python_of_the_selections_page_runs():
    page = (ROOT / "docs" / "selections.md").read_text()
    exec(compile("".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), "selections.md", "exec"), {})
    from ranksieve.boosting.registry import SELECTIONS

    SELECTIONS.pop("above-the-mean")
    assert all(f"| `{name}` |" in page for name in SELECTIONS)


def test_python_of_the_pruning_page_runs():
    page = (ROOT / "docs" / "pruning.md").read_text()
    exec(compile("".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), "pruning.md", "exec"), {})
    from ranksieve.pruning.strategies import STRATEGIES

    assert all(f"| `{name}` |" in page for name in STRATEGIES)
