"""Training and scoring on a GPU, in Numba's CUDA simulator: small lists, the CPU's results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba_cuda")

TREES = [
    "newton", "newton, many rows", "newton, two histograms", "variance", "monotone", "monotone, two histograms",
]  # fmt: skip


@pytest.fixture(scope="module")
def results() -> dict:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("simulated.py"))],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", TREES)
def test_a_tree_from_equal_gradients_is_the_cpus_bit_for_bit(results: dict, name: str) -> None:
    assert results[name] is True


@pytest.mark.parametrize("name", ["selgb", "lambdamart, map", "mart", "own selection"])
def test_a_run_has_the_cpus_splits_metrics_and_scores(results: dict, name: str) -> None:
    assert results[name] is True


@pytest.mark.parametrize("name", ["random", "adaptive", "goss"])
def test_selected_rows_and_their_gradients_are_the_cpus(results: dict, name: str) -> None:
    assert results[name] is True


def test_scores_choose_the_cpus_documents(results: dict) -> None:
    assert results["choice"] is True


def test_bins_that_do_not_fit_are_streamed(results: dict) -> None:
    assert results["streamed"] is True


def test_validation_lists_that_are_sorted_by_label_are_warned_of(results: dict) -> None:
    assert results["sorted by label"] is True


def test_scores_by_ranks_and_by_values_are_the_cpus(results: dict) -> None:
    assert results["scores"] is True


def test_what_does_not_run_on_a_gpu_says_so(results: dict) -> None:
    assert results["oblivious"] == (
        "algo='oblivious-mart' does not run on a GPU: its trees are oblivious; use device='cpu'"
    )
    assert results["memory"] == (
        "arrays: training needs about 6.3 MB on the GPU, and 2.1 MB are free; use fewer documents, an algorithm that "
        "selects rows, such as selgb, or device='cpu'"
    )
    assert results["leaves"] == "leaves is 2000; a tree has at most 1024 leaves with device='cuda'"
