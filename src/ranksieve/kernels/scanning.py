"""The best cuts of 16 features at a time, with sums and best cuts in registers; see `lanes`."""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import types

from ranksieve.kernels.lanes import LONG, address, intrinsic, splat

HALF = 8  # of the 16 features: as many 64-bit numbers as a register holds
VECTOR, DOUBLES = ir.VectorType(LONG, HALF), ir.VectorType(ir.DoubleType(), HALF)


class Leaf(NamedTuple):
    """What the cuts of one leaf have in common, each number in all elements of a register."""

    masks: Any
    shifts: Any
    fewest: Any
    n_docs: Any
    sum: Any


class Best(NamedTuple):
    """Sums of the documents left of the cut, and the best cut so far: its gain as a fraction, and where it lies."""

    sums: Any
    up: Any
    down: Any
    cut: Any


@intrinsic
def scan_cuts(typing, hist, start, n_bins, total, count_bits, min_docs, left, gains, cuts):
    """The best variance-gain cuts of 16 features, scanning bins upwards from the sums in `left`.

    `hist[start + 16 * b + k]` is what bin b adds to the left side of feature k: gradient << count_bits | count. Sums
    and best cuts stay in registers from bin to bin. A gain is a fraction, (l² m + r² n) / (n m) with sums l and r of n
    and m documents; two are compared by cross-multiplication, for a division takes as long as all the rest.
    """

    def code(context, builder, signature, arguments):
        hist, start, n_bins, total, count_bits, min_docs, left, gains, cuts = arguments
        kinds = signature.args

        def at(number, array, position, kind):
            return address(context, builder, kinds[number], array, position, kind)

        leaf = _leaf(builder, total, count_bits, min_docs)
        one = splat(builder, ir.Constant(ir.DoubleType(), 1.0), HALF)
        halves = [LONG(0), LONG(HALF)]
        first = [
            Best(
                builder.load(at(6, left, half, VECTOR), align=8), builder.load(at(7, gains, half, DOUBLES), align=8),
                one, builder.load(at(8, cuts, half, VECTOR), align=8),
            )
            for half in halves
        ]  # fmt: skip

        def step(bin_, bests):
            row = builder.add(start, builder.mul(bin_, LONG(2 * HALF)))
            number = splat(builder, bin_, HALF)
            for half, best in zip(halves, bests, strict=True):
                added = builder.load(at(0, hist, builder.add(row, half), VECTOR), align=8)
                yield _better(builder, leaf, best, added, number)

        for half, best in zip(halves, _loop(builder, n_bins, first, step), strict=True):
            gain = builder.fdiv(best.up, best.down)
            for number, array, value in ((6, left, best.sums), (7, gains, gain), (8, cuts, best.cut)):
                builder.store(value, at(number, array, half, value.type), align=8)
        return context.get_dummy_value()

    size = types.int64
    return types.void(hist, size, size, size, size, size, left, gains, cuts), code


def _leaf(builder, total, count_bits, min_docs):
    mask = builder.sub(builder.shl(LONG(1), count_bits), LONG(1))
    total_sum = builder.sitofp(builder.ashr(total, count_bits), ir.DoubleType())
    parts = mask, count_bits, min_docs, builder.and_(total, mask), total_sum
    return Leaf(*(splat(builder, part, HALF) for part in parts))


def _better(builder, leaf, best, added, number):
    """The best cuts after one more bin."""
    sums = builder.add(best.sums, added)
    n_left = builder.and_(sums, leaf.masks)
    n_right = builder.sub(leaf.n_docs, n_left)
    sum_left = builder.sitofp(builder.ashr(sums, leaf.shifts), DOUBLES)
    sum_right = builder.fsub(leaf.sum, sum_left)
    x, y = builder.sitofp(n_left, DOUBLES), builder.sitofp(n_right, DOUBLES)
    up = builder.fadd(
        builder.fmul(builder.fmul(sum_left, sum_left), y), builder.fmul(builder.fmul(sum_right, sum_right), x)
    )
    down = builder.fmul(x, y)
    better = builder.and_(
        builder.and_(builder.icmp_signed(">=", n_left, leaf.fewest), builder.icmp_signed(">=", n_right, leaf.fewest)),
        builder.fcmp_ordered(">", builder.fmul(up, best.down), builder.fmul(best.up, down)),
    )
    return Best(
        sums, builder.select(better, up, best.up), builder.select(better, down, best.down),
        builder.select(better, number, best.cut),
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
        phis = Best(*(builder.phi(value.type) for value in best))
        for phi, value in zip(phis, best, strict=True):
            phi.add_incoming(value, before)
        carried.append(phis)
    builder.cbranch(builder.icmp_signed("<", number, n_steps), body, done)

    builder.position_at_end(body)
    for phis, best in zip(carried, step(number, carried), strict=True):
        for phi, value in zip(phis, best, strict=True):
            phi.add_incoming(value, body)
    number.add_incoming(builder.add(number, LONG(1)), body)
    builder.branch(head)
    builder.position_at_end(done)
    return carried
