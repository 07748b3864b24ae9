"""The best cuts of 16 features at a time, with sums and best cuts in registers; see `lanes`.

A register holds 8 numbers of 64 bits with AVX-512, and 4 without. Two registers are scanned side by side; AVX2 has too
few registers for more. AVX2 also has no instruction that converts such numbers to floats: LLVM converts them one by
one. Therefore numbers from 0 to 2^52 are converted in another way. The lowest bits of the float 2^52 + number are the
number; then 2^52 is subtracted. The result has the same bits.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import types

from ranksieve.kernels.histograms import LANES
from ranksieve.kernels.lanes import LONG, address, constant, intrinsic, splat

DOUBLE = ir.DoubleType()
TWO_TO_52 = 0x4330000000000000  # the bits of the float 2^52


class LeafTerms(NamedTuple):
    """What the cuts of one leaf have in common, see `gain.CutTerms`, each number in all elements of a register."""

    count_masks: Any
    grad_shifts: Any
    hess_shifts: Any  # used if second derivatives are in packed sums, as are `hess_masks`
    hess_masks: Any
    most_rows: Any
    most_hess: Any
    most_weight: Any  # `most_rows` or, with Newton gain, `most_hess`, as a float
    least_weight: Any  # counted in units
    mean: Any  # gradient per unit
    unit: Any
    no_gradient: Any  # 2^52 + the bits of a gradient of 0, see `CodeWriter.gradients`


class BestCuts(NamedTuple):
    """Sums of the documents left of the cut, and the best cuts so far: their fractions d² / (x y), and their bins."""

    sums: Any
    numerator: Any
    denominator: Any
    cut: Any
    seconds: Any = None  # sums of second derivatives, where these are summed on their own


@intrinsic
def scan_cuts(typing, hist, n_bins, terms, rules, left, fractions, cuts):
    """The best variance-gain cuts of 16 features in one leaf, scanning bins upwards from the sums in `left`.

    `hist[16 * b + k]` is what bin b adds to the left side of feature k: gradient << count_bits | count. Sums and best
    cuts stay in registers from bin to bin. `gain` explains the fractions d² / (x y) of cuts; `fractions` are 0 before.
    `terms.fewest` has been subtracted from the sums in `left`. A number of rows that is too small is then negative,
    which is a very large number without sign.
    """
    return types.void(hist, types.int64, terms, rules, left, fractions, cuts), _scan


@intrinsic
def scan_cuts_of_two(typing, hist, n_bins, terms, rules, left, fractions, cuts, second, left_hess):
    """The same where second derivatives are summed on their own, bins of them from `hist[second]` on.

    `terms.least_hess` has been subtracted from the sums in `left_hess`. With `rules.newton`, weights are second
    derivatives.
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
    """Code of all four functions. `newton` is known for packed sums; otherwise the rules say it when the code runs."""
    n_bins, more = arguments[1], arguments[7:]
    planes = [LONG(0), *more[:1]]
    terms, rules = (_fields(builder, signature.args[i], arguments[i]) for i in (2, 3))
    features = context.codegen().magic_tuple()[2]
    width = 8 if "+avx512f" in features else 4  # numbers in a register
    code = CodeWriter(builder, width, "+avx512dq" in features, packed)
    leaf = _leaf_terms(code, terms, rules, newton)
    if more:
        newton = splat(builder, rules["newton"], width)
    # arguments that have the first values; the last values are written to them
    ends = {"sums": 4, "numerator": 5, "cut": 6, **({"seconds": 8} if more else {})}

    def at(number, position, kind):
        return address(context, builder, signature.args[number], arguments[number], position, kind)

    def first(lane):
        given = {}
        for name, number in ends.items():
            kind = code.doubles if name == "numerator" else code.numbers
            given[name] = builder.load(at(number, lane, kind), align=8)
        best = BestCuts(denominator=constant(code.doubles, 1.0), **given)
        return best._replace(sums=code.without_sign(best.sums))

    for start in range(0, LANES, 2 * width):
        lanes = [LONG(start), LONG(start + width)]

        def step(numbers, bests, lanes=lanes):
            bin_, number = numbers
            row = builder.mul(bin_, LONG(LANES))
            for lane, best in zip(lanes, bests, strict=True):
                place = builder.add(row, lane)
                added = [builder.load(at(0, builder.add(plane, place), code.numbers), align=8) for plane in planes]
                yield _better(code, leaf, best, added, number, newton)

        for lane, best in zip(lanes, _loop(code, n_bins, [first(lane) for lane in lanes], step), strict=True):
            fraction = builder.fdiv(builder.fdiv(builder.fdiv(best.numerator, best.denominator), leaf.unit), leaf.unit)
            best = best._replace(numerator=fraction, sums=code.without_sign(best.sums))
            for name, number in ends.items():
                value = getattr(best, name)
                builder.store(value, at(number, lane, value.type), align=8)
    return context.get_dummy_value()


class CodeWriter(NamedTuple):
    """Writes LLVM code for a processor."""

    builder: Any
    width: int  # numbers in a register
    converts: bool  # whether one instruction converts 64-bit numbers to floats
    packed: bool  # whether second derivatives are in packed sums

    @property
    def numbers(self):
        return ir.VectorType(LONG, self.width)

    @property
    def doubles(self):
        return ir.VectorType(DOUBLE, self.width)

    def to_doubles(self, values):
        """Integers as floats; with packed sums, integers are from 0 to 2^52."""
        if self.converts or not self.packed:
            return self.builder.sitofp(values, self.doubles)
        above = self.builder.or_(values, constant(self.numbers, TWO_TO_52))
        return self.builder.fsub(self.builder.bitcast(above, self.doubles), constant(self.doubles, 2.0**52))

    def without_sign(self, sums):
        """Packed sums plus 2^63, and back: AVX2 has no shift that repeats a sign."""
        if self.converts or not self.packed:
            return sums
        return self.builder.xor(sums, constant(self.numbers, -(1 << 63)))

    def gradients(self, sums, leaf):
        """The gradients in sums, as floats. At least 12 bits are below the gradients of packed sums."""
        if self.converts or not self.packed:
            return self.to_doubles(self.builder.ashr(sums, leaf.grad_shifts))
        positive = self.builder.lshr(sums, leaf.grad_shifts)
        above = self.builder.bitcast(self.builder.or_(positive, constant(self.numbers, TWO_TO_52)), self.doubles)
        return self.builder.fsub(above, leaf.no_gradient)

    def sides(self, left, both, most_weight):
        """Integers left of the cut, and right of it, `both` - `left`, as floats."""
        first = self.to_doubles(left)
        if self.packed:  # below 2^52, so that the difference is exact
            return first, self.builder.fsub(most_weight, first)
        return first, self.to_doubles(self.builder.sub(both, left))


def _fields(builder, type_, value):
    """The members of a NamedTuple by name."""
    return {name: builder.extract_value(value, i) for i, name in enumerate(type_.fields)}


def _leaf_terms(code, terms, rules, newton):
    """The terms of a leaf in registers. Weights are counted in units, so that they need no multiplication.

    Units are powers of 2, so that this changes no rounding. With a unit below 2^-110 times the least weight, products
    of weights would be infinite. Such a unit is replaced by 2^-110 times the least weight. Sums of units are lost to
    rounding with either.
    """
    builder = code.builder
    exponent = builder.and_(builder.bitcast(terms["least_weight"], LONG), LONG(0x7FF << 52))
    smallest = builder.sub(exponent, LONG(110 << 52))
    bits = builder.bitcast(terms["unit"], LONG)  # floats above 0 are in the order of their bits
    unit = builder.bitcast(builder.select(builder.icmp_signed(">", smallest, bits), smallest, bits), DOUBLE)
    parts = {
        "count_masks": _mask(builder, rules["count_bits"]),
        "grad_shifts": builder.add(rules["hess_bits"], rules["count_bits"]),
        "hess_shifts": rules["count_bits"],
        "hess_masks": _mask(builder, rules["hess_bits"]),
        **{name: terms[name] for name in ("most_rows", "most_hess")},
        "unit": unit,
        "most_weight": builder.sitofp(terms["most_hess" if newton else "most_rows"], DOUBLE),
        "least_weight": builder.fdiv(terms["least_weight"], unit),
        "mean": builder.fmul(terms["mean"], unit),
    }
    zero = builder.lshr(LONG(-(1 << 63)), parts["grad_shifts"])  # see `CodeWriter.gradients`
    parts["no_gradient"] = builder.bitcast(builder.or_(zero, LONG(TWO_TO_52)), DOUBLE)
    return LeafTerms(**{name: splat(builder, part, code.width) for name, part in parts.items()})


def _mask(builder, bits):
    """An integer whose `bits` lowest bits are 1."""
    return builder.sub(builder.shl(LONG(1), bits), LONG(1))


def _better(code, leaf, best, added, number, newton):
    """The best cuts after one more bin. The least numbers of rows and second derivatives have been subtracted."""
    builder, packed = code.builder, code.packed
    sums = builder.add(best.sums, added[0])
    counted = builder.and_(sums, leaf.count_masks)
    possible = builder.icmp_signed("<=", counted, leaf.most_rows)
    second_sums = None
    if packed:
        second = builder.and_(builder.lshr(sums, leaf.hess_shifts), leaf.hess_masks)
        possible = builder.and_(possible, builder.icmp_signed("<=", second, leaf.most_hess))
    elif len(added) == 2:
        second_sums = second = builder.add(best.seconds, added[1])
        possible = builder.and_(possible, builder.icmp_unsigned("<=", second, leaf.most_hess))
    left, both = counted, leaf.most_rows
    if newton is True:
        left, both = second, leaf.most_hess
    elif len(added) == 2:
        left, both = builder.select(newton, second, counted), builder.select(newton, leaf.most_hess, leaf.most_rows)
    x, y = (builder.fadd(side, leaf.least_weight) for side in code.sides(left, both, leaf.most_weight))
    d = builder.fsub(code.gradients(sums, leaf), builder.fmul(leaf.mean, x))
    numerator, denominator = builder.fmul(d, d), builder.fmul(x, y)
    mine, others = builder.fmul(numerator, best.denominator), builder.fmul(best.numerator, denominator)
    better = builder.and_(builder.fcmp_ordered(">", mine, others), possible)
    return BestCuts(
        sums, builder.select(better, numerator, best.numerator), builder.select(better, denominator, best.denominator),
        builder.select(better, number, best.cut), second_sums,
    )  # fmt: skip


def _loop(code, n_steps, first, step):
    """Code for `for number in range(n_steps): bests = step(number, bests)`; returns the last `bests`.

    The number is passed as a scalar, and in all elements of a register.
    """
    builder = code.builder
    before = builder.block
    head, body, done = (builder.append_basic_block(name) for name in ("head", "body", "done"))
    builder.branch(head)
    builder.position_at_end(head)
    number = builder.phi(LONG)
    number.add_incoming(LONG(0), before)
    repeated = builder.phi(code.numbers)
    repeated.add_incoming(constant(code.numbers, 0), before)
    carried = []
    for best in first:
        phis = BestCuts(*(value and builder.phi(value.type) for value in best))
        _come_from(before, phis, best)
        carried.append(phis)
    builder.cbranch(builder.icmp_signed("<", number, n_steps), body, done)

    builder.position_at_end(body)
    for phis, best in zip(carried, step((number, repeated), carried), strict=True):
        _come_from(body, phis, best)
    number.add_incoming(builder.add(number, LONG(1)), body)
    repeated.add_incoming(builder.add(repeated, constant(code.numbers, 1)), body)
    builder.branch(head)
    builder.position_at_end(done)
    return carried


def _come_from(block, phis, best):
    """Add the values of `best` to phis, for the case that control comes from this block."""
    for phi, value in zip(phis, best, strict=True):
        if phi is not None:
            phi.add_incoming(value, block)
