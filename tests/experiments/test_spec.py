"""Reading specifications: their cells, and the messages for mistakes."""

from __future__ import annotations

import pytest
from experiment_samples import SPEC, WEB, run_table, write_spec

from ranksieve.errors import ParameterError
from ranksieve.experiments.data_sets import DataSpec
from ranksieve.experiments.read_spec import load_spec
from ranksieve.experiments.results import Results
from ranksieve.experiments.run import run_experiment
from ranksieve.experiments.spec import SHIPPED, find_spec
from ranksieve.report.write import write_report
from ranksieve.toml_file import key_lines, line_of


def line_with(text: str) -> int:
    return next(number for number, line in enumerate(SPEC.splitlines(), 1) if text in line)


def test_cells_are_runs_times_grids_times_seeds(tmp_path):
    spec = load_spec(write_spec(tmp_path))
    labels = ["plain", "SelGB, negatives 0.02", "SelGB, negatives 0.1", "hard", "some", "some"]
    assert [cell.label for cell in spec.cells] == labels
    assert [cell.seed for cell in spec.cells] == [0, 0, 0, 0, 0, 1]
    assert spec.cells[3].model_cell == spec.cells[0]
    assert spec.cells[2].params.negatives == 0.1
    assert {cell.params.leaves for cell in spec.cells} == {4}
    assert {cell.params.metric for cell in spec.cells} == {"ndcg@10"}
    assert len({cell.key for cell in spec.cells}) == 6
    assert (spec.metrics, spec.stages, spec.baseline) == (("ndcg@10", "map"), (2,), "plain")


def test_quick_replaces_sizes_and_seeds(tmp_path):
    full, quick = load_spec(write_spec(tmp_path)), load_spec(write_spec(tmp_path), quick=True)
    assert [cell.label for cell in quick.cells] == [cell.label for cell in full.cells][:-1]
    assert {cell.params.trees for cell in quick.cells} == {2}
    assert (quick.data[0].queries, quick.data[0].features) == (8, 6)
    assert not {cell.key for cell in quick.cells} & {cell.key for cell in full.cells}


def test_a_key_changes_with_what_the_result_depends_on(tmp_path):
    keys = {cell.key for cell in load_spec(write_spec(tmp_path)).cells}
    for old, new in (("leaves = 4", "leaves = 5"), ("queries = 10", "queries = 11"), ('"map"', '"mrr"')):
        other = {cell.key for cell in load_spec(write_spec(tmp_path, SPEC.replace(old, new))).cells}
        assert not keys & other
    renamed = {cell.key for cell in load_spec(write_spec(tmp_path, SPEC.replace('"small"', '"other"'))).cells}
    assert keys == renamed


@pytest.mark.parametrize(
    ("old", "new", "where", "message"),
    [
        ('algo = "selgb"', 'algo = "selgbb"', "selgb", "algo is 'selgbb'; did you mean 'selgb'. expected one of"),
        (
            "negatives = [0.02, 0.1]",
            "negatives = [0.02, 1.5]",
            "negatives =",
            r"negatives is 1.5; expected a number in \(0, 1\]",
        ),
        ("leaves = 4", "leafs = 4", "leaves =", "unknown key 'leafs'; did you mean 'leaves'"),
        ("leaves = 4", "xyzzy = 4", "leaves =", "unknown key 'xyzzy'; ranksieve train --help lists all parameters"),
        ("leaves = 4", "leaves = 1", "leaves =", "leaves is 1"),
        ("queries = 10", "querys = 10", "queries = 10", "did you mean 'queries'"),
        ('generate = "two-stage"', 'generate = "three"', "generate =", "expected one of two-stage, cubic"),
        ('generate = "two-stage"', 'file = "none.txt"', "[data.web]", "none.txt"),
        ('title = "small"', 'figures = ["speed"]', "title =", "speed shows times.* add timed = true"),
        ('"map"', '"mapp"', "metrics =", "unknown metric 'mapp'; did you mean 'map'"),
        ('model = "plain"', 'model = "SelGB"', "by-model", "has a grid"),
        ('model = "plain"', 'model = "later"', "by-model", "no earlier run is named 'later'"),
        ("share = 0.2", "share = 2", "by-model", r"share is 2.0; expected a number in \(0, 1\]"),
        ('order = "random"', 'order = "up"', "undersample", "order is 'up'"),
        ('how = "undersample"', 'how = "less"', "undersample", "how is 'less'"),
        ('baseline = "plain"', 'baseline = "plan"', "baseline", "no run is named 'plan'; did you mean 'plain'"),
        ('name = "hard"', 'name = "plain"', 'name = "hard"', "expected a name that no other run has"),
        ("stages = [2]", "stages = 2", "stages = ", "expected a list"),
        ("selections = true", 'selection = "tpo"', "selections = ", "did you mean 'top'"),
        ("[quick]", "[quik]", "[quick]", "did you mean 'quick'"),
    ],
)
def test_mistakes_are_reported_with_their_line(old, new, where, message, tmp_path):
    assert old in SPEC
    path = write_spec(tmp_path, SPEC.replace(old, new))
    with pytest.raises(ParameterError, match=message) as caught:
        load_spec(path)
    assert str(caught.value).startswith(f"{path}:{line_with(where)}: "), caught.value


def test_other_parameters_for_all_runs(tmp_path):
    spec = load_spec(write_spec(tmp_path), quick=True, params={"trees": 3, "negatives": 0.3})
    assert {cell.params.trees for cell in spec.cells} == {3}
    assert [cell.params.negatives for cell in spec.cells if cell.run == "SelGB"] == [0.3]
    with pytest.raises(ParameterError, match="set: unknown parameter 'tres'; did you mean 'trees'"):
        load_spec(write_spec(tmp_path), params={"tres": 3})
    with pytest.raises(ParameterError, match="leaves is 1"):
        load_spec(write_spec(tmp_path), params={"leaves": [4, 1]})


def test_parameters_that_no_run_uses_are_refused(tmp_path):
    path = write_spec(tmp_path, SPEC)
    with pytest.raises(ParameterError, match=r"set rest: no run of .*small.toml uses it"):
        load_spec(path, params={"rest": 0.4, "negatives": 0.05})
    pruned = SPEC.replace('name = "hard"\nalgo = "lambdamart"', 'name = "hard"\nprune = "plain"\nleaves = 9')
    pruned = pruned.replace('sample = { how = "by-model", model = "plain", share = 0.2 }', "rate = 0.5")
    with pytest.raises(ParameterError, match=r"leaves is not used with prune; it uses .*strategy.*rate"):
        load_spec(write_spec(tmp_path, pruned))
    load_spec(write_spec(tmp_path, pruned.replace("leaves = 9\n", "")))


def test_what_is_not_toml_or_not_there(tmp_path):
    with pytest.raises(ParameterError, match=r"not a TOML file .*line 1"):
        load_spec(write_spec(tmp_path, "title = \n"))
    with pytest.raises(ParameterError, match="no runs"):
        load_spec(write_spec(tmp_path, '[data.x]\ngenerate = "cubic"\n'))
    with pytest.raises(ParameterError, match="no data"):
        load_spec(write_spec(tmp_path, '[[runs]]\nalgo = "mart"\n'))
    with pytest.raises(ParameterError, match=r"none.toml: no such file; .* table2"):
        find_spec(tmp_path / "none.toml")
    with pytest.raises(ParameterError, match="did you mean 'table2'"):
        find_spec("tabel2")


@pytest.mark.parametrize(
    ("old", "new", "where", "message"),
    [
        ('generate = "two-stage"', "generate = []", "generate =", r"generate is \[\]; expected one of two-stage"),
        ('["ndcg@10", "map"]', "[]", "metrics =", r"metrics is \[\]; expected a list of texts, at least one"),
        ('["ndcg@10", "map"]', "[[]]", "metrics =", "expected a list of texts"),
        ('["ndcg@10", "map"]', "3", "metrics =", "metrics is 3; expected a list of texts"),
        ("stages = [2]", "stages = [0]", "stages =", "expected a list of integers from 1"),
        ("stages = [2]", "stages = [true]", "stages =", "expected a list of integers"),
        ("stages = [2]", "seeds = []", "stages =", r"seeds is \[\]; expected a list of integers, at least one"),
        ("queries = 10", "queries = 0", "queries = 10", "queries is 0; expected an integer from 1"),
        ("queries = 10", "queries = true", "queries = 10", "queries is True; expected an integer"),
        ("queries = 10", "split = 3", "queries = 10", "split is 3; expected a list of numbers"),
        ("leaves = 4", "leaves = []", "leaves =", r"leaves is \[\]; expected at least one value"),
        ("leaves = 4", "leaves = {}", "leaves =", "leaves is {}"),
        ('name = "hard"', "name = 3", 'name = "hard"', "name is 3; expected a text"),
        ("seeds = [0, 1]", "seeds = 1", "seeds = [0, 1]", "expected a list of integers"),
        ("selections = true", 'selections = "yes"', "selections = ", "expected true or false"),
        ('how = "undersample"', "how = []", "undersample", r"how is \[\]"),
        ('order = "random"', "order = {}", "undersample", "order is {}"),
        ("share = 0.2", 'share = "x"', "by-model", "share is 'x'"),
        ("share = 0.2", "share = true", "by-model", "share is True"),
        ("seeds = 1", "seeds = 0", "seeds = 1", "seeds is 0; expected an integer from 1"),
        ("params = { trees = 2 }", "params = { tres = 2 }", "params = {", "unknown key 'tres'; did you mean 'trees'"),
        ("[data.web]", '[data."a/b"]', "[data.web]", "part of file names"),
        ('baseline = "plain"', "baseline = 2", "baseline", "baseline is 2; expected a text"),
    ],
)
def test_values_of_another_type_are_reported_with_their_line(old, new, where, message, tmp_path):
    assert old in SPEC
    path = write_spec(tmp_path, SPEC.replace(old, new, 1))
    with pytest.raises(ParameterError, match=message) as caught:
        load_spec(path, quick=where == "seeds = 1")
    assert str(caught.value).startswith(f"{path}:{line_with(where)}: "), caught.value


def test_sizes_are_bounded(tmp_path):
    text = SPEC.replace("negatives = [0.02, 0.1]", f"negatives = {[0.1] * 400}\nl2 = {[1.0] * 400}")
    with pytest.raises(ParameterError, match=r"small.toml:\d+: negatives has a value twice; give each value once"):
        load_spec(write_spec(tmp_path, SPEC.replace("negatives = [0.02, 0.1]", "negatives = [1, 1.0]")))
    with pytest.raises(ParameterError, match=r"small.toml:\d+: the grid has more than 100,000 choices"):
        load_spec(write_spec(tmp_path, text))
    with pytest.raises(ParameterError, match="folds is 2000; expected an integer from 0 to 1000"):
        DataSpec("web", file=__file__, folds=2000).checked()


@pytest.mark.parametrize("text", ["a = " + "[" * 20_000, "a = " + "{b = " * 20_000, "a = " + "9" * 5_000])
def test_what_the_parser_cannot_hold_is_one_error(text, tmp_path):
    with pytest.raises(ParameterError, match=r"small.toml: (nested too deeply|not a TOML file)"):
        load_spec(write_spec(tmp_path, text))


def test_reading_and_reporting_run_no_code_of_the_user(tmp_path):
    rules, ran = tmp_path / "rules.py", tmp_path / "ran"
    rules.write_text(f"import pathlib\npathlib.Path({str(ran)!r}).touch()\ndef rule(view):\n    return None\n")
    text = WEB + run_table("mine", "selgb", f"selection = '{rules}:rule'") + run_table("plain", "lambdamart")
    load_spec(write_spec(tmp_path, text + f"objective = '{rules}:rule'\n"))
    assert not ran.exists()
    spec = load_spec(write_spec(tmp_path, text))
    assert not ran.exists()
    results = run_experiment(spec, tmp_path / "out", jobs=1)
    assert ran.exists()
    ran.unlink()
    write_report(Results.open(results.folder))
    assert not ran.exists()
    spec = load_spec(write_spec(tmp_path, text.replace(":rule", ":gone")))
    with pytest.raises(ParameterError, match=r"small.toml: selection is .*gone"):
        run_experiment(spec, tmp_path / "other", jobs=1)
    assert not (tmp_path / "other").exists()


OWN_RULE = """
from dataclasses import dataclass
import numpy as np

@dataclass(frozen=True)
class First:
    first_docs: int = 10

    def __call__(self, view):
        rank = np.arange(len(view.lists.labels)) - np.repeat(view.lists.offsets[:-1], np.diff(view.lists.offsets))
        return np.flatnonzero((view.lists.labels > 0) | (rank < self.first_docs))
"""


@pytest.mark.parametrize("shared", [False, True])
def test_parameters_of_a_class_in_a_file_are_keys(tmp_path, shared):
    (tmp_path / "own.py").write_text(OWN_RULE)
    rule = f"selection = '{tmp_path}/own.py:First'"
    text = WEB + ("first-docs = 3\n" if shared else "")
    text += run_table("mine", "selgb", rule if shared else f"{rule}\nfirst-docs = [2, 3]")
    spec = load_spec(write_spec(tmp_path, text))
    assert [cell.params.selection_rule.first_docs for cell in spec.cells] == ([3] if shared else [2, 3])
    assert len({cell.key for cell in spec.cells}) == len(spec.cells)
    with pytest.raises(ParameterError, match=r"small.toml:\d+: unknown key 'first-dogs'; did you mean 'first-docs'"):
        load_spec(write_spec(tmp_path, text.replace("first-docs", "first-dogs")))
    plain = text.replace(rule, "")
    with pytest.raises(ParameterError, match=r"small.toml:\d+: unknown key 'first-docs'"):
        load_spec(write_spec(tmp_path, plain))


def test_every_shipped_spec_is_right():
    folder = next(folder for folder in SHIPPED if folder.is_dir())
    names = {path.stem for path in folder.glob("*.toml")}
    assert names >= {*(f"fig{i}" for i in range(1, 9)), "table2", "static", "undersampling", "efficiency", "oc"}
    for name in names:
        full, quick = load_spec(find_spec(name)), load_spec(find_spec(name), quick=True)
        assert len(full.cells) >= len(quick.cells) >= 1
        assert full.about


def test_lines_of_keys():
    text = 'a = 1\nlong = """\nb = 2\n"""\n[x."y z"]\nc.d = 3  # [no]\n[[runs]]\n[[runs]]\nlist = [\n  1,\n]\ne = 1\n'
    lines = key_lines(text)
    assert lines[("a",)] == 1
    assert ("b",) not in lines
    assert lines[("x", "y z", "c", "d")] == 6
    assert (lines[("runs", 0)], lines[("runs", 1)], lines[("runs", 1, "e")]) == (7, 8, 12)
    assert line_of(lines, ("runs", 1, "nothing")) == 8
    assert line_of(lines, ("nothing",)) == 1
