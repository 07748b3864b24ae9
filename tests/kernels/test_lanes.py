"""One instruction each, against its plain version. The others of `lanes` are used by every test of a kernel."""

import numba
import numpy as np
import pytest

from naive_lanes import PLAIN
from ranksieve.kernels import lanes

needs_registers = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="registers exist in compiled code alone")


@numba.njit
def operate(bytes_, words, floats, numbers, out_bytes, out_words, out_floats, out_numbers):
    """Every operation on registers; the results one after the other."""
    a, b = lanes.load_bytes(bytes_, 3), lanes.load_bytes(bytes_, 67)
    lanes.store(out_bytes, 0, lanes.add_bytes(a, b))
    lanes.store(out_bytes, 64, lanes.set_where(a, lanes.above(a, b), np.uint8(64)))
    lanes.store(out_bytes, 128, lanes.splat_bytes(np.uint8(200)))
    x, y, z = lanes.load_words(words, 1), lanes.load_words(words, 9), lanes.load_words(words, 17)
    lanes.store(out_words, 0, lanes.xor_words(x, y))
    lanes.store(out_words, 8, lanes.and_or_words(x, y, z))
    lanes.store(out_words, 16, lanes.add_words(x, y))
    lanes.store(out_words, 24, lanes.count_larger(z, x, y))
    lanes.store(out_words, 32, lanes.no_words())
    table, values = lanes.load_floats(floats, 0), lanes.load_floats(floats, 16)
    nodes = lanes.descend(lanes.splat_numbers(np.int32(7)), values, table)
    found = lanes.look_up(table, nodes)
    lanes.store(out_floats, 0, found)
    lanes.store(out_floats, 16, lanes.choose(nodes, np.int32(1), table, values))
    lanes.store(out_numbers, 0, nodes)
    lanes.store(out_numbers, 16, lanes.number_or_missing(values, nodes, np.int32(2)))


@needs_registers
def test_registers_do_what_loops_over_arrays_do(monkeypatch):
    rng = np.random.default_rng(0)
    floats = rng.normal(size=32).astype(np.float32)
    floats[[4, 20, 29]] = np.nan
    given = (
        rng.integers(0, 256, 140).astype(np.uint8),
        rng.integers(0, 2**64, 32, dtype=np.uint64),
        floats,
        np.empty(0, np.int32),
    )
    outcomes = []
    for function in (operate, operate.py_func):
        out = np.zeros(192, np.uint8), np.zeros(40, np.uint64), np.zeros(32, np.float32), np.zeros(32, np.int32)
        function(*given, *out)
        outcomes.append([one.tobytes() for one in out])
        for name, plain in PLAIN.items():
            if hasattr(lanes, name):
                monkeypatch.setattr(lanes, name, plain)
    assert outcomes[0] == outcomes[1]


@numba.njit
def looked_up(table, positions, out):
    """The value in lane k of a look-up of position k in all lanes."""
    found = np.empty(16, np.float32)
    for k in range(16):
        lanes.store(found, 0, lanes.look_up(lanes.load_floats(table, 0), lanes.splat_numbers(positions[k])))
        out[k] = found[k]


@needs_registers
@pytest.mark.parametrize("first", range(-16, 48, 16))
def test_values_are_looked_up_at_any_position(first):
    """Both halves of the table, in every lane; positions count modulo 16."""
    table, out = np.arange(16, dtype=np.float32) * 1.5 - 4, np.empty(16, np.float32)
    for shift in range(16):
        positions = first + np.roll(np.arange(16, dtype=np.int32), shift)
        looked_up(table, positions.astype(np.int32), out)
        assert out.tolist() == table[positions % 16].tolist()


@numba.njit
def noted(values, marks, limit, out):
    """The numbers of values of at least `limit` whose mark is 0, and how many there are."""
    n = 0
    for first in range(0, len(values), 16):
        n = lanes.append_numbers(out, n, first, lanes.at_least(values, first, limit) & lanes.are_zero(marks, first))
    return n


@needs_registers
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_numbers_of_wanted_elements_are_appended(share):
    rng = np.random.default_rng(3)
    values, marks = rng.random(160).astype(np.float32), (rng.random(160) < 0.3).astype(np.uint8)
    values[[5, 90]] = np.nan, np.inf
    limit, out = np.float32(1.0 - share), np.full(176, -1, np.int32)
    n = noted(values, marks, limit, out)
    assert out[:n].tolist() == np.flatnonzero((values >= limit) & (marks == 0)).tolist()
    for k in range(16):  # each bit alone, and all but it
        for bits in (1 << k, 0xFFFF ^ (1 << k)):
            assert appended(np.uint16(bits), out) == bin(bits).count("1")
            assert out[3 : 3 + bin(bits).count("1")].tolist() == [100 + j for j in range(16) if bits >> j & 1]


@numba.njit
def appended(bits, out):
    return lanes.append_numbers(out, 3, 100, bits) - 3
