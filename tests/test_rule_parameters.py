"""A rule carries its parameters: one class, registered once, is known to every interface."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import ranksieve as rs
from ranksieve.cli.app import app
from ranksieve.errors import ParameterError
from ranksieve.rules import integer
from samples import small_dataset

pytestmark = pytest.mark.usefixtures("nothing_registered")
FIELD = integer(10, "Documents from the top of each list to train on", 1)


@dataclass(frozen=True)
class FirstDocuments:
    """All positives and the first documents of each list."""

    first_docs: int = FIELD

    def __call__(self, view):
        rank = np.arange(view.lists.n_docs) - np.repeat(view.lists.offsets[:-1], view.lists.sizes)
        return np.flatnonzero((view.lists.labels > 0) | (rank < self.first_docs))


@dataclass(frozen=True)
class Huber:
    """Residuals of the labels, cut at a limit."""

    limit: float = 0.5

    def __call__(self, view):
        return np.clip(view.labels - view.scores, -self.limit, self.limit), np.ones(len(view.labels))


@pytest.fixture
def registered():
    rs.register_selection("first-documents", FirstDocuments)
    rs.register_objective("huber", Huber)


def test_a_registered_rule_is_known_to_every_interface(registered, tmp_path, monkeypatch):
    data = small_dataset()
    rs.io.write_letor(data, tmp_path / "train.txt")
    (tmp_path / "params.toml").write_text("selection = 'first-documents'\nfirst-docs = 3\nobjective = 'huber'\n")
    expected = rs.train(
        data, selection="first-documents", first_docs=3, objective="huber", limit=0.8, trees=3, leaves=4
    )
    assert expected.info["params"]["first_docs"] == 3 and expected.info["params"]["limit"] == 0.8

    runner = CliRunner(env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"})
    shown = " ".join(runner.invoke(app, ["train", "--help"]).output.split())
    assert (
        "--first-docs INT Documents from the top of each list to train on; a whole number from 1. [default: 10]"
        in shown
    )
    assert "--limit FLOAT" in shown and "first-documents" in shown and "huber" in shown
    out = tmp_path / "model.txt"
    command = ["train", tmp_path / "train.txt", "--params", tmp_path / "params.toml", "--limit", 0.8, "--trees", 3,
               "--leaves", 4, "--missing", "nan", "--out", out]  # fmt: skip
    done = runner.invoke(app, list(map(str, command)))
    assert done.exit_code == 0, done.output
    np.testing.assert_array_equal(rs.load(out).leaf_values, expected.leaf_values)

    ranker = rs.Ranker(selection="first-documents", first_docs=3, objective="huber", limit=0.8, trees=3, leaves=4)
    assert ranker.get_params()["first_docs"] == 3 and rs.Ranker().get_params()["first_docs"] == 10
    ranker.fit(data.features, data.labels, group=data.lists.sizes)
    np.testing.assert_array_equal(ranker.model_.leaf_values, expected.leaf_values)

    monkeypatch.syspath_prepend(Path(__file__).parent.parent / "docs")
    generate = pytest.importorskip("generate", reason="needs the docs extra")
    assert "| `first_docs` | `10` | Documents from the top of each list to train on |" in generate.parameters()


def test_instances_classes_in_files_and_functions_get_the_same_treatment(tmp_path, registered):
    data, options = small_dataset(), {"trees": 3, "leaves": 4}
    by_name = rs.train(data, selection="first-documents", first_docs=3, **options)
    (tmp_path / "own.py").write_text(
        "from dataclasses import dataclass\nimport numpy as np\n\n\n@dataclass(frozen=True)\nclass First:\n"
        "    own_docs: int = 10\n\n    def __call__(self, view):\n"
        "        rank = np.arange(view.lists.n_docs) - np.repeat(view.lists.offsets[:-1], view.lists.sizes)\n"
        "        return np.flatnonzero((view.lists.labels > 0) | (rank < self.own_docs))\n"
    )
    models = [
        rs.train(data, selection=FirstDocuments(first_docs=3), **options),
        rs.train(data, selection=FirstDocuments, first_docs=3, **options),
        rs.train(data, selection=f"{tmp_path}/own.py:First", own_docs=3, **options),
        rs.train(data, selection=FirstDocuments(first_docs=3).__call__, **options),
    ]
    for model in models:
        np.testing.assert_array_equal(model.leaf_values, by_name.leaf_values)
    with pytest.raises(ParameterError, match="unknown parameter 'own_dogs'"):
        rs.train(data, selection=f"{tmp_path}/own.py:First", own_dogs=3, **options)
    with pytest.raises(ParameterError, match="first_docs is 0; expected a whole number from 1"):
        rs.train(data, selection="first-documents", first_docs=0, **options)


def test_values_of_plain_fields_are_checked_by_their_type(registered):
    with pytest.raises(ParameterError, match="limit is 'high'; expected a number"):
        rs.train(small_dataset(), objective="huber", limit="high")


def test_rules_that_contradict_others_are_refused():
    @dataclass(frozen=True)
    class OtherDefault:
        negatives: float = 0.5

        def __call__(self, view):
            return None

    @dataclass(frozen=True)
    class NoDefault:
        depth: int

        def __call__(self, view):
            return None

    with pytest.raises(ParameterError, match=r"has negatives=0.5 and 'top.*' has 0.01"):
        rs.register_selection("other", OtherDefault)
    with pytest.raises(ParameterError, match=r"'other' has a parameter 'negatives' that exists with default 0\.01"):
        rs.register_objective("other", OtherDefault)
    with pytest.raises(ParameterError, match="no default for its field 'depth'"):
        rs.register_selection("none", NoDefault)
    assert "other" not in rs.params.table()["objective"].names


def test_reading_parameters_runs_no_code_of_a_file(tmp_path):
    (tmp_path / "rule.py").write_text("raise SystemExit('it ran')\n")
    params = rs.params.Params(selection=f"{tmp_path}/rule.py:rule", trees=3)
    assert "every" in params.used and params.as_dict()["selection"].endswith("rule.py:rule")
    assert "rule" not in sys.modules
