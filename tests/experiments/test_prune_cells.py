"""Cells that prune the model of another run."""

from __future__ import annotations

import numpy as np
import pytest
from experiment_samples import SPEC, write_spec

import ranksieve as rs
from ranksieve.errors import ParameterError
from ranksieve.experiments.read_spec import load_spec
from ranksieve.experiments.run import run_experiment

HEAD = 'figures = ["by-size", "speed"]\ntimed = true\n' + SPEC[: SPEC.index("[[runs]]")]
RUNS = HEAD + (
    '[[runs]]\nname = "plain"\nalgo = "lambdamart"\nearly-stopping = 0\n\n'
    '[[runs]]\nname = "smaller"\nprune = { model = "plain", first = 3 }\nrate = [0.0, 0.5]\nstrategy = "last"\n'
)


@pytest.mark.parametrize("judge_on", [None, "train"])
def test_a_run_prunes_the_model_of_another(tmp_path, judge_on):
    text = RUNS if judge_on is None else RUNS.replace("first = 3 }", f'first = 3, judge-on = "{judge_on}" }}')
    judge_on = judge_on or "valid"
    spec = load_spec(write_spec(tmp_path, text))
    assert spec.stages == (2, 3)  # the trees that are pruned are measured, too
    results = run_experiment(spec, tmp_path / "out", jobs=1)
    plain, reweighted, pruned = results.cells
    train, valid, test = (rs.synth.two_stage(n, n_features=6, start=start) for n, start in ((6, 0), (2, 6), (2, 8)))
    plain_first = plain.model().first(3)
    expected = rs.prune(plain_first, train, valid=valid, judge_on=judge_on, rate=0.5, strategy="last", fallback=False)
    np.testing.assert_array_equal(pruned.model().predict(test), expected.predict(test))
    np.testing.assert_array_equal(
        reweighted.model().weights, rs.pruning.reweight(plain_first, train, valid=valid, judge_on=judge_on).weights
    )
    assert pruned.model().info["pruning"]["judge_on"] == judge_on
    assert pruned.facts["valid"] == pytest.approx(rs.evaluate(expected, valid).mean(), abs=1e-11)
    assert pruned.model().info["pruning"]["given"] == {"trees": 3, "weight": pytest.approx(plain_first.weights.mean())}
    assert set(plain.facts["scoring"]) == {"2", "3", "full"} and min(plain.facts["scoring"].values()) > 0
    assert results.groups("web", "plain")[0].has_stages and not results.groups("web", "smaller")[0].has_stages


def test_a_strategy_gets_its_parameters(tmp_path):
    text = RUNS.replace('strategy = "last"', 'strategy = "random"\ndraws = [1, 7]')
    cells = load_spec(write_spec(tmp_path, text)).cells
    assert [cell.settings()["params"]["draws"] for cell in cells[1:]] == [1, 7, 1, 7]
    with pytest.raises(ParameterError, match=r"small.toml:\d+: draws is not used with prune"):
        load_spec(write_spec(tmp_path, RUNS + "draws = 3\n"))


@pytest.mark.parametrize(("line", "message"), [
    ('prune = "gone"', "no earlier run is named 'gone'"),
    ("prune = 3", "prune is 3; expected a text or a table"),
    ('prune = { model = "plain", first = 0 }', "first is 0; expected a number of trees, an integer from 1"),
    ('prune = { model = "plain", judge-on = "test" }', "judge-on is 'test'; expected 'valid' or 'train'"),
    ('algo = "selgb"\nprune = "plain"', "a run that prunes another run's model trains nothing; leave out algo"),
])  # fmt: skip
def test_what_cannot_be_pruned_is_reported_with_its_line(tmp_path, line, message):
    text = RUNS + f'\n[[runs]]\nname = "more"\n{line}\n'
    with pytest.raises(ParameterError, match=rf"small.toml:{len(text.splitlines())}: {message}"):
        load_spec(write_spec(tmp_path, text))
