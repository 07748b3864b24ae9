import numpy as np
import pytest

from ranksieve.kernels import set_tests as kernels


def bits_of(words):
    return np.unpackbits(words.view(np.uint8).reshape(64, 8), axis=1, bitorder="little")


def test_bits_are_transposed(interpreted):
    square = np.random.default_rng(2).integers(0, 2**64, 64, dtype=np.uint64)
    before = bits_of(square.copy())
    with np.errstate(over="ignore"):
        interpreted(kernels).transpose_bits(square)
    assert np.array_equal(bits_of(square), before.T)


@pytest.mark.parametrize(
    ("value", "expected"), [(np.nan, 255), (0.0, 7), (1.9, 8), (-0.5, 7), (-1.0, 0), (2.0, 0), (1e30, 0)]
)
def test_the_class_of_a_category(interpreted, value, expected):
    classes = np.array([9, 7, 8, 6], np.uint8)  # those of this feature are 7 and 8
    assert interpreted(kernels).class_of(value, classes, 1, 3) == expected
