"""The slow truth about vector registers: `kernels.lanes` and the functions of other kernels that stand for one
instruction, as plain functions of arrays. A register that reaches beyond its array is an error here."""

import numpy as np


def _load(count):
    def load(array, position):
        assert position >= 0 and position + count <= len(array)
        return np.array(array[position : position + count])

    return load


def store(array, position, lanes):
    assert position >= 0 and position + len(lanes) <= len(array)
    array[position : position + len(lanes)] = lanes.astype(array.dtype)


def above(values, limits):
    return np.packbits(values > limits, bitorder="little").view(np.uint64)[0]


def set_where(values, bits, flag):
    chosen = np.unpackbits(np.array([bits], np.uint64).view(np.uint8), bitorder="little")
    return values | np.where(chosen == 1, flag, 0).astype(np.uint8)


def count_larger(counts, values, others):
    return counts + (values.view(np.int64) > others.view(np.int64))


def at_least(values, position, limit):
    return int(np.packbits(_load(16)(values, position) >= limit, bitorder="little").view(np.uint16)[0])


def are_zero(values, position):
    return int(np.packbits(_load(16)(values, position) == 0, bitorder="little").view(np.uint16)[0])


def append_numbers(out, n, first, bits):
    assert n + 16 <= len(out)
    for k in range(16):
        out[n] = first + k
        n += int(bits) >> k & 1
    return n


def number_or_missing(values, numbers, base):
    return np.where(np.isnan(values), 255, numbers - base)


def transpose_tile(source, positions, first, shift, target, position, stride):
    for i in range(16):
        for j in range(16):
            target[position + j * stride + i] = source[positions[first + i] + shift + j]


def byte_at(buffer, position):
    assert position >= 0
    return int(buffer[position])


def load_word(buffer, position):
    return np.array(buffer[position : position + 8]).view(np.uint64)[0]


def trailing_zeros(word):
    return (int(word) & -int(word)).bit_length() - 1


def run_parts(body, n, arguments):
    body(0, n, *arguments)


PLAIN = {
    "load_bytes": _load(64),
    "load_words": _load(8),
    "load_floats": _load(16),
    "store": store,
    "splat_bytes": lambda value: np.full(64, value, np.uint8),
    "splat_numbers": lambda value: np.full(16, value, np.int32),
    "add_bytes": lambda left, right: left + right,
    "above": above,
    "set_where": set_where,
    "at_least": at_least,
    "are_zero": are_zero,
    "append_numbers": append_numbers,
    "no_words": lambda: np.zeros(8, np.uint64),
    "xor_words": lambda left, right: left ^ right,
    "and_or_words": lambda left, right, more: (left & right) | more,
    "add_words": lambda left, right: left + right,
    "count_larger": count_larger,
    "look_up": lambda table, positions: table[positions % 16],
    "descend": lambda nodes, values, thresholds: 2 * nodes + (values > thresholds),
    "choose": lambda numbers, flag, unset, set_: np.where(numbers & flag, set_, unset),
    "number_or_missing": number_or_missing,
    "prefetch": lambda array, position: None,
    "transpose_tile": transpose_tile,
    "byte_at": byte_at,
    "load_word": load_word,
    "trailing_zeros": trailing_zeros,
    "run_parts": run_parts,
}
