"""Training and scoring on a GPU, in Numba's CUDA simulator: small lists, the CPU's results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba_cuda")


@pytest.fixture(scope="module")
def results() -> dict:
    script = Path(__file__).with_name("simulated.py")
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ["newton", "variance", "monotone"])
def test_a_tree_from_equal_gradients_is_the_cpus_bit_for_bit(results: dict, name: str) -> None:
    assert results[name] is True


@pytest.mark.parametrize("name", ["selgb", "lambdamart, map", "sieve, rows", "mart"])
def test_a_run_has_the_cpus_splits_metrics_and_scores(results: dict, name: str) -> None:
    assert results[name] is True


def test_what_does_not_run_on_a_gpu_says_so(results: dict) -> None:
    assert results["oblivious"] == (
        "algo='oblivious-mart' does not run on a GPU: its trees are oblivious; use device='cpu'"
    )
    assert results["leaves"] == "leaves is 2000; a tree has at most 1024 leaves with device='cuda'"
