"""Transposing tiles of 16 × 16 values within registers; see `lanes`."""

from __future__ import annotations

from llvmlite import ir
from numba.core import types

from ranksieve.kernels.lanes import BYTE, INT, LONG, address, intrinsic


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
            start = builder.load(address(context, builder, signature.args[1], positions, where, LONG))
            start = builder.add(start, shift)
            row = builder.load(address(context, builder, signature.args[0], source, start, given), align=1)
            rows.append(row if given.element == wanted else builder.fptrunc(row, ir.VectorType(wanted, 16)))
        if wanted == BYTE and "+avx512vbmi" in context.codegen().magic_tuple()[2]:
            rows = _transpose_bytes(builder, rows)
        elif wanted == BYTE:
            rows = _interleave_bytes(builder, rows)
        else:
            for step in (8, 4, 2, 1):
                rows = _exchange(builder, rows, step)
        for number, row in enumerate(rows):
            where = builder.add(position, builder.mul(stride, ir.Constant(stride.type, number)))
            builder.store(row, address(context, builder, signature.args[4], target, where, row.type), align=1)
        return context.get_dummy_value()

    return types.void(source, positions, types.intp, types.intp, target, types.intp, types.intp), code


def _transpose_bytes(builder, rows):
    """16 rows of 16 bytes, transposed four rows to a register: 12 shuffles, and those that join and split rows."""

    def shuffle(a, b, order):
        return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(INT, len(order)), order))

    pairs = [shuffle(rows[r], rows[r + 1], list(range(32))) for r in range(0, 16, 2)]
    fours = [shuffle(pairs[r], pairs[r + 1], list(range(64))) for r in range(0, 8, 2)]
    numbers = ir.VectorType(INT, 16)
    # each register has one 32-bit number per column: the bytes of its four rows
    fours = [shuffle(x, x, [16 * r + c for c in range(16) for r in range(4)]) for x in fours]
    fours = [builder.bitcast(x, numbers) for x in fours]
    low = [4 * lane + k + 16 * side for lane in range(4) for k in range(2) for side in range(2)]
    high = [place + 2 for place in low]
    a, b = shuffle(fours[0], fours[1], low), shuffle(fours[0], fours[1], high)
    c, d = shuffle(fours[2], fours[3], low), shuffle(fours[2], fours[3], high)
    first = [4 * lane + 16 * side + k for lane in range(4) for side in range(2) for k in range(2)]
    second = [place + 2 for place in first]
    # register j has the columns j, 4 + j, 8 + j and 12 + j
    columns = [shuffle(a, c, first), shuffle(a, c, second), shuffle(b, d, first), shuffle(b, d, second)]
    columns = [builder.bitcast(x, ir.VectorType(BYTE, 64)) for x in columns]
    return [shuffle(columns[n % 4], columns[n % 4], [16 * (n // 4) + k for k in range(16)]) for n in range(16)]


def _interleave_bytes(builder, rows):
    """`_transpose_bytes` where one instruction cannot move all bytes of a large register: four rounds of interleaving
    two rows each, 64 instructions in all."""
    low = [k // 2 + 16 * (k % 2) for k in range(16)]
    orders = [ir.Constant(ir.VectorType(INT, 16), [place + shift for place in low]) for shift in (0, 8)]
    for _ in range(4):
        rows = [builder.shuffle_vector(rows[n // 2], rows[n // 2 + 8], orders[n % 2]) for n in range(16)]
    return rows


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
