"""Vector registers as Numba values: `BYTES` (64 × uint8), `WORDS` (8 × uint64), `FLOATS` and `NUMBERS` (16 × 32 bits).

Plain loops leave the choice of instructions, and of what stays in a register, to the vectoriser; the scoring kernels
need both fixed. The functions here are written in LLVM's own vector types, so they compile on every machine: to one
AVX-512 instruction each where there is AVX-512, to several smaller ones elsewhere.
"""

from __future__ import annotations

from typing import Any

import numba
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


def address(context, builder, array_type, array, position, element):
    """The address of `array[position]`, as a pointer to `element`; arrays are one-dimensional and contiguous."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [position]), element.as_pointer())


def _loader(lanes: Lanes) -> Any:
    """An intrinsic that loads a register from an array."""

    def load(typing, array, position):
        """Elements `position`, `position + 1`, … of an array."""

        def code(context, builder, signature, arguments):
            vector = context.get_value_type(lanes)
            pointer = address(context, builder, signature.args[0], *arguments, vector)  # type: ignore[call-arg]
            return builder.load(pointer, align=1)

        return lanes(array, types.intp), code

    return intrinsic(load)


@intrinsic
def float_pointer(typing, address):
    """A number as the address of float32 values, for `carray`."""

    def code(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.float32)(types.int64), code


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
        builder.store(vector, address(context, builder, signature.args[0], array, position, vector.type), align=1)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), code


def constant(vector, value):
    """A vector whose elements are all the same known number."""
    return ir.Constant(vector, [value] * vector.count)


def splat(builder, scalar, count):
    """Code for a vector of `count` times the same scalar."""
    vector = ir.VectorType(scalar.type, count)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(INT, 0))
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), constant(ir.VectorType(INT, count), 0))


@intrinsic
def splat_bytes(typing, value):
    """64 times the same byte."""

    def code(context, builder, signature, arguments):
        return splat(builder, arguments[0], BYTES.count)

    return BYTES(types.uint8), code


@intrinsic
def splat_numbers(typing, value):
    """16 times the same number."""

    def code(context, builder, signature, arguments):
        return splat(builder, arguments[0], NUMBERS.count)

    return NUMBERS(types.int32), code


def _operation(lanes: Lanes, name: str) -> Any:
    """An intrinsic for one operation of LLVM on two registers."""

    def operate(typing, left, right):
        """One operation of LLVM on the elements of two registers."""

        def code(context, builder, signature, arguments):
            return getattr(builder, name)(*arguments)

        return lanes(lanes, lanes), code

    return intrinsic(operate)


add_bytes = _operation(BYTES, "add")  # modulo 256
add_words = _operation(WORDS, "add")  # modulo 2^64
xor_words = _operation(WORDS, "xor")


@intrinsic
def above(typing, values, limits):
    """64 bits: which bytes of `values` are larger than those of `limits`."""

    def code(context, builder, signature, arguments):
        return builder.bitcast(builder.icmp_unsigned(">", *arguments), LONG)

    return types.uint64(BYTES, BYTES), code


@intrinsic
def at_least(typing, values, position, limit):
    """16 bits: which of 16 float32 values from `position` on are at least `limit`."""

    def code(context, builder, signature, arguments):
        values, position, limit = arguments
        vector = context.get_value_type(FLOATS)
        loaded = builder.load(address(context, builder, signature.args[0], values, position, vector), align=1)
        reached = builder.fcmp_ordered(">=", loaded, splat(builder, limit, FLOATS.count))
        return builder.bitcast(reached, ir.IntType(16))

    return types.uint16(values, types.intp, types.float32), code


@intrinsic
def are_zero(typing, bytes_, position):
    """16 bits: which of 16 bytes from `position` on are 0."""

    def code(context, builder, signature, arguments):
        values, position = arguments
        vector = ir.VectorType(BYTE, 16)
        loaded = builder.load(address(context, builder, signature.args[0], values, position, vector), align=1)
        return builder.bitcast(builder.icmp_unsigned("==", loaded, constant(vector, 0)), ir.IntType(16))

    return types.uint16(bytes_, types.intp), code


@intrinsic
def append_numbers(typing, out, n, first, bits):
    """Write the numbers `first + k` of the bits k that are set to `out[n:]`, an array of int32; returns the new n.

    All of `out[n : n + 16]` may be overwritten. No branches: bits would be guessed wrong too often.
    """

    def code(context, builder, signature, arguments):
        out, n, first, bits = arguments
        count = NUMBERS.count
        wanted = builder.bitcast(bits, ir.VectorType(ir.IntType(1), count))
        vector = ir.VectorType(INT, count)
        numbers = builder.add(
            splat(builder, builder.trunc(first, INT), count), ir.Constant(vector, list(range(count)))
        )  # fmt: skip
        if "+avx512f" in context.codegen().magic_tuple()[2]:
            kind = ir.FunctionType(vector, [vector, vector, wanted.type])
            name = "llvm.x86.avx512.mask.compress.v16i32"
            function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
            packed = builder.call(function, [numbers, constant(vector, 0), wanted])
            builder.store(packed, address(context, builder, signature.args[0], out, n, vector), align=4)
            return builder.add(n, builder.zext(builder.ctpop(bits), LONG))
        for lane in range(count):
            number = ir.Constant(INT, lane)
            place = address(context, builder, signature.args[0], out, n, INT)
            builder.store(builder.extract_element(numbers, number), place)
            n = builder.add(n, builder.zext(builder.extract_element(wanted, number), LONG))
        return n

    return types.intp(out, types.intp, types.intp, types.uint16), code


@intrinsic
def set_where(typing, values, bits, flag):
    """`values` with `flag` or-ed into the bytes whose bit is set."""

    def code(context, builder, signature, arguments):
        values, bits, flag = arguments
        chosen = builder.bitcast(bits, ir.VectorType(ir.IntType(1), BYTES.count))
        flags = builder.select(chosen, splat(builder, flag, BYTES.count), constant(values.type, 0))
        return builder.or_(values, flags)

    return BYTES(BYTES, types.uint64, types.uint8), code


@intrinsic
def no_words(typing):
    """512 zero bits."""

    def code(context, builder, signature, arguments):
        return constant(context.get_value_type(WORDS), 0)

    return WORDS(), code


@intrinsic
def and_or_words(typing, left, right, more):
    """`(left & right) | more`, one instruction."""

    def code(context, builder, signature, arguments):
        left, right, more = arguments
        return builder.or_(builder.and_(left, right), more)

    return WORDS(WORDS, WORDS, WORDS), code


@intrinsic
def count_larger(typing, counts, values, others):
    """`counts + (values > others)`, comparing signed words."""

    def code(context, builder, signature, arguments):
        counts, values, others = arguments
        return builder.sub(counts, builder.sext(builder.icmp_signed(">", values, others), counts.type))

    return WORDS(WORDS, WORDS, WORDS), code


def _permute(builder, name, table, positions):
    """The elements of a register at some positions, which count modulo its size."""
    kind = ir.FunctionType(table.type, [table.type, positions.type])
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    return builder.call(function, [table, positions])


def _look_up_in_halves(builder, table, positions):
    """`look_up` with registers of 8 numbers: the halves of the table, and the halves of the positions."""

    def half(vector, first):
        places = ir.Constant(ir.VectorType(INT, 8), list(range(first, first + 8)))
        return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), places)

    found = []
    for wanted in (half(positions, 0), half(positions, 8)):
        low, high = (_permute(builder, "llvm.x86.avx2.permps", half(table, first), wanted) for first in (0, 8))
        is_high = builder.icmp_signed("!=", builder.and_(wanted, constant(wanted.type, 8)), constant(wanted.type, 0))
        found.append(builder.select(is_high, high, low))
    return builder.shuffle_vector(*found, ir.Constant(ir.VectorType(INT, 16), list(range(16))))


@intrinsic
def look_up(typing, table, positions):
    """`table[positions % 16]`."""

    def code(context, builder, signature, arguments):
        table, positions = arguments
        features = context.codegen().magic_tuple()[2]
        if "+avx512f" in features:
            return _permute(builder, "llvm.x86.avx512.permvar.sf.512", table, positions)
        if "+avx2" in features:
            return _look_up_in_halves(builder, table, positions)
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
        flags = builder.and_(numbers, splat(builder, flag, NUMBERS.count))
        return builder.select(builder.icmp_signed("!=", flags, constant(numbers.type, 0)), set_, unset)

    return FLOATS(NUMBERS, types.int32, FLOATS, FLOATS), code


@intrinsic
def number_or_missing(typing, values, numbers, base):
    """`numbers - base`, but 255 where the value is NaN."""

    def code(context, builder, signature, arguments):
        values, numbers, base = arguments
        numbers = builder.sub(numbers, splat(builder, base, NUMBERS.count))
        missing = builder.fcmp_unordered("uno", values, values)
        return builder.select(missing, constant(numbers.type, 255), numbers)

    return NUMBERS(FLOATS, NUMBERS, types.int32), code


@intrinsic
def prefetch(typing, array, position):
    """Ask for the cache line of `array[position]` without waiting for it."""

    def code(context, builder, signature, arguments):
        pointer = address(context, builder, signature.args[0], *arguments, BYTE)  # type: ignore[call-arg]
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, INT, INT, INT])
        function = builder.module.declare_intrinsic("llvm.prefetch", (pointer.type,), kind)
        builder.call(function, [pointer, INT(0), INT(3), INT(1)])  # for reading, to be kept, in the data cache
        return context.get_dummy_value()

    return types.void(array, types.intp), code


if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
    prefetch = lambda array, position: None  # noqa: E731 — it only saves time
