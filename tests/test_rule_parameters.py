"""A rule carries its parameters: one class, registered once, is known to every interface."""

from __future__ import annotations

import importlib
import inspect
import pickle
import subprocess
import sys
import warnings
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import ranksieve as rs
from ranksieve.boosting.selections.top import TopNegatives
from ranksieve.cli.app import app
from ranksieve.errors import ParameterError, UnusedParameterWarning
from ranksieve.parameter_table import canonical, table
from ranksieve.params import Params
from ranksieve.pruning.strategies import find_strategy
from ranksieve.rules import OBJECTIVES, SELECTIONS, SLOTS, STRATEGIES, integer, parameter, reserved_names
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


@dataclass(frozen=True)
class Near:
    """A rule with a parameter that the table has with another default."""

    margin: float = 3.0

    def __call__(self, view):
        return None


@dataclass(frozen=True)
class Noted:
    """A rule with a field that no model file can hold."""

    weights: Any = None

    def __call__(self, view):
        return None


OWN_FILE = """
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sel:
    extra: int = 2
    margin: float = 3.0

    def __call__(self, view):
        return None


def function(view):
    return None
"""


@pytest.fixture
def own_file(tmp_path):
    (tmp_path / "own.py").write_text(OWN_FILE)
    return f"{tmp_path}/own.py:Sel"


@pytest.fixture
def registered():
    rs.params.register_selection("first-documents", FirstDocuments)
    rs.params.register_objective("huber", Huber)


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
        "--first-docs INT Documents from the top of each list to train on (selection first-documents); an integer "
        "from 1. [default: 10]" in shown
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
    tables = importlib.import_module("tables")
    about = "Documents from the top of each list to train on (selection first-documents)"
    assert f"| `first_docs` | `10` | {about} |" in tables.parameters(table())
    assert "| `first-documents` | All positives and the first documents of each list. | `first_docs` |" in tables.rules(
        SELECTIONS
    )


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
    with pytest.raises(ParameterError, match="first_docs is 0; expected an integer from 1"):
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

    with pytest.raises(ParameterError, match=r"has negatives=0.5 and '.*' has 0.05"):
        rs.params.register_selection("other", OtherDefault)
    with pytest.raises(ParameterError, match=r"'other' has a parameter 'negatives' that exists with default 0\.05"):
        rs.params.register_objective("other", OtherDefault)
    with pytest.raises(ParameterError, match=r"no default for its field 'depth'"):
        rs.params.register_selection("none", NoDefault)
    assert "other" not in table()["objective"].names


def test_reading_parameters_runs_no_code_of_a_file(tmp_path):
    (tmp_path / "rule.py").write_text("raise SystemExit('it ran')\n")
    params = rs.params.Params(selection=f"{tmp_path}/rule.py:rule", trees=3)
    assert "every" in params.used and params.as_dict()["selection"].endswith("rule.py:rule")
    assert "rule" not in sys.modules


def test_a_rule_keeps_its_own_defaults(own_file):
    for rule in (Near, Near(), own_file):
        params = Params(selection=rule)
        assert params.selection_rule.margin == 3.0
        assert params.replace(trees=2).selection_rule.margin == 3.0
        assert params.load_files().as_dict()["margin"] == 3.0
    assert Params(selection=Near, margin=2).selection_rule.margin == 2.0
    assert Params(selection=own_file, margin=2).as_dict()["margin"] == 2.0
    assert rs.train(small_dataset(), selection=own_file, trees=2, leaves=4).info["params"]["margin"] == 3.0


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (TopNegatives(every=0), "every is 0; expected an integer from 1"),
        (TopNegatives(negatives=7.0), r"negatives is 7.0; expected a number in \(0, 1\]"),
        (Near("far"), "margin is 'far'; expected a number"),
    ],
)
def test_fields_of_passed_rules_are_checked(rule, message):
    with pytest.raises(ParameterError, match=message):
        rs.train(small_dataset(), selection=rule)


def test_fields_of_passed_rules_get_their_types():
    assert type(Params(selection=TopNegatives(negatives=1)).selection_rule.negatives) is float
    assert Params(step="optimal", step_range=[0, 5]).step_range == (0.0, 5.0)
    assert all(type(one) is float for one in Params(step="optimal", step_range=[0, 5]).step_rule.step_range)
    for wrong in ([1], [1, "2"], 3, "12"):
        with pytest.raises(ParameterError, match=r"step_range is .*; expected two numbers"):
            Params(step="optimal", step_range=wrong)


def test_parameters_of_strategies_are_checked():
    for strategy in ("random", STRATEGIES["random"]):
        with pytest.raises(ParameterError, match="draws is -5; expected an integer from 1"):
            find_strategy(strategy, draws=-5)
    with pytest.raises(ParameterError, match="draws is -5"):
        find_strategy(STRATEGIES["random"](draws=-5))
    with pytest.raises(ParameterError, match="strategy is 'rndom'; did you mean 'random'"):
        find_strategy("rndom")


def test_a_file_is_imported_once_until_it_changes(own_file):
    params = Params(selection=own_file, extra=4)
    assert params.selection_rule.extra == 4
    assert type(params.selection_rule) is type(params.replace(trees=2).selection_rule)
    Path(own_file.rpartition(":")[0]).write_text(OWN_FILE.replace("extra: int = 2", "extra: int = 20"))
    assert Params(selection=own_file).selection_rule.extra == 20


@pytest.mark.parametrize("is_lost", [False, True])
def test_parameters_with_a_rule_of_a_file_can_be_pickled(own_file, is_lost):
    params = Params(selection=own_file, extra=4, margin=2.0)
    assert params.selection_rule.extra == 4
    state = pickle.dumps(params)
    if is_lost:  # as on another machine
        Path(own_file.rpartition(":")[0]).unlink()
    code = "import pickle, sys; p = pickle.load(sys.stdin.buffer); print(p.selection_rule, p.as_dict()['extra'])"
    done = subprocess.run([sys.executable, "-c", code], input=state, capture_output=True, check=True)
    assert done.stdout.decode().split() == ["Sel(extra=4,", "margin=2.0)", "4"]


def test_parameters_with_passed_rules_can_be_pickled(registered):
    for rule in (Near(margin=4.0), FirstDocuments, "first-documents"):
        params = Params(selection=rule)
        back = pickle.loads(pickle.dumps(params))
        assert back == params and back.selection_rule == params.selection_rule


def run_cli(*command):
    return CliRunner(env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"}).invoke(app, list(map(str, command)))


def test_a_rule_of_a_file_has_keys_and_flags(own_file, tmp_path):
    rs.io.write_letor(small_dataset(), tmp_path / "train.txt")
    toml, out = tmp_path / "params.toml", tmp_path / "model.txt"
    toml.write_text(f"extra = 4\nselection = '{own_file}'\ntrees = 2\nleaves = 4\n")
    start = ["train", tmp_path / "train.txt", "--out", out]
    done = run_cli(*start, "--params", toml)
    assert done.exit_code == 0, done.output
    assert rs.load(out).info["params"]["extra"] == 4 and rs.load(out).info["params"]["margin"] == 3.0
    for words in (["--selection", own_file], [f"--selection={own_file}"]):
        done = run_cli(*start, "--trees", 2, "--leaves", 4, *words, "--extra", 5)
        assert done.exit_code == 0, done.output
        assert rs.load(out).info["params"]["extra"] == 5
    shown = " ".join(run_cli("train", "--selection", own_file, "--help").output.split())
    assert "--extra INT" in shown and "[default: 2]" in shown
    assert "--extra" not in run_cli("train", "--help").output
    done = run_cli(*start, "--selection", own_file, "--rest", 0.2)
    assert done.exit_code == 2 and "--rest is not used by --algo selgb with --selection" in done.output


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("trees = 3\nextra = 'x'\nselection = 'OWN'\n", 2, "expected an integer"),
        ("trees = 3\nlerning-rate = 0.1\n", 2, "unknown parameter 'lerning_rate'; did you mean 'learning_rate'"),
        ("leaves = 3\ntrees = 0\n", 2, "expected an integer from 1"),
        ("trees = 3\nleaves = 3\nn-estimators = 4\n", 3, "is given twice, as trees and as n-estimators; give"),
        ("\n[params]\ntrees = 3\n", 2, "is a table [params]; put the parameters at the top level of the file"),
    ],
)
def test_errors_in_a_file_of_parameters_name_the_line(own_file, tmp_path, text, line, message):
    (tmp_path / "params.toml").write_text(text.replace("OWN", own_file))
    done = run_cli("train", tmp_path / "none.txt", "--out", tmp_path / "out", "--params", tmp_path / "params.toml")
    assert done.exit_code == 2
    assert f"params.toml:{line}: " in done.output and message in done.output


def test_a_flag_wins_over_a_key_under_another_name(tmp_path):
    rs.io.write_letor(small_dataset(), tmp_path / "train.txt")
    (tmp_path / "params.toml").write_text("n-estimators = 9\nleaves = 4\n")
    out = tmp_path / "model.txt"
    done = run_cli("train", tmp_path / "train.txt", "--out", out, "--params", tmp_path / "params.toml", "--trees", 2)
    assert done.exit_code == 0, done.output
    assert rs.load(out).n_trees == 2


def test_a_registration_that_fails_changes_nothing():
    @dataclass(frozen=True)
    class Conflicting:
        negatives: float = 0.5

        def __call__(self, *arguments):
            return None

    known = {name: one.default for name, one in table().items()}
    with pytest.raises(ParameterError, match=r"'other' has a parameter 'negatives' that exists with default"):
        rs.pruning.register_strategy("other", Conflicting)
    assert "other" not in STRATEGIES and {name: one.default for name, one in table().items()} == known


def test_a_name_that_is_taken_needs_replace():
    for register, name in (
        (rs.params.register_selection, "top"),
        (rs.params.register_objective, "ndcg"),
        (rs.pruning.register_strategy, "last"),
    ):
        with pytest.raises(ParameterError, match=f"there is a .* '{name}' already; .*replace=True"):
            register(name, len)
    rs.params.register_selection("top", len, replace=True)
    assert SELECTIONS["top"] is len


def rule_with(name, default=1):
    return dataclass(frozen=True)(
        type("Rule", (), {name: default, "__annotations__": {name: int}, "__call__": lambda self, view: None})
    )


@pytest.mark.parametrize("name", ["fit", "verbose", "n_jobs", "missing", "used", "model_", "_hidden"])
def test_fields_with_names_of_other_meaning_are_refused(name):
    rule = rule_with(name)
    with pytest.raises(ParameterError, match=f"field '{name}', a name that has another meaning"):
        rs.params.register_selection("rule", rule)
    for passed in (rule, rule()):
        with pytest.raises(ParameterError, match=f"field '{name}', a name that has another meaning"):
            Params(selection=passed)


def test_no_name_has_two_meanings():
    def keywords(*functions):
        given = (one for function in functions for one in inspect.signature(function).parameters.values())
        return {one.name for one in given if one.kind is one.KEYWORD_ONLY and not one.name.startswith("eval_")}

    names = keywords(rs.train, rs.cluster.train, rs.Ranker.fit) - {"group", "sample_weight"}
    names |= {name for kind in (rs.Ranker, Params) for name in dir(kind) if name.strip("_") == name}
    for registry in SLOTS:
        assert names - set(table()) <= reserved_names(registry.kind)
    assert keywords(rs.prune) - set(table()) <= reserved_names("strategy")


@pytest.mark.parametrize("name", ["window", "rounds", "patience", "shrink", "n_features", "client", "ranker"])
def test_names_that_have_no_other_meaning_are_free(name):
    rule = rule_with(name)
    rs.params.register_selection("rule", rule)
    assert getattr(Params(selection="rule", **{name: 7}), name) == 7
    assert getattr(Params(selection=rule(3)).selection_rule, name) == 3
    if name in ("window", "rounds", "patience", "shrink"):
        with pytest.raises(ParameterError, match=f"field '{name}', a name that has another meaning"):
            rs.pruning.register_strategy("other", rule)


def test_a_rule_of_a_user_imports_no_command_line():
    code = """
import sys
from dataclasses import dataclass
import ranksieve as rs

@dataclass(frozen=True)
class Rule:
    n_first: int = 1
    def __call__(self, view): ...

rs.params.register_selection("rule", Rule)
rs.pruning.register_strategy("rule", Rule)
assert not [name for name in sys.modules if name.split(".")[0] == "typer" or name.startswith("ranksieve.cli")]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_that_are_no_arguments_are_free():
    assert not {"options", "context", "misplaced"} & reserved_names("strategy")


def test_a_subclass_of_a_built_in_objective_may_write_to_its_scores():
    from ranksieve.boosting.objectives.squared import SquaredError

    @dataclass(frozen=True)
    class Halved(SquaredError):
        def __call__(self, view):
            view.scores[:] *= 0.5
            return super().__call__(view)

    @dataclass(frozen=True)
    class AlsoHalved(SquaredError):
        def __call__(self, view):
            return view.labels - 0.5 * view.scores, np.ones(len(view.labels))

    data = small_dataset()
    written, plain = (
        rs.train(data, algo="mart", objective=rule, trees=4, early_stopping=0).predict(data)
        for rule in (Halved(), AlsoHalved())
    )
    np.testing.assert_array_equal(written, plain)
    assert OBJECTIVES.is_own(SquaredError())
    assert not OBJECTIVES.is_own(Halved())


def test_a_registered_instance_that_cannot_be_hashed_is_described():
    @dataclass
    class Mutable:
        margin: float = 1.5

        def __call__(self, view):
            return None

    rs.params.register_selection("mutable", Mutable())
    assert Params(margin=2.0).unused_message()[-1] == " adaptive, progress"
    assert "(selection adaptive, progress)" in inspect.getdoc(rs.Ranker)  # not "mutable": its margin is set


def test_docstrings_list_every_parameter_also_of_rules_registered_later():
    for documented in (rs.Ranker, Params, rs.train):
        lines = inspect.getdoc(documented).splitlines()
        assert [name for name in table() if not any(line.startswith(f"{name} : ") for line in lines)] == []
    rs.params.register_selection("first", FirstDocuments)
    assert "first_docs : int, default 10" in inspect.getdoc(rs.Ranker)


def test_names_of_other_parameters_are_refused_in_passed_rules():
    for name in ("leaves", "selection"):
        with pytest.raises(ParameterError, match=f"field '{name}', the name of another parameter"):
            Params(selection=rule_with(name))


class Plain:
    def __call__(self, view):
        return None


def test_how_often_to_select_is_used_with_every_rule_without_such_a_field():
    for rule in (Near(), Near, Plain(), lambda view: None):
        assert Params(selection=rule, every=3).unused() == []
    assert Params(algo="lambdamart", every=3).unused() == ["every"]


def test_a_class_that_is_no_dataclass_is_refused():
    message = r"selection '\w+' is the class Plain, which is not a dataclass; expected .*; decorate the class"
    for use in (partial(rs.params.register_selection, "plain"), lambda rule: Params(selection=rule)):
        with pytest.raises(ParameterError, match=message):
            use(Plain)
    assert "plain" not in SELECTIONS


def test_advice_on_an_unused_parameter_names_what_to_choose():
    for params, advice in (
        (Params(algo="selgb", margin=2.0), "choose another selection"),
        (Params(algo="ranksvm", leaves=7), "choose another algorithm"),
    ):
        with pytest.raises(ParameterError, match=f"leave it out, or {advice}$"):
            params.check_used()


def test_lightgbms_lambdarank_is_another_algorithm():
    advice = "; lambdarank is the neural net; LightGBM's objective of this name is algo='lambdamart'; leave it out, or"
    for given in ({"trees": 5}, {"num_leaves": 31, "hidden": 3}):
        with pytest.raises(ParameterError, match=advice):
            Params(algo="lambdarank", **given).check_used()
    assert "neural" not in "".join(map(str, Params(algo="lambdarank", c=3.0).unused_message()))
    assert "neural" not in "".join(map(str, Params(algo="ranksvm", trees=5).unused_message()))


def test_rules_are_known_before_a_training():
    code = "import ranksieve as rs; print(rs.params.OBJECTIVES['ndcg'].__name__)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "LambdaNdcg"


def test_a_parameter_that_contradicts_a_passed_rule_is_refused():
    with pytest.raises(ParameterError, match=r"margin is 2\.0, but 9\.0 in the selection that is passed"):
        Params(selection=Near(margin=9.0), margin=2.0)
    assert Params(selection=Near(margin=9.0), margin=9.0).selection_rule.margin == 9.0


def test_unused_parameters_are_warned_of_however_a_rule_is_given(own_file, registered):
    function = own_file.replace("Sel", "function")
    for rule in (Near, Near(), own_file, function, "first-documents", lambda view: None):
        with pytest.warns(UnusedParameterWarning, match="rest is not used by algo='selgb' with selection="):
            rs.train(small_dataset(), selection=rule, rest=0.2, trees=2, leaves=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rs.train(small_dataset(), selection=own_file, extra=3, margin=2.0, every=2, trees=2, leaves=4)


def test_a_parameter_that_no_algorithm_uses_is_reported_without_a_list():
    message = "".join(map(str, Params(algo="ranksvm", selection=FirstDocuments, first_docs=3).unused_message()))
    assert message.endswith("first_docs is not used by algo='ranksvm'")


def test_classes_that_are_no_rules_are_refused_in_words():
    @dataclass(frozen=True)
    class NoDefault:
        depth: int

        def __call__(self, view):
            return None

    @dataclass(frozen=True)
    class Factory:
        depths: list = field(default_factory=list)

        def __call__(self, view):
            return None

    @dataclass(frozen=True)
    class Foreign:
        depth: int = field(default=2, metadata={"unit": "levels", "help": 3})

        def __call__(self, view):
            return None

    for rule in (NoDefault, Factory):
        for use in (
            lambda rule=rule: rs.params.register_selection("rule", rule),
            lambda rule=rule: Params(selection=rule),
        ):
            with pytest.raises(ParameterError, match=r"no default for its field 'depths?'"):
                use()
    assert Params(selection=Foreign, depth=3).selection_rule.depth == 3
    with pytest.raises(ParameterError, match="depth is 'x'; expected an integer"):
        Params(selection=Foreign, depth="x")


def test_fields_that_no_model_file_holds_are_refused_before_training(tmp_path):
    with pytest.raises(ParameterError, match="field 'weights' of the selection is of type ndarray"):
        rs.train(small_dataset(), selection=Noted(np.ones(3)), checkpoint=tmp_path / "checkpoint")
    assert not (tmp_path / "checkpoint").exists()


def test_values_that_are_no_rules_are_refused():
    for kind, value, message in (
        ("selection", 5, "selection is 5; expected a name or a function of a view"),
        ("objective", None, "objective is None; expected a name or a function"),
        ("step", lambda: 0, "step is <function .*; expected a name or a dataclass"),
        ("step", "optimum", "step is 'optimum'; did you mean 'optimal'. known: optimal, shrinkage$"),
        ("strategy", "", "strategy is ''; known: last, .*, and file.py:function$"),
    ):
        with pytest.raises(ParameterError, match=message):
            Params(**{kind: value})
    with pytest.raises(ParameterError, match=r"selection is 'tpo'; did you mean 'top'\? known: auto, .*function$"):
        rs.train(small_dataset(), selection="tpo")


def test_bugs_of_a_check_are_not_hidden():
    @dataclass(frozen=True)
    class Buggy:
        depth: int = parameter(1, "Depth", "an integer", lambda value: value.no_such_attribute)

        def __call__(self, view):
            return None

    with pytest.raises(AttributeError, match="no_such_attribute"):
        Params(selection=Buggy, depth=2)
    with pytest.raises(ParameterError, match="depth is 'x'; expected an integer"):
        Params(selection=Buggy, depth="x")


def test_names_become_canonical_in_one_place():
    assert canonical({"n_jobs": -4, "min-docs": 2, "random_state": None}) == {"threads": 0, "min_docs": 2, "seed": 0}
    assert canonical({"thread_count": -1, "random_seed": None}) == {"threads": 0, "seed": 0}
    for values in ({"trees": 1, "n_estimators": 1}, {"min-docs": 1, "min_docs": 1}, {"max_iter": 1, "iterations": 1}):
        with pytest.raises(ParameterError, match=f"is given twice, as {' and as '.join(values)}; give one"):
            canonical(values)


def test_the_order_of_parameters_does_not_depend_on_imports():
    """Model files list parameters in this order, so it is the same in every process."""
    code = "import ranksieve.boosting.{0}\nfrom ranksieve.parameter_table import table\nprint(list(table()))"
    firsts = ("selections.top", "selections.random", "objectives.yetiloss", "steps")
    commands = [[sys.executable, "-c", code.format(first)] for first in firsts]
    orders = {subprocess.run(command, capture_output=True, text=True).stdout for command in commands}
    assert len(orders) == 1 and "negatives" in orders.pop()


@pytest.mark.parametrize(
    ("call", "name", "meant"),
    [(rs.cv, "nfold", "folds"), (rs.cv, "n_folds", "folds"), (partial(rs.tune, valid="v.txt"), "n_trials", "trials")],
)
def test_names_of_arguments_in_other_libraries(call, name, meant):
    data = rs.synth.cubic(4)
    with pytest.raises(ParameterError, match=f"unknown parameter '{name}'; did you mean '{meant}'"):
        call(data, **{name: 3})
    with pytest.raises(ParameterError, match=f"unknown parameter '{name}'") as caught:
        rs.train(data, **{name: 3})
    assert f"'{meant}'" not in str(caught.value)


def test_no_limit_of_depth_as_in_lightgbm():
    assert Params(max_depth=-1) == Params(max_depth=0)
    assert rs.Ranker(max_depth=-1).max_depth == 0
    assert Params(lambdarank_truncation_level=7).truncation == 7


def test_arguments_by_position_are_refused():
    data = rs.synth.cubic(4)
    for given in (({"num_leaves": 5}, data), (data.features, data.labels)):
        with pytest.raises(ParameterError, match=r"parameters are keyword arguments: .*Dataset.from_arrays.*Ranker"):
            rs.train(*given)


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ("rank:ndcg", "did you mean 'ndcg'? known: auto, err"),
        ("rank:pairwise", "did you mean 'ndcg'? known"),
        ("reg:squarederror", "did you mean 'squared'? known"),
        ("regression", "did you mean 'squared'? known"),
        ("reg:tweedie", "of regression there is objective='squared' only; known: auto"),
        ("binary", "there is no classification; to rank by labels of 0 and 1, use objective='ndcg'; known: auto"),
        ("binary:logistic", "there is no classification"),
    ],
)
def test_objectives_of_other_libraries_are_not_imported(objective, message, tmp_path, monkeypatch):
    for module in ("rank", "reg", "binary"):
        (tmp_path / f"{module}.py").write_text("raise SystemError('is imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for given in ({}, *([{"no_such_thing": 1}] if ":" in objective else [])):  # which a user's own rule may have
        with pytest.raises(ParameterError) as error:
            rs.train(small_dataset(), objective=objective, **given)
        assert f"objective is {objective!r}; {message}" in str(error.value)


@pytest.mark.parametrize("name", ["categorical", "valid"])
def test_a_suggestion_is_another_name(name):
    with pytest.raises(ParameterError) as caught:
        Params(**{name: "x"})
    assert f"did you mean '{name}'" not in str(caught.value)


@pytest.mark.parametrize(("name", "meant"), [("depth", "max_depth"), ("border_count", "max_bins")])
def test_parameters_of_catboost_that_are_not_aliases(name, meant):
    with pytest.raises(ParameterError, match=f"did you mean '{meant}'"):
        Params(**{name: 6})


@pytest.mark.parametrize("name", ["label", "qid", "ignore"])
def test_names_of_columns_belong_to_reading(name):
    with pytest.raises(ParameterError, match=rf"'{name}' names a column of the data.*rs.read\(data, {name}='y'\)"):
        rs.train(small_dataset(), **{name: "y"})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"loss_function": "YetiRank"}, "unknown parameter 'loss_function'; use objective"),
        ({"num_class": 3}, "there is no classification; to rank by labels"),
        ({"rsm": 0.5}, "features are sampled for each tree, not for each split; use feature_fraction"),
        ({"lambda_l1": 1.0}, "unknown parameter 'lambda_l1'; there is no L1 regularisation of leaf values, only l2"),
        ({"reg_alpha": 1.0}, "only l2"),
        ({"boosting": "dart"}, "there is no dart and no rf; for goss use selection='goss'; algo chooses the algorithm"),
        ({"drop_rate": 0.1}, "there is no DART: trees are never dropped; use algo='lambdamart'"),
        (
            {"algo": "dart"},
            "algo is 'dart'; there is no DART: trees are never dropped; use algo='lambdamart'; expected one",
        ),
        ({"algo": "lgbm"}, "algo is 'lgbm'; LightGBM is algo='lightgbm'; expected one of"),
        ({"algo": "LGB"}, "algo is 'LGB'; LightGBM is algo='lightgbm'; expected one of"),
        ({"algo": "goss"}, "GOSS is algo='lambdamart' with selection='goss'; expected one of"),
        ({"is_unbalance": True}, "there are no class weights in ranking; documents and queries may have weights"),
        ({"scale_pos_weight": 9}, "unknown parameter 'scale_pos_weight'; there are no class weights in ranking"),
        ({"categorical_feature": [1]}, "rs.read(file, categorical=['brand']); columns of a categorical type in"),
        ({"no_such_thing": 1}, "unknown parameter 'no_such_thing'; ranksieve train --help lists all parameters"),
        ({"verbosity": -1}, "unknown parameter 'verbosity'; verbose decides whether progress is shown"),
        ({"verbose_eval": 10}, "verbose decides"),
        ({"silent": True}, "verbose decides"),
        ({"init_model": "m.txt"}, "training starts from init"),
        ({"params": {}}, "parameters are keyword arguments; give **params"),
        ({"evals_result": {}}, "values after each tree are in the model's info['history']"),
        ({"feature_name": ["a"]}, "names belong to the data, Dataset.with_features(names); features chooses some"),
        ({"deterministic": True}, "the same model, whatever the number of threads; leave it out"),
        ({"eval_at": [1, 3]}, "the rank is part of the metric's name, as in metric='ndcg@10'; evaluate takes several"),
    ],
)
def test_names_of_other_libraries_without_an_equivalent(given, message):
    with pytest.raises(ParameterError) as error:
        Params(**given)
    assert message in str(error.value) and "did you mean" not in str(error.value)


def test_callbacks_of_lightgbm_are_refused():
    peer = pytest.importorskip("lightgbm")
    for callback in (peer.early_stopping(3, verbose=False), peer.log_evaluation(1), peer.record_evaluation({})):
        with pytest.raises(ParameterError, match=r"callbacks has a callback of lightgbm.callback, .*early_stopping"):
            rs.train(small_dataset(), callbacks=[callback])


def test_every_parameter_is_in_a_group_of_at_most_a_dozen():
    sizes = Counter(one.group for one in table().values())
    assert "" not in sizes and max(sizes.values()) <= 12
    known = table()
    assert known["margin"].group == known["selection"].group and known["truncation"].group == known["objective"].group
