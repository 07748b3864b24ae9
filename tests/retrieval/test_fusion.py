"""Fusing runs: agreement with the definitions, ties, queries that a run does not have, errors."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from naive_retrieval import fused
from ranksieve.errors import DataError, ParameterError
from ranksieve.retrieval.fusion import METHODS, NORMS, fuse
from ranksieve.retrieval.runs import Run


def random_runs(seed: int, n_runs: int = 3) -> list[Run]:
    """Runs over the same documents, of different lengths; the last run has no list for the first query."""
    rng = np.random.default_rng(seed)
    return [
        Run.from_rows(
            (f"q{q}", f"d{n}", float(rng.integers(-5, 40)))
            for q in range(1 if run == n_runs - 1 else 0, 4)
            for n in rng.choice(30, rng.integers(1, 25), replace=False)
        )
        for run in range(n_runs)
    ]


def pairs(run: Run, query: str) -> list[tuple[str, float]]:
    return next(
        ([*zip(docs, scores.tolist(), strict=True)] for id, docs, scores in run.lists() if id == query), []
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("method", "norm"), [("rrf", None), *itertools.product([m for m in METHODS if m != "rrf"], NORMS)]
)
def test_scores_are_as_defined(seed, method, norm):
    runs, weights = random_runs(seed), [0.5, 2.0, -0.25]
    result = fuse(runs, method, norm=norm, weights=weights, k=7 if method == "rrf" else None)
    assert result.query_ids == ("q0", "q1", "q2", "q3")
    for id in result.query_ids:
        expected = fused([pairs(run, id) for run in runs], method, norm or "", weights, 7)
        ours = dict(pairs(result, id))
        assert ours.keys() == expected.keys()
        assert ours == pytest.approx(expected, abs=1e-9)
        scores = list(ours.values())
        assert scores == sorted(scores, reverse=True)


def test_scores_are_those_of_ranx():
    """`files/ranx.json` has runs, and what `ranx.fuse` of version 0.3.21 made of them."""
    stored = json.loads(Path(__file__).with_name("files").joinpath("ranx.json").read_text())
    runs = [Run.from_rows((id, *one) for id, docs in run.items() for one in docs.items()) for run in stored["runs"]]
    assert len(stored["fused"]) == 17 and len(runs) == 3
    for case in stored["fused"]:
        result = fuse(runs, case["method"], norm=case["norm"], weights=case["weights"])
        assert set(result.query_ids) == case["scores"].keys()
        for id in result.query_ids:
            assert dict(pairs(result, id)) == pytest.approx(case["scores"][id], rel=1e-12, abs=1e-13)


def test_defaults_are_rrf_with_60_and_min_max():
    runs = random_runs(5)
    assert fuse(runs).scores.tolist() == fuse(runs, "rrf", k=60).scores.tolist()
    assert fuse(runs, "mnz").scores.tolist() == fuse(runs, "mnz", norm="min-max").scores.tolist()


def test_equal_scores_keep_the_order_of_the_first_run():
    a = Run.from_rows([("q1", "x", 2.0), ("q1", "y", 1.0), ("q2", "x", 1.0)])
    b = Run.from_rows([("q2", "z", 1.0), ("q1", "z", 2.0), ("q1", "y", 1.0)])
    assert fuse([a, b], "rrf").doc_ids.tolist() == ["y", "x", "z", "x", "z"]
    assert fuse([b, a], "rrf").doc_ids.tolist() == ["z", "x", "y", "z", "x"]


def test_scores_do_not_depend_on_the_order_of_the_runs():
    found = []
    for runs in itertools.permutations(random_runs(1, 4)):
        result = fuse(runs, "sum", norm="zmuv")
        found.append({id: dict(pairs(result, id)) for id in result.query_ids})
    assert all(scores == found[0] for scores in found)


def test_lists_of_equal_scores_count_as_0():
    a = Run.from_rows([("q", "x", 3.0), ("q", "y", 3.0)])
    b = Run.from_rows([("q", "z", 3.0)])
    assert fuse([a, b], "sum").scores.tolist() == [0.0, 0.0, 0.0]
    assert fuse([a, b], "sum", norm="zmuv").doc_ids.tolist() == ["x", "y", "z"]


def test_depth_keeps_the_best():
    runs = random_runs(2)
    result, whole = fuse(runs, depth=3), fuse(runs)
    for id in whole.query_ids:
        assert pairs(result, id) == pairs(whole, id)[:3]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "rff"}, "method is 'rff'; did you mean 'rrf'? expected one of rrf, sum, mnz"),
        ({"method": "sum", "norm": "minmax"}, "norm is 'minmax'; did you mean 'min-max'?"),
        ({"norm": "rank"}, "norm is for the methods sum and mnz"),
        ({"method": "mnz", "k": 60}, "k is for the method rrf"),
        ({"k": -1}, "k is -1; expected a number from 0"),
        ({"weights": [1.0]}, "weights are [1.0]; expected 3 finite numbers"),
        ({"weights": [1.0, 2.0, float("nan")]}, "expected 3 finite numbers"),
        ({"depth": 0}, "depth is 0; expected an integer from 1"),
    ],
)
def test_bad_parameters(settings, message):
    with pytest.raises(ParameterError) as error:
        fuse(random_runs(0), **settings)
    assert message in str(error.value)


def test_one_run_and_scores_too_large():
    with pytest.raises(ParameterError, match="1 run to fuse; give at least 2"):
        fuse(random_runs(0)[:1])
    with pytest.raises(ParameterError, match="weights are all 0"):
        fuse(random_runs(0)[:2], "sum", weights=[0, 0])
    huge = Run.from_rows([("q", "x", 1e308), ("q", "y", -1e308)])
    with pytest.raises(DataError, match="query 'q': scores are too large"), np.errstate(all="ignore"):
        fuse([huge, huge], "sum")
