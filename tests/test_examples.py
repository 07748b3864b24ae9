"""The examples run, and are short."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))


def test_all_are_there():
    names = {path.stem for path in EXAMPLES}
    assert names == {"selgb", "grid_search", "prune_lightgbm", "pipeline", "elasticsearch_export", "adaptation"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_has_less_than_forty_lines(path, tmp_path, monkeypatch, capsys):
    code = path.read_text(encoding="utf-8")
    assert len(code.splitlines()) < 40
    smaller = re.sub(r"two_stage\(20, start=start\) for start in \(0, 20, 40\)",
                     "two_stage(5, start=start) for start in (0, 5, 10)", code)  # fmt: skip
    monkeypatch.chdir(tmp_path)
    script = tmp_path / path.name
    script.write_text(smaller, encoding="utf-8")
    runpy.run_path(str(script))
    assert capsys.readouterr().out
