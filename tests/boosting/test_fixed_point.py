"""Gradients as integers: sums do not overflow, are close to those of floats, and do not depend on the split of rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksieve.boosting import fixed_point
from ranksieve.boosting.fixed_point import Extent, Scale, Scales, Sums, fits_one_integer, to_fixed_point
from ranksieve.kernels.rounding import MANY_ROWS


def scales_of(grad: np.ndarray, hess: np.ndarray, *, with_hess: bool = True, key: int = 0) -> Scales:
    extent = Extent.of(grad, hess)
    return Scales.of(extent, extent.sums(grad, hess), with_hess=with_hess, key=key)


def unpacked(total: np.ndarray, scale: Scale) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients and second derivatives as floats, and counts, of packed sums."""
    hess = (total >> scale.count_bits) & ((1 << scale.hess_bits) - 1)
    return scale.grad_sum(total), scale.hess_sum(hess), scale.count(total)


def test_exact_sums_are_close_and_do_not_overflow():
    rng = np.random.default_rng(1)
    grad = rng.standard_normal(100_000) * 10.0 ** rng.integers(-30, 3, 100_000)
    hess = np.abs(grad)
    extent = Extent.of(grad, hess)
    exact = Scale.exact(extent, extent.sums(grad, hess))
    fixed = to_fixed_point(grad, hess, Scales(exact, exact, 2, 0))
    total = fixed.packed.sum()
    assert exact.count(total) == len(grad)
    np.testing.assert_allclose(exact.grad_sum(total), grad.sum(), rtol=1e-6, atol=np.abs(grad).sum() * 1e-8)
    np.testing.assert_allclose(exact.hess_sum(fixed.hess.sum()), hess.sum(), rtol=1e-8)
    assert scales_of(np.zeros(3), np.zeros(3), with_hess=False).exact.grad_sum(np.int64(3)) == 0.0


@pytest.mark.parametrize("with_hess", [False, True])
def test_parts_agree_on_scales_and_make_the_same_integers(with_hess):
    rng = np.random.default_rng(2)
    grad, hess = rng.standard_normal(1000) * 10.0 ** rng.integers(-9, 9, 1000), rng.random(1000)
    parts = [slice(0, 10), slice(10, 10), slice(10, 1000)]
    extent = Extent.joined(Extent.of(grad[part], hess[part]) for part in parts)
    sums = Sums.joined(extent.sums(grad[part], hess[part]) for part in parts)
    scales = Scales.of(extent, sums, with_hess=with_hess, key=7)
    assert scales == scales_of(grad, hess, with_hess=with_hess, key=7)
    whole = to_fixed_point(grad, hess, scales)
    together = [to_fixed_point(grad[part], hess[part], scales, first_row=part.start).packed for part in parts]
    np.testing.assert_array_equal(np.concatenate(together), whole.packed)
    some = np.arange(3, 1000, 7, dtype=np.int32)  # integers follow the number of a row, not its place
    np.testing.assert_array_equal(to_fixed_point(grad[some], hess[some], scales, some).packed, whole.packed[some])


def adversarial(kind: str, n: int, magnitude: float, rng: np.random.Generator) -> np.ndarray:
    if kind == "one row":
        return np.where(np.arange(n) == rng.integers(n), magnitude, 0.0)
    if kind == "one row and dust":
        return np.where(np.arange(n) == rng.integers(n), magnitude, magnitude * 2.0**-31)
    if kind == "equal":
        return np.full(n, magnitude)
    if kind == "just above half a unit":
        return np.full(n, magnitude * 0.5000001)
    return magnitude * 10.0 ** rng.uniform(-12, 0, n)


@settings(max_examples=50, deadline=None)
@given(
    kinds=st.tuples(*2 * [st.sampled_from(["one row", "one row and dust", "equal", "just above half a unit", "any"])]),
    n=st.sampled_from([1, 2, 3, 4, 7, 8, 15, 16, 63, 64, 1023, 1024, 65_535, 65_536]),
    magnitudes=st.tuples(*2 * [st.sampled_from([1e-310, 1e-300, 1e-20, 1.0, 1.5, 2.0**40, 1e300])]),
    signs=st.sampled_from(["plus", "minus", "both"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_packed_sums_never_overflow(kinds, n, magnitudes, signs, seed):
    """Every part of a packed sum is the sum of that part: neither field runs over into the next."""
    rng = np.random.default_rng(seed)
    grad, hess = (adversarial(kind, n, magnitude, rng) for kind, magnitude in zip(kinds, magnitudes, strict=True))
    if signs != "plus":
        grad *= -1.0 if signs == "minus" else rng.choice([-1.0, 1.0], n)
    scales = scales_of(grad, hess, key=seed)
    scale = scales.split
    packed = to_fixed_point(grad, hess, scales).packed
    g, h = packed >> (scale.hess_bits + scale.count_bits), (packed >> scale.count_bits) & ((1 << scale.hess_bits) - 1)
    assert (packed & ((1 << scale.count_bits) - 1) == 1).all()
    np.testing.assert_allclose(np.ldexp(g, -scale.grad_exponent), grad, rtol=0, atol=2.0**-scale.grad_exponent)
    assert h.sum() < 1 << scale.hess_bits
    assert np.abs(g).sum() < 1 << (63 - scale.hess_bits - scale.count_bits)
    total = packed.sum()
    assert scale.count(total) == n
    assert total >> (scale.hess_bits + scale.count_bits) == g.sum()
    assert (total >> scale.count_bits) & ((1 << scale.hess_bits) - 1) == h.sum()
    if hess.max() > 0:  # no bit of the field is wasted, but for the room that rounding needs
        assert (h.sum() + 16 * 2.0 ** (scale.hess_bits / 2) + 145) * 4 >= 1 << scale.hess_bits


def test_rounding_is_unbiased_and_spreads_as_it_should():
    rng = np.random.default_rng(0)
    grad, hess = rng.standard_normal(2000), rng.random(2000)
    some = np.arange(0, 2000, 3)
    sums = []
    for key in range(400):
        scales = scales_of(grad, hess, key=key * 1_000_003)
        packed = to_fixed_point(grad, hess, scales).packed[some]
        sums.append(unpacked(packed.sum(), scales.split)[:2])
    for found, values, exponent in zip(
        np.transpose(sums), (grad, hess), (scales.split.grad_exponent, scales.split.hess_exponent), strict=True
    ):
        deviation = np.sqrt(len(some) / 6) * 2.0**-exponent  # a fraction f has the variance f (1 - f), 1/6 on average
        assert abs(found.mean() - values[some].sum()) < 4 * deviation / np.sqrt(len(found))
        assert 0.85 < found.std() / deviation < 1.15


def test_numbers_that_units_can_hold_are_not_rounded():
    grad, hess = np.random.default_rng(0).integers(-9, 10, 500) / 4, np.ones(500)
    scales = scales_of(grad, hess, key=5)
    g, h, n = unpacked(to_fixed_point(grad, hess, scales).packed, scales.split)
    assert (g == grad).all() and (h == 1.0).all() and (n == 1).all()


def sums_of(n: int, share: float) -> tuple[Extent, Sums]:
    """Of n rows, of which a share has derivatives of 1 and the others of 0."""
    total = int(n * share) << 29
    return Extent(n, 1.0, 1.0), Sums(total, total >> 1, total, total >> 1)


def test_one_integer_holds_all_sums_up_to_a_number_of_rows():
    assert fits_one_integer(1) and fits_one_integer(2**28 - 1) and not fits_one_integer(2**28)
    for n, planes in ((2**28 - 1, 1), (2**28, 2)):
        extent, sums = sums_of(n, 2.0**-14)
        scales = Scales.of(extent, sums, with_hess=True, key=0)
        assert scales.n_planes == planes and (scales.split.hess_bits > 0) == (planes == 1)
        assert Scales.of(extent, sums._replace(hess=0, hess_squares=0), with_hess=False, key=0).n_planes == 1
    narrow = Scale.packed(*sums_of(2**28 - 1, 2.0**-14))
    assert narrow is not None and (narrow.count_bits, narrow.hess_bits) == (28, 17)


@pytest.mark.parametrize(("share", "most"), [(1.0, 1 << 19), (2.0**-10, 1 << 26)])
def test_one_integer_holds_sums_while_their_noise_is_small(share, most):
    """The more rows have an equal part in the sums, the more bits these need."""
    for n, planes in ((most, 1), (2 * most, 2)):
        assert Scales.of(*sums_of(n, share), with_hess=True, key=0).n_planes == planes


def noise_of(values: np.ndarray, exponent: int) -> float:
    """What rounding at random to units of 2^-exponent adds to the variance of a sum, as a share of Σ value²."""
    units = np.ldexp(values, exponent)
    fraction = units - np.floor(units)
    return float((fraction * (1 - fraction)).sum() / (units**2).sum())


@pytest.mark.parametrize("kind", ["equal", "normal", "few large", "one huge"])
def test_the_noise_of_rounding_is_small_for_many_rows_too(kind):
    rng = np.random.default_rng(3)
    n = MANY_ROWS + 1
    grad = rng.standard_normal(n)
    if kind == "equal":
        grad = np.where(grad > 0, 1.0, -1.0) * 0.7
    elif kind == "few large":
        grad *= np.where(np.arange(n) % 1000 == 0, 1.0, 1e-4)
    elif kind == "one huge":
        grad[7] = 1e6
    scale = scales_of(grad, np.abs(grad)).split
    assert scale.hess_bits > 0
    for values, exponent in ((grad, scale.grad_exponent), (np.abs(grad), scale.hess_exponent)):
        assert noise_of(values, exponent) < 2.0**-6
        # and there are 18 bits for the sum of all, so that one row alone does not set the unit of the others
        assert np.abs(np.ldexp(values, exponent)).sum() >= 2.0**16


def test_of_many_rows_those_with_small_derivatives_round_to_zero():
    rng = np.random.default_rng(0)
    for n in (MANY_ROWS, MANY_ROWS + 1):
        grad, hess = rng.standard_normal(n) * (rng.random(n) < 0.001), np.full(n, 1e-5)
        grad[grad == 0] = 1e-5
        hess[:100] = 1.0
        scales = scales_of(grad, hess, key=3)
        g, h, count = unpacked(to_fixed_point(grad, hess, scales).packed, scales.split)
        zeros = ((g == 0) & (h == 0)).mean()
        assert zeros > 0.8 if n > MANY_ROWS else zeros < 0.2
        assert (count == 1).all()


def test_the_border_is_where_fewer_bits_are_left_than_needed(monkeypatch):
    monkeypatch.setattr(fixed_point, "LEAST_BITS", 28)
    assert fits_one_integer(2**8 - 1) and not fits_one_integer(2**8)
