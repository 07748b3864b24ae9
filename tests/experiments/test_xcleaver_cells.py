"""Cells whose forest is made in rounds."""

from __future__ import annotations

import numpy as np
import pytest
from experiment_samples import SPEC, write_spec

import ranksieve as rs
from ranksieve.experiments.read_spec import load_spec
from ranksieve.experiments.run import run_experiment


def test_xcleaver_is_followed_tree_by_tree_too(tmp_path):
    text = SPEC[: SPEC.index("[[runs]]")] + (
        '[[runs]]\nname = "plain"\nalgo = "lambdamart"\n\n'
        '[[runs]]\nname = "X"\nalgo = "xcleaver"\nbase = "selgb"\ngrow = 4\nrate = 0.5\nglobal = false\n'
    )
    results = run_experiment(load_spec(write_spec(tmp_path, text)), tmp_path / "out", jobs=1)
    cell = results.cells[1]
    train, valid, test = (rs.two_stage(n, n_features=6, start=start) for n, start in ((6, 0), (2, 6), (2, 8)))
    by_hand = rs.train(
        train, valid=valid, algo="xcleaver", base="selgb", grow=4, rate=0.5, trees=4, leaves=4, min_docs=2
    )
    np.testing.assert_array_equal(cell.model().predict(test), by_hand.predict(test))
    curve = cell.table("curve")
    assert len(curve["test"]) == cell.facts["n_trees"] and curve["test"][-1] == rs.evaluate(by_hand, test).mean()
    assert curve["valid"][-1] == pytest.approx(cell.facts["valid"], abs=1e-11)
