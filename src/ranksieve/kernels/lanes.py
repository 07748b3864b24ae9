"""Vector registers as Numba values: `BYTES` (64 × uint8), `WORDS` (8 × uint64), `FLOATS` and `NUMBERS` (16 × 32 bits).

Plain loops leave the choice of instructions, and of what stays in a register, to the vectoriser; the scoring kernels
need both fixed. The functions here are written in LLVM's own vector types, so they compile on every machine: to one
AVX-512 instruction each where there is AVX-512, to several smaller ones elsewhere.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import extending
from numba.core import types
from numba.extending import models, register_model

intrinsic: Any = extending.intrinsic  # its stub takes the first parameter, which Numba fills in, for the caller's


class Lanes(types.Type):
    """A fixed number of equal elements, held in a vector register."""

    def __init__(self, element: types.Type, count: int):
        self.element, self.count = element, count
        super().__init__(name=f"Lanes({element} x {count})")


@register_model(Lanes)
class LanesModel(models.PrimitiveModel):
    def __init__(self, manager, lanes):
        element = manager.lookup(lanes.element).get_value_type()
        super().__init__(manager, lanes, ir.VectorType(element, lanes.count))


BYTES = Lanes(types.uint8, 64)
WORDS = Lanes(types.uint64, 8)
FLOATS = Lanes(types.float32, 16)
NUMBERS = Lanes(types.int32, 16)
BYTE, INT, LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def _pointer(context, builder, array_type, array, position, element):
    """The address of `array[position]`, as a pointer to `element`; arrays are one-dimensional and contiguous."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [position]), element.as_pointer())


def _loader(lanes: Lanes) -> Any:
    def load(typing, array, position):
        """Elements `position`, `position + 1`, … of an array."""

        def code(context, builder, signature, arguments):
            vector = context.get_value_type(lanes)
            pointer = _pointer(context, builder, signature.args[0], *arguments, vector)  # type: ignore[call-arg]
            return builder.load(pointer, align=1)

        return lanes(array, types.intp), code

    return intrinsic(load)


load_bytes = _loader(BYTES)
load_words = _loader(WORDS)
load_floats = _loader(FLOATS)


@intrinsic
def store(typing, array, position, lanes):
    """Write lanes to `array[position:]`; numbers are cut to the array's element type."""

    def code(context, builder, signature, arguments):
        array, position, vector = arguments
        element = context.get_data_type(signature.args[0].dtype)
        if element != vector.type.element:
            vector = builder.trunc(vector, ir.VectorType(element, vector.type.count))
        builder.store(vector, _pointer(context, builder, signature.args[0], array, position, vector.type), align=1)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), code


def _constant(vector, value):
    return ir.Constant(vector, [value] * vector.count)


def _splat(builder, scalar, count):
    vector = ir.VectorType(scalar.type, count)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(INT, 0))
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), _constant(ir.VectorType(INT, count), 0))


@intrinsic
def splat_bytes(typing, value):
    """64 times the same byte."""

    def code(context, builder, signature, arguments):
        return _splat(builder, arguments[0], BYTES.count)

    return BYTES(types.uint8), code


@intrinsic
def splat_numbers(typing, value):
    """16 times the same number."""

    def code(context, builder, signature, arguments):
        return _splat(builder, arguments[0], NUMBERS.count)

    return NUMBERS(types.int32), code


@intrinsic
def add_bytes(typing, left, right):
    """Sums modulo 256."""

    def code(context, builder, signature, arguments):
        return builder.add(*arguments)

    return BYTES(BYTES, BYTES), code


@intrinsic
def above(typing, values, limits):
    """64 bits: which bytes of `values` are larger than those of `limits`."""

    def code(context, builder, signature, arguments):
        return builder.bitcast(builder.icmp_unsigned(">", *arguments), LONG)

    return types.uint64(BYTES, BYTES), code


@intrinsic
def set_where(typing, values, bits, flag):
    """`values` with `flag` or-ed into the bytes whose bit is set."""

    def code(context, builder, signature, arguments):
        values, bits, flag = arguments
        chosen = builder.bitcast(bits, ir.VectorType(ir.IntType(1), BYTES.count))
        flags = builder.select(chosen, _splat(builder, flag, BYTES.count), _constant(values.type, 0))
        return builder.or_(values, flags)

    return BYTES(BYTES, types.uint64, types.uint8), code


@intrinsic
def no_words(typing):
    """512 zero bits."""

    def code(context, builder, signature, arguments):
        return _constant(context.get_value_type(WORDS), 0)

    return WORDS(), code


@intrinsic
def xor_words(typing, left, right):
    """Bits set in exactly one of two."""

    def code(context, builder, signature, arguments):
        return builder.xor(*arguments)

    return WORDS(WORDS, WORDS), code


@intrinsic
def and_or_words(typing, left, right, more):
    """`(left & right) | more`, one instruction."""

    def code(context, builder, signature, arguments):
        left, right, more = arguments
        return builder.or_(builder.and_(left, right), more)

    return WORDS(WORDS, WORDS, WORDS), code


@intrinsic
def add_words(typing, left, right):
    """Sums modulo 2^64."""

    def code(context, builder, signature, arguments):
        return builder.add(*arguments)

    return WORDS(WORDS, WORDS), code


@intrinsic
def count_larger(typing, counts, values, others):
    """`counts + (values > others)`, comparing signed words."""

    def code(context, builder, signature, arguments):
        counts, values, others = arguments
        return builder.sub(counts, builder.sext(builder.icmp_signed(">", values, others), counts.type))

    return WORDS(WORDS, WORDS, WORDS), code


@intrinsic
def look_up(typing, table, positions):
    """`table[positions % 16]`."""

    def code(context, builder, signature, arguments):
        table, positions = arguments
        if "+avx512f" in context.codegen().magic_tuple()[2]:
            kind = ir.FunctionType(table.type, [table.type, positions.type])
            name = "llvm.x86.avx512.permvar.sf.512"
            function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
            return builder.call(function, arguments)
        found = ir.Constant(table.type, ir.Undefined)
        for lane in range(FLOATS.count):
            number = ir.Constant(INT, lane)
            position = builder.and_(builder.extract_element(positions, number), ir.Constant(INT, 15))
            found = builder.insert_element(found, builder.extract_element(table, position), number)
        return found

    return FLOATS(FLOATS, NUMBERS), code


@intrinsic
def descend(typing, nodes, values, thresholds):
    """Children in heap order: `2 * nodes + (values > thresholds)`."""

    def code(context, builder, signature, arguments):
        nodes, values, thresholds = arguments
        right = builder.sext(builder.fcmp_ordered(">", values, thresholds), nodes.type)
        return builder.sub(builder.add(nodes, nodes), right)

    return NUMBERS(NUMBERS, FLOATS, FLOATS), code


@intrinsic
def choose(typing, numbers, flag, unset, set_):
    """Lanes of `set_` where `numbers` has the bit `flag`, else of `unset`."""

    def code(context, builder, signature, arguments):
        numbers, flag, unset, set_ = arguments
        flags = builder.and_(numbers, _splat(builder, flag, NUMBERS.count))
        return builder.select(builder.icmp_signed("!=", flags, _constant(numbers.type, 0)), set_, unset)

    return FLOATS(NUMBERS, types.int32, FLOATS, FLOATS), code


@intrinsic
def number_or_missing(typing, values, numbers, base):
    """`numbers - base`, but 255 where the value is NaN."""

    def code(context, builder, signature, arguments):
        values, numbers, base = arguments
        numbers = builder.sub(numbers, _splat(builder, base, NUMBERS.count))
        missing = builder.fcmp_unordered("uno", values, values)
        return builder.select(missing, _constant(numbers.type, 255), numbers)

    return NUMBERS(FLOATS, NUMBERS, types.int32), code


@intrinsic
def transpose_tile(typing, source, positions, first, shift, target, position, stride):
    """Write 16 × 16 values, read at `source[positions[first + i] + shift + j]`, to `target[position + j * stride + i]`.

    float64 is rounded to float32 on the way. Four rounds of exchanges between pairs of rows, 64 shuffles in all.
    """

    def code(context, builder, signature, arguments):
        source, positions, first, shift, target, position, stride = arguments
        wanted = context.get_data_type(signature.args[4].dtype)
        given = ir.VectorType(context.get_data_type(signature.args[0].dtype), 16)
        rows = []
        for number in range(16):
            where = builder.add(first, ir.Constant(first.type, number))
            start = builder.load(_pointer(context, builder, signature.args[1], positions, where, LONG))
            start = builder.add(start, shift)
            row = builder.load(_pointer(context, builder, signature.args[0], source, start, given), align=1)
            rows.append(row if given.element == wanted else builder.fptrunc(row, ir.VectorType(wanted, 16)))
        if wanted == BYTE:
            rows = _transpose_bytes(builder, rows)
        else:
            for step in (8, 4, 2, 1):
                rows = _exchange(builder, rows, step)
        for number, row in enumerate(rows):
            where = builder.add(position, builder.mul(stride, ir.Constant(stride.type, number)))
            builder.store(row, _pointer(context, builder, signature.args[4], target, where, row.type), align=1)
        return context.get_dummy_value()

    return types.void(source, positions, types.intp, types.intp, target, types.intp, types.intp), code


def _transpose_bytes(builder, rows):
    """16 rows of 16 bytes, transposed four rows a register: 12 shuffles and the joining and parting."""

    def shuffle(a, b, order):
        return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(INT, len(order)), order))

    pairs = [shuffle(rows[r], rows[r + 1], list(range(32))) for r in range(0, 16, 2)]
    fours = [shuffle(pairs[r], pairs[r + 1], list(range(64))) for r in range(0, 8, 2)]
    numbers = ir.VectorType(INT, 16)
    # each register: for column 0, 1, … its four rows' bytes, one 32-bit number a column
    fours = [shuffle(x, x, [16 * r + c for c in range(16) for r in range(4)]) for x in fours]
    fours = [builder.bitcast(x, numbers) for x in fours]
    low = [4 * lane + k + 16 * side for lane in range(4) for k in range(2) for side in range(2)]
    high = [place + 2 for place in low]
    a, b = shuffle(fours[0], fours[1], low), shuffle(fours[0], fours[1], high)
    c, d = shuffle(fours[2], fours[3], low), shuffle(fours[2], fours[3], high)
    first = [4 * lane + 16 * side + k for lane in range(4) for side in range(2) for k in range(2)]
    second = [place + 2 for place in first]
    # register j: columns j, 4 + j, 8 + j and 12 + j
    columns = [shuffle(a, c, first), shuffle(a, c, second), shuffle(b, d, first), shuffle(b, d, second)]
    columns = [builder.bitcast(x, ir.VectorType(BYTE, 64)) for x in columns]
    return [shuffle(columns[n % 4], columns[n % 4], [16 * (n // 4) + k for k in range(16)]) for n in range(16)]


def _exchange(builder, rows, step):
    """One round of a transposition: swap the off-diagonal blocks of every block of `2 * step` rows and columns."""
    numbers = ir.VectorType(INT, 16)
    upper = ir.Constant(numbers, [c + 16 - step if c & step else c for c in range(16)])
    lower = ir.Constant(numbers, [c + 16 if c & step else c + step for c in range(16)])
    result = list(rows)
    for number in range(16):
        if not number & step:
            pair = rows[number], rows[number + step]
            result[number] = builder.shuffle_vector(*pair, upper)
            result[number + step] = builder.shuffle_vector(*pair, lower)
    return result


@intrinsic
def prefetch(typing, array, position):
    """Ask for the cache line of `array[position]` without waiting for it."""

    def code(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature.args[0], *arguments, BYTE)  # type: ignore[call-arg]
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, INT, INT, INT])
        function = builder.module.declare_intrinsic("llvm.prefetch", (pointer.type,), kind)
        builder.call(function, [pointer, INT(0), INT(3), INT(1)])  # to read, keep, data
        return context.get_dummy_value()

    return types.void(array, types.intp), code


@intrinsic
def scan_cuts(typing, hist, start, n_bins, total, count_bits, min_docs, left, gains, cuts):
    """The best variance-gain cuts of 16 features, scanning bins upwards from the sums in `left`.

    `hist[start + 16 * b + k]` is what bin b adds to the left side of feature k: gradient << count_bits | count. Sums
    and best cuts stay in registers from bin to bin. A gain is a fraction, (l² m + r² n) / (n m) with sums l and r of n
    and m documents; two are compared by cross-multiplication, for a division takes as long as all the rest.
    """
    vector, doubles = ir.VectorType(LONG, 8), ir.VectorType(ir.DoubleType(), 8)

    def code(context, builder, signature, arguments):
        hist, start, n_bins, total, count_bits, min_docs, left, gains, cuts = arguments
        kinds = signature.args

        def place(number, array, position, kind):
            return _pointer(context, builder, kinds[number], array, position, kind)

        def at(number, array, half, kind):
            return place(number, array, ir.Constant(LONG, 8 * half), kind)

        mask = builder.sub(builder.shl(LONG(1), count_bits), LONG(1))
        masks, shifts, fewest = (_splat(builder, value, 8) for value in (mask, count_bits, min_docs))
        n_all = _splat(builder, builder.and_(total, mask), 8)
        sum_all = _splat(builder, builder.sitofp(builder.ashr(total, count_bits), ir.DoubleType()), 8)
        before = builder.block
        one = _splat(builder, ir.Constant(ir.DoubleType(), 1.0), 8)
        first = [
            (builder.load(at(6, left, half, vector), align=8), builder.load(at(7, gains, half, doubles), align=8), one,
             builder.load(at(8, cuts, half, vector), align=8))
            for half in range(2)
        ]  # fmt: skip
        head, body, done = (builder.append_basic_block(name) for name in ("head", "body", "done"))
        builder.branch(head)
        builder.position_at_end(head)
        bin_ = builder.phi(LONG)
        bin_.add_incoming(LONG(0), before)
        carried = []
        for values in first:
            phis = [builder.phi(value.type) for value in values]
            for phi, value in zip(phis, values, strict=True):
                phi.add_incoming(value, before)
            carried.append(phis)
        builder.cbranch(builder.icmp_signed("<", bin_, n_bins), body, done)

        builder.position_at_end(body)
        row, number = builder.add(start, builder.mul(bin_, LONG(16))), _splat(builder, bin_, 8)
        for half, (sums, best_up, best_down, cut) in enumerate(carried):
            added = builder.load(place(0, hist, builder.add(row, LONG(8 * half)), vector), align=8)
            sums_now = builder.add(sums, added)
            n_left = builder.and_(sums_now, masks)
            n_right = builder.sub(n_all, n_left)
            sum_left = builder.sitofp(builder.ashr(sums_now, shifts), doubles)
            sum_right = builder.fsub(sum_all, sum_left)
            x, y = builder.sitofp(n_left, doubles), builder.sitofp(n_right, doubles)
            up = builder.fadd(
                builder.fmul(builder.fmul(sum_left, sum_left), y), builder.fmul(builder.fmul(sum_right, sum_right), x)
            )
            down = builder.fmul(x, y)
            better = builder.and_(
                builder.and_(builder.icmp_signed(">=", n_left, fewest), builder.icmp_signed(">=", n_right, fewest)),
                builder.fcmp_ordered(">", builder.fmul(up, best_down), builder.fmul(best_up, down)),
            )
            now = (
                sums_now, builder.select(better, up, best_up), builder.select(better, down, best_down),
                builder.select(better, number, cut),
            )  # fmt: skip
            for phi, value in zip((sums, best_up, best_down, cut), now, strict=True):
                phi.add_incoming(value, body)
        bin_.add_incoming(builder.add(bin_, LONG(1)), body)
        builder.branch(head)

        builder.position_at_end(done)
        for half, (sums, up, down, cut) in enumerate(carried):
            for number, array, value in ((6, left, sums), (7, gains, builder.fdiv(up, down)), (8, cuts, cut)):
                builder.store(value, at(number, array, half, value.type), align=8)
        return context.get_dummy_value()

    size = types.int64
    return types.void(hist, size, size, size, size, size, left, gains, cuts), code
