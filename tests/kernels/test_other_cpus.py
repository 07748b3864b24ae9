"""Kernels that choose their code by the features of the CPU give the same bits on a CPU with fewer of them."""

import os
import platform
import subprocess
import sys

import numpy as np
import pytest
from numba import config, njit
from numba.core.registry import cpu_target

from ranksieve.kernels import lanes
from ranksieve.kernels.gain import Node, SplitRules
from ranksieve.kernels.lazy_scores import TOGETHER, EligibleRows, near_rows
from ranksieve.kernels.transpose import transpose_tile
from scanned_cuts import scanned

pytestmark = [
    pytest.mark.skipif(config.DISABLE_JIT, reason="about compiled code"),
    pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="about features of x86"),
]

RUN = """
import sys
from kernels.test_other_cpus import features, results
print(features())
print(results())
"""
AVX2 = "+avx,+avx2,+fma,+sse4.2,+popcnt"


def features() -> str:
    """The features that code is compiled for."""
    return str(cpu_target.target_context.codegen().magic_tuple()[2])


def results() -> str:
    """What the kernels return for some arrays, as hexadecimal digits."""
    rng = np.random.default_rng(0)
    return b"".join(one.tobytes() for one in (*_cuts(rng), *_tiles(rng), _looked_up(rng), _near(rng))).hex()


def _cuts(rng):
    """The best cuts by variance and by Newton gain: second derivatives packed, on their own, or none."""
    grad, hess = rng.integers(-(1 << 20), 1 << 20, (12, 16)), rng.integers(0, 1 << 20, (12, 16))
    count = rng.integers(0, 9, (12, 16))
    for sums in (grad, hess, count):  # all columns are of the same rows
        sums[-1] += sums.sum(axis=0).max() - sums.sum(axis=0)
    for hess_bits, newton, n_planes in ((0, False, 1), (27, True, 1), (27, False, 1), (0, True, 2)):
        packed = (grad << (10 + hess_bits)) + (hess << 10 if hess_bits else 0) + count
        group = np.stack([packed, hess][:n_planes])
        node = Node(int(packed[:, 0].sum()), int(hess[:, 0].sum()) if n_planes == 2 else 0, -np.inf, np.inf)
        yield from scanned(group, 11, node, SplitRules(10, hess_bits, 2.0**-20, 3, 0.0, 0.5, newton, 0))


@njit
def _transpose(source, positions, target):
    transpose_tile(source, positions, 0, 0, target, 0, 16)


def _tiles(rng):
    for kind in (np.uint8, np.float32):
        source, target = rng.integers(0, 256, 300).astype(kind), np.zeros(256, kind)
        _transpose(source, rng.integers(0, 280, 16), target)
        yield target


@njit
def _look_up(floats, positions, out):
    table = lanes.load_floats(floats, 0)
    for k in range(len(positions)):
        lanes.store(out, 16 * k, lanes.look_up(table, lanes.splat_numbers(positions[k])))


def _looked_up(rng):
    out = np.empty(16 * 40, np.float32)
    _look_up(rng.normal(size=16).astype(np.float32), np.arange(-8, 32, dtype=np.int32), out)
    return out


def _near(rng):
    """Rows whose upper bounds are high enough."""
    upper_bounds, marks = rng.random(75).astype(np.float32), (rng.random(75) < 0.3).astype(np.uint8)
    out, ceilings = np.full(75 + TOGETHER, -1, np.int32), np.zeros(1)
    candidates = EligibleRows(np.empty(0, np.int32), marks)
    n = near_rows(candidates, 4, 75, 0.4, 1.0, ceilings, np.empty(0), np.empty(0, np.uint16), upper_bounds, out)
    expected = [row for row in range(4, 75) if upper_bounds[row] >= np.float32(0.4) and marks[row] == 0]
    assert out[:n].tolist() == expected
    return out[:n]


@pytest.mark.parametrize(("cpu", "given"), [("x86-64", ""), ("haswell", AVX2)], ids=["none", "AVX2"])
def test_code_for_another_cpu_gives_the_same_bits(tmp_path, cpu, given):
    if not set(filter(None, given.split(","))) <= set(features().split(",")):
        pytest.skip("this CPU does not have these features")
    path = os.pathsep.join([*sys.path, os.path.dirname(os.path.dirname(__file__))])
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path)}
    environment |= {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": given}
    done = subprocess.run(
        [sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    had, found = done.stdout.splitlines()
    assert ("+avx2" in had) == bool(given) and "+avx512f" not in had
    assert found == results()
