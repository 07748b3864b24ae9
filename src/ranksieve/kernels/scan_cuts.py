"""The best cuts of 16 features at a time, with sums and best cuts in registers; see `lanes`."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import types

from ranksieve.kernels.lanes import LONG, address, constant, intrinsic, splat

HALF = 8  # of the 16 features: as many 64-bit numbers as a register holds
VECTOR, DOUBLES = ir.VectorType(LONG, HALF), ir.VectorType(ir.DoubleType(), HALF)


class Leaf(NamedTuple):
    """What the cuts of one leaf have in common, each number in all elements of a register."""

    masks: Any
    shifts: Any  # of gradients
    fewest: Any
    range: Any  # a left side may have from `fewest` to `fewest + range` documents
    n_docs: Any
    sum: Any


class Seconds(NamedTuple):
    """What they have in common of second derivatives: the unit of their sums, the whole sum, the least on a side."""

    unit: Any
    sum: Any
    least: Any
    l2: Any
    newton: Any  # whether the gain divides by them, and not by documents; True or False where that is known
    shifts: Any  # where they are in packed sums
    masks: Any


class Best(NamedTuple):
    """Sums of the documents left of the cut, and the best cut so far: its gain as a fraction, and where it lies."""

    sums: Any
    up: Any
    down: Any
    cut: Any
    seconds: Any = None  # the other sums, of second derivatives


@intrinsic
def scan_cuts(typing, hist, n_bins, node, rules, left, gains, cuts):
    """The best variance-gain cuts of 16 features in one leaf, scanning bins upwards from the sums in `left`.

    `hist[16 * b + k]` is what bin b adds to the left side of feature k: gradient << count_bits | count. Sums and best
    cuts stay in registers from bin to bin. The gain of the two sides, `gain.leaf_gain`, is a fraction,
    (l² m + r² n) / (n m) with sums l and r of n and m rows; two are compared by cross-multiplication, for a division
    takes as long as all the rest. The leaf has at least `2 * rules.min_docs` rows.
    """
    return types.void(hist, types.int64, node, rules, left, gains, cuts), _scan


@intrinsic
def scan_cuts_of_two(typing, hist, n_bins, node, rules, left, gains, cuts, second, left_hess):
    """The same where second derivatives are summed on their own, bins of them from `hist[second]` on.

    Both sides need a sum of `rules.min_hess`; with `rules.newton`, n and m are these sums plus `rules.l2`.
    """
    return types.void(hist, types.int64, node, rules, left, gains, cuts, types.int64, left_hess), _scan


@intrinsic
def scan_cuts_of_packed(typing, hist, n_bins, node, rules, left, gains, cuts):
    """Like `scan_cuts_of_two`, variance gain, where second derivatives are in packed sums: see `gain.SplitRules`."""
    return types.void(hist, types.int64, node, rules, left, gains, cuts), partial(_scan, packed=True, newton=False)


@intrinsic
def scan_newton_cuts_of_packed(typing, hist, n_bins, node, rules, left, gains, cuts):
    """The same with Newton gain."""
    return types.void(hist, types.int64, node, rules, left, gains, cuts), partial(_scan, packed=True, newton=True)


def _scan(context, builder, signature, arguments, *, packed=False, newton=None):
    """Code of all four. `newton` is known for packed sums; otherwise the rules say it when the code runs."""
    n_bins, more = arguments[1], arguments[7:]
    planes = [LONG(0), *more[:1]]
    node, rules = (_fields(builder, signature.args[i], arguments[i]) for i in (2, 3))
    leaf = _leaf(builder, node, rules)
    seconds = _seconds(builder, node, rules, packed, newton) if more or packed else None
    halves = [LONG(0), LONG(HALF)]
    ends = {"sums": 4, "up": 5, "cut": 6, **({"seconds": 8} if more else {})}  # arguments with the first and last ones

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


def _fields(builder, type_, value):
    """The members of a NamedTuple by name."""
    return {name: builder.extract_value(value, i) for i, name in enumerate(type_.fields)}


def _leaf(builder, node, rules):
    total, mask = node["total"], _mask(builder, rules["count_bits"])
    shift = builder.add(rules["hess_bits"], rules["count_bits"])
    total_sum = builder.sitofp(builder.ashr(total, shift), ir.DoubleType())
    n_docs, fewest = builder.and_(total, mask), rules["min_docs"]
    parts = mask, shift, fewest, builder.sub(n_docs, builder.add(fewest, fewest)), n_docs, total_sum
    return Leaf(*(splat(builder, part, HALF) for part in parts))


def _mask(builder, bits):
    """So many low bits set."""
    return builder.sub(builder.shl(LONG(1), bits), LONG(1))


def _seconds(builder, node, rules, packed, newton):
    shift, mask = rules["count_bits"], _mask(builder, rules["hess_bits"])
    total = builder.and_(builder.lshr(node["total"], shift), mask) if packed else node["hess"]
    total_sum = builder.fmul(builder.sitofp(total, ir.DoubleType()), rules["hess_unit"])
    least, zero = rules["min_hess"], ir.Constant(ir.DoubleType(), 0.0)
    if newton:  # a side that is 0 has no gain; the least sum that is not is one unit
        larger = builder.select(builder.fcmp_ordered(">", least, zero), least, rules["hess_unit"])
        least = builder.select(builder.fcmp_ordered(">", rules["l2"], zero), least, larger)
    parts = rules["hess_unit"], total_sum, least, rules["l2"], rules["newton"], shift, mask
    seconds = Seconds(*(splat(builder, part, HALF) for part in parts))
    return seconds if newton is None else seconds._replace(newton=newton)


def _better(builder, leaf, seconds, best, added, number):
    """The best cuts after one more bin."""
    sums = builder.add(best.sums, added[0])
    n_left = builder.and_(sums, leaf.masks)
    n_right = builder.sub(leaf.n_docs, n_left)
    sum_left = builder.sitofp(builder.ashr(sums, leaf.shifts), DOUBLES)
    sum_right = builder.fsub(leaf.sum, sum_left)
    x, y = builder.sitofp(n_left, DOUBLES), builder.sitofp(n_right, DOUBLES)
    # both sides have enough: one comparison of unsigned numbers, as a leaf that is searched has enough for two
    possible = [builder.icmp_unsigned("<=", builder.sub(n_left, leaf.fewest), leaf.range)]
    second_sums = None
    if seconds is not None:
        if len(added) == 2:
            second_sums = second = builder.add(best.seconds, added[1])
        else:
            second = builder.and_(builder.lshr(sums, seconds.shifts), seconds.masks)
        second_left = builder.fmul(builder.sitofp(second, DOUBLES), seconds.unit)
        second_right = builder.fsub(seconds.sum, second_left)
        possible += [builder.fcmp_ordered(">=", side, seconds.least) for side in (second_left, second_right)]
        weights = [builder.fadd(side, seconds.l2) for side in (second_left, second_right)]
        if seconds.newton is True:
            x, y = weights
        elif seconds.newton is not False:
            x, y = (builder.select(seconds.newton, *pair) for pair in zip(weights, (x, y), strict=True))
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
