"""The examples run, and are short."""

from __future__ import annotations

import re
import runpy
import sys
import types
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))


class Run:
    """What `wandb.init` returns; a test has no account and no network."""

    def __init__(self):
        self.config, self.logged, self.artifacts = {}, {}, []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def log(self, values, step):
        self.logged[step] = values

    def log_artifact(self, path, type):
        self.artifacts.append((Path(path).read_text(), type))


def without_account(monkeypatch, folder):
    """Weights & Biases, as far as the example uses it."""
    wandb = types.ModuleType("wandb")
    wandb.init = lambda project: Run()
    monkeypatch.setitem(sys.modules, "wandb", wandb)


def in_files(monkeypatch, folder):
    """MLflow, which writes into the folder."""
    pytest.importorskip("mlflow", reason="mlflow is not installed; it is part of the extra 'test'")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (folder / "runs").as_uri())


def check_mlflow(names):
    """Metrics of every tree, parameters and the card are in the store; the model there has the same scores."""
    from mlflow import MlflowClient

    client, model = MlflowClient(), names["model"]
    (run,) = client.search_runs(["0"])
    history = client.get_metric_history(run.info.run_id, "valid/ndcg_at_10")
    assert [one.step for one in history] == list(range(1, len(history) + 1))
    np.testing.assert_allclose([one.value for one in history], model.evals_result_["valid"]["ndcg@10"])
    assert run.data.params["leaves"] == "16"
    assert [one.path for one in client.list_artifacts(run.info.run_id)] == ["card.md"]
    test, table = names["test"], names["table"]
    np.testing.assert_array_equal(names["served"].predict(table), model.predict(test))
    np.testing.assert_array_equal(names["served"].predict(table[list(table)[::-1]]), model.predict(test))


def check_wandb(names):
    run, model = names["run"], names["model"]
    curve = model.evals_result_["valid"]["ndcg@10"]
    assert run.logged == {step: {"valid/ndcg@10": value} for step, value in enumerate(curve, start=1)}
    assert run.config["leaves"] == 16 and run.artifacts == [(Path("model.txt").read_text(), "model")]


PREPARE = {"mlflow_tracking": in_files, "wandb_tracking": without_account}
CHECK = {"mlflow_tracking": check_mlflow, "wandb_tracking": check_wandb}


def test_all_are_there():
    names = {path.stem for path in EXAMPLES}
    assert names == {
        "selgb", "grid_search", "prune_lightgbm", "pipeline", "elasticsearch_export", "adaptation", "mlflow_tracking",
        "wandb_tracking",
    }  # fmt: skip


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_has_less_than_forty_lines(path, tmp_path, monkeypatch, capsys):
    code = path.read_text(encoding="utf-8")
    assert len(code.splitlines()) < 40
    smaller = re.sub(r"two_stage\(20, start=start\) for start in \(0, 20, 40\)",
                     "two_stage(5, start=start) for start in (0, 5, 10)", code)  # fmt: skip
    monkeypatch.chdir(tmp_path)
    if path.stem in PREPARE:
        PREPARE[path.stem](monkeypatch, tmp_path)
    script = tmp_path / path.name
    script.write_text(smaller, encoding="utf-8")
    names = runpy.run_path(str(script))
    assert capsys.readouterr().out
    if path.stem in CHECK:
        CHECK[path.stem](names)
