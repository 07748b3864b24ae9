"""The best cuts of 16 features at a time, with sums and best cuts in registers; see `lanes`."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import types

from ranksieve.kernels.lanes import LONG, address, intrinsic, splat

HALF = 8  # of the 16 features: as many 64-bit numbers as a register holds
VECTOR, DOUBLES = ir.VectorType(LONG, HALF), ir.VectorType(ir.DoubleType(), HALF)


class Leaf(NamedTuple):
    """What the cuts of one leaf have in common, see `gain.CutTerms`, each number in all elements of a register."""

    count_masks: Any
    grad_shifts: Any
    hess_shifts: Any  # where second derivatives are in packed sums
    hess_masks: Any
    most_rows: Any
    most_hess: Any
    unit: Any
    least_weight: Any
    mean: Any


class Best(NamedTuple):
    """Sums of the documents left of the cut, and the best cut so far: its fraction d² / (x y), and where it lies."""

    sums: Any
    up: Any
    down: Any
    cut: Any
    seconds: Any = None  # the other sums, of second derivatives


@intrinsic
def scan_cuts(typing, hist, n_bins, terms, rules, left, fractions, cuts):
    """The best variance-gain cuts of 16 features in one leaf, scanning bins upwards from the sums in `left`.

    `hist[16 * b + k]` is what bin b adds to the left side of feature k: gradient << count_bits | count. Sums and best
    cuts stay in registers from bin to bin. `gain` explains the fractions d² / (x y) of cuts; a cut that is found has a
    larger one than `fractions` has. Sums in `left` are less `terms.fewest`: a number of rows that is too small is
    then negative, which is a very large one without sign.
    """
    return types.void(hist, types.int64, terms, rules, left, fractions, cuts), _scan


@intrinsic
def scan_cuts_of_two(typing, hist, n_bins, terms, rules, left, fractions, cuts, second, left_hess):
    """The same where second derivatives are summed on their own, bins of them from `hist[second]` on.

    Sums in `left_hess` are less `terms.least_hess`. With `rules.newton`, weights are second derivatives.
    """
    return types.void(hist, types.int64, terms, rules, left, fractions, cuts, types.int64, left_hess), _scan


@intrinsic
def scan_cuts_of_packed(typing, hist, n_bins, terms, rules, left, fractions, cuts):
    """Like `scan_cuts_of_two`, variance gain, where second derivatives are in packed sums: see `gain.SplitRules`."""
    return types.void(hist, types.int64, terms, rules, left, fractions, cuts), partial(_scan, packed=True, newton=False)


@intrinsic
def scan_newton_cuts_of_packed(typing, hist, n_bins, terms, rules, left, fractions, cuts):
    """The same with Newton gain."""
    return types.void(hist, types.int64, terms, rules, left, fractions, cuts), partial(_scan, packed=True, newton=True)


def _scan(context, builder, signature, arguments, *, packed=False, newton=None):
    """Code of all four. `newton` is known for packed sums; otherwise the rules say it when the code runs."""
    n_bins, more = arguments[1], arguments[7:]
    planes = [LONG(0), *more[:1]]
    terms, rules = (_fields(builder, signature.args[i], arguments[i]) for i in (2, 3))
    leaf = _leaf(builder, terms, rules)
    if more:
        newton = splat(builder, rules["newton"], HALF)
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
            yield _better(builder, leaf, best, added, number, packed, newton)

    for half, best in zip(halves, _loop(builder, n_bins, [first(half) for half in halves], step), strict=True):
        best = best._replace(up=builder.fdiv(best.up, best.down))
        for name, number in ends.items():
            value = getattr(best, name)
            builder.store(value, at(number, half, value.type), align=8)
    return context.get_dummy_value()


def _fields(builder, type_, value):
    """The members of a NamedTuple by name."""
    return {name: builder.extract_value(value, i) for i, name in enumerate(type_.fields)}


def _leaf(builder, terms, rules):
    parts = {
        "count_masks": _mask(builder, rules["count_bits"]),
        "grad_shifts": builder.add(rules["hess_bits"], rules["count_bits"]),
        "hess_shifts": rules["count_bits"],
        "hess_masks": _mask(builder, rules["hess_bits"]),
        **{name: terms[name] for name in ("most_rows", "most_hess", "unit", "least_weight", "mean")},
    }
    return Leaf(**{name: splat(builder, part, HALF) for name, part in parts.items()})


def _mask(builder, bits):
    """So many low bits set."""
    return builder.sub(builder.shl(LONG(1), bits), LONG(1))


def _better(builder, leaf, best, added, number, packed, newton):
    """The best cuts after one more bin. Numbers of rows and second derivatives are those above the least ones."""
    sums = builder.add(best.sums, added[0])
    counted = builder.and_(sums, leaf.count_masks)
    possible = builder.icmp_unsigned("<=", counted, leaf.most_rows)
    second_sums = None
    if packed:
        second = builder.and_(builder.lshr(sums, leaf.hess_shifts), leaf.hess_masks)
    elif len(added) == 2:
        second_sums = second = builder.add(best.seconds, added[1])
    if packed or len(added) == 2:
        possible = builder.and_(possible, builder.icmp_unsigned("<=", second, leaf.most_hess))
    left, both = counted, leaf.most_rows
    if newton is True:
        left, both = second, leaf.most_hess
    elif len(added) == 2:
        left, both = builder.select(newton, second, counted), builder.select(newton, leaf.most_hess, leaf.most_rows)
    # both from whole numbers, so that the side with less weight is as exact as the other
    x, y = (
        builder.fadd(builder.fmul(builder.sitofp(side, DOUBLES), leaf.unit), leaf.least_weight)
        for side in (left, builder.sub(both, left))
    )
    grad = builder.sitofp(builder.ashr(sums, leaf.grad_shifts), DOUBLES)
    d = builder.fsub(grad, builder.fmul(leaf.mean, x))
    up, down = builder.fmul(d, d), builder.fmul(x, y)
    better = builder.fcmp_ordered(">", builder.fmul(up, best.down), builder.fmul(best.up, down))
    better = builder.and_(better, possible)
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
