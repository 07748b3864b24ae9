"""The best cuts of 16 features at a time, with sums and best cuts in registers; see `lanes`."""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import types

from ranksieve.kernels.lanes import LONG, address, constant, intrinsic, splat

HALF = 8  # of the 16 features: as many 64-bit numbers as a register holds
VECTOR, DOUBLES = ir.VectorType(LONG, HALF), ir.VectorType(ir.DoubleType(), HALF)


class Leaf(NamedTuple):
    """What the cuts of one leaf have in common, each number in all elements of a register."""

    masks: Any
    shifts: Any
    fewest: Any
    n_docs: Any
    sum: Any


class Seconds(NamedTuple):
    """What they have in common of second derivatives: the unit of their sums, the whole sum, the least on a side."""

    unit: Any
    sum: Any
    least: Any
    l2: Any
    newton: Any  # whether the gain divides by them, and not by documents


class Best(NamedTuple):
    """Sums of the documents left of the cut, and the best cut so far: its gain as a fraction, and where it lies."""

    sums: Any
    up: Any
    down: Any
    cut: Any
    seconds: Any = None  # the other sums, of second derivatives


@intrinsic
def scan_cuts(typing, hist, start, n_bins, total, count_bits, min_docs, left, gains, cuts):
    """The best variance-gain cuts of 16 features, scanning bins upwards from the sums in `left`.

    `hist[start + 16 * b + k]` is what bin b adds to the left side of feature k: gradient << count_bits | count. Sums
    and best cuts stay in registers from bin to bin. A gain is a fraction, (l² m + r² n) / (n m) with sums l and r of n
    and m documents; two are compared by cross-multiplication, for a division takes as long as all the rest.
    """
    size = types.int64
    return types.void(hist, size, size, size, size, size, left, gains, cuts), _scan


@intrinsic
def scan_cuts_of_two(
    typing, hist, start, n_bins, total, count_bits, min_docs, left, gains, cuts, second, total_hess, hess_unit,
    min_hess, l2, newton, left_hess,
):  # fmt: skip
    """The same where second derivatives are summed too, bins of them from `hist[second]` on.

    Both sides need a sum of `min_hess`; with `newton`, n and m are these sums plus `l2`.
    """
    size, number = types.int64, types.float64
    first = hist, size, size, size, size, size, left, gains, cuts
    return types.void(*first, size, size, number, number, number, types.boolean, left_hess), _scan


def _scan(context, builder, signature, arguments):
    start, n_bins, total, count_bits, min_docs = arguments[1:6]
    more = arguments[9:]  # of second derivatives
    planes = [start, *more[:1]]
    leaf = _leaf(builder, total, count_bits, min_docs)
    seconds = _seconds(builder, *more[1:6]) if more else None
    halves = [LONG(0), LONG(HALF)]
    ends = {"sums": 6, "up": 7, "cut": 8, **({"seconds": 15} if more else {})}  # arguments with the first and last ones

    def at(number, position, kind):
        return address(context, builder, signature.args[number], arguments[number], position, kind)

    def first(half):
        given = {name: at(number, half, DOUBLES if name == "up" else VECTOR) for name, number in ends.items()}
        one = splat(builder, ir.Constant(ir.DoubleType(), 1.0), HALF)
        return Best(down=one, **{name: builder.load(place, align=8) for name, place in given.items()})

    def step(bin_, bests):
        row = builder.mul(bin_, LONG(2 * HALF))
        number = splat(builder, bin_, HALF)
        for half, best in zip(halves, bests, strict=True):
            place = builder.add(row, half)
            added = [builder.load(at(0, builder.add(plane, place), VECTOR), align=8) for plane in planes]
            yield _better(builder, leaf, seconds, best, added, number)

    for half, best in zip(halves, _loop(builder, n_bins, [first(half) for half in halves], step), strict=True):
        best = best._replace(up=builder.fdiv(best.up, best.down))
        for name, number in ends.items():
            value = getattr(best, name)
            builder.store(value, at(number, half, value.type), align=8)
    return context.get_dummy_value()


def _leaf(builder, total, count_bits, min_docs):
    mask = builder.sub(builder.shl(LONG(1), count_bits), LONG(1))
    total_sum = builder.sitofp(builder.ashr(total, count_bits), ir.DoubleType())
    parts = mask, count_bits, min_docs, builder.and_(total, mask), total_sum
    return Leaf(*(splat(builder, part, HALF) for part in parts))


def _seconds(builder, total_hess, hess_unit, min_hess, l2, newton):
    total_sum = builder.fmul(builder.sitofp(total_hess, ir.DoubleType()), hess_unit)
    return Seconds(*(splat(builder, part, HALF) for part in (hess_unit, total_sum, min_hess, l2, newton)))


def _better(builder, leaf, seconds, best, added, number):
    """The best cuts after one more bin."""
    sums = builder.add(best.sums, added[0])
    n_left = builder.and_(sums, leaf.masks)
    n_right = builder.sub(leaf.n_docs, n_left)
    sum_left = builder.sitofp(builder.ashr(sums, leaf.shifts), DOUBLES)
    sum_right = builder.fsub(leaf.sum, sum_left)
    x, y = builder.sitofp(n_left, DOUBLES), builder.sitofp(n_right, DOUBLES)
    possible = [builder.icmp_signed(">=", n, leaf.fewest) for n in (n_left, n_right)]
    second_sums = None
    if seconds is not None:
        second_sums = builder.add(best.seconds, added[1])
        second_left = builder.fmul(builder.sitofp(second_sums, DOUBLES), seconds.unit)
        second_right = builder.fsub(seconds.sum, second_left)
        x = builder.select(seconds.newton, builder.fadd(second_left, seconds.l2), x)
        y = builder.select(seconds.newton, builder.fadd(second_right, seconds.l2), y)
        possible += [builder.fcmp_ordered(">=", side, seconds.least) for side in (second_left, second_right)]
        possible += [builder.fcmp_ordered(">", side, constant(DOUBLES, 0.0)) for side in (x, y)]
    up = builder.fadd(
        builder.fmul(builder.fmul(sum_left, sum_left), y), builder.fmul(builder.fmul(sum_right, sum_right), x)
    )
    down = builder.fmul(x, y)
    better = builder.fcmp_ordered(">", builder.fmul(up, best.down), builder.fmul(best.up, down))
    better = reduce(builder.and_, possible, better)
    return Best(
        sums, builder.select(better, up, best.up), builder.select(better, down, best.down),
        builder.select(better, number, best.cut), second_sums,
    )  # fmt: skip


def _loop(builder, n_steps, first, step):
    """Code for `for number in range(n_steps): bests = step(number, bests)`; what it leaves."""
    before = builder.block
    head, body, done = (builder.append_basic_block(name) for name in ("head", "body", "done"))
    builder.branch(head)
    builder.position_at_end(head)
    number = builder.phi(LONG)
    number.add_incoming(LONG(0), before)
    carried = []
    for best in first:
        phis = Best(*(value and builder.phi(value.type) for value in best))
        _come_from(before, phis, best)
        carried.append(phis)
    builder.cbranch(builder.icmp_signed("<", number, n_steps), body, done)

    builder.position_at_end(body)
    for phis, best in zip(carried, step(number, carried), strict=True):
        _come_from(body, phis, best)
    number.add_incoming(builder.add(number, LONG(1)), body)
    builder.branch(head)
    builder.position_at_end(done)
    return carried


def _come_from(block, phis, best):
    for phi, value in zip(phis, best, strict=True):
        if phi is not None:
            phi.add_incoming(value, block)
