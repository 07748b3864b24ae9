"""The notebooks in examples/ run, one after the other in one kernel, as starting a kernel takes seconds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
NOTEBOOKS = ("train_and_compare", "from_a_corpus", "prune_and_serve")
SMALLER = {
    "two_stage(20, start=start) for start in (0, 20, 40)": "two_stage(6, start=start) for start in (0, 6, 12)",
    '"trees": 60': '"trees": 10',
    "synth.cubic(60), folds=5, trees=30": "synth.cubic(12), folds=3, trees=5",
    "generate_texts(600, 60)": "generate_texts(200, 20)",
    "trees=300": "trees=20",
    "trees=100": "trees=20",
}


def cells(name: str) -> list[dict]:
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def outputs_of(ran: list, name: str) -> list:
    """The outputs of a notebook's code cells, a list for each."""
    return [one["outputs"] for one in ran if one["cell_type"] == "code" and one["metadata"].get("notebook") == name]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The cells of all notebooks with their outputs."""
    reason = "the extra 'test' has nbclient and ipykernel"
    nbclient = pytest.importorskip("nbclient", reason=reason)
    pytest.importorskip("ipykernel", reason=reason)
    from nbformat.v4 import new_code_cell, new_notebook

    all_cells = []
    for name in NOTEBOOKS:
        for one in cells(name):
            if one["cell_type"] == "code":
                code = "".join(one["source"])
                for text, smaller in SMALLER.items():
                    code = code.replace(text, smaller)
                all_cells.append(new_code_cell(code, metadata={"notebook": name}))
        all_cells.append(new_code_cell("%reset -f"))
    notebook = new_notebook(cells=all_cells)
    folder = tmp_path_factory.mktemp("notebooks")
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return notebook.cells


def test_there_are_three_without_outputs():
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(NOTEBOOKS)
    for name in NOTEBOOKS:
        found = cells(name)
        assert found[0]["cell_type"] == "markdown" and found[0]["source"][0].startswith("# ")
        assert not any(one.get("outputs") or one.get("execution_count") for one in found)
        assert max(len(line.rstrip("\n")) for one in found for line in one["source"]) <= 120


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_and_prints_nothing_to_standard_error(name, ran):
    outputs = [one for some in outputs_of(ran, name) for one in some]
    assert outputs and not [one for one in outputs if one.get("name") == "stderr"]


def test_the_sizes_that_the_tests_make_smaller_are_there():
    code = "\n".join("".join(one["source"]) for name in NOTEBOOKS for one in cells(name))
    assert not [text for text in SMALLER if text not in code]


def test_training_shows_progress_and_results_are_tables(ran):
    data, training, picture, result, test, cv, why, card = outputs_of(ran, "train_and_compare")
    assert "<b>Dataset</b>" in data[-1]["data"]["text/html"]
    lines = [one["data"]["text/plain"] for one in training if one["output_type"] == "display_data"]
    assert [line.split(":")[0] for line in lines] == ["lambdamart", "selgb"] and all("10/10" in line for line in lines)
    assert "<b>Forest</b>" in training[-1]["data"]["text/html"]
    assert "image/png" in picture[-1]["data"]
    for shown in (result, test, cv):
        assert "<table>" in shown[-1]["data"]["text/html"]
    assert why[0]["text"].count("\n") == 5
    assert "## Importance" in card[-1]["data"]["text/markdown"]
