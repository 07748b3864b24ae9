import numpy as np

from naive_retrieval import packed
from ranksieve.kernels import proximity


def test_positions_of_two_terms_in_order(interpreted):
    module, terms = interpreted(proximity), ([3, 64, 700], [0, 65, 20_000])
    positions = np.array([9, *packed(terms[0]), *packed(terms[1])], np.uint8)
    bits, marks = np.zeros(400, np.uint64), np.zeros(25_600, np.int64)
    last = module.mark_positions(positions, 1, 3, 0, bits, marks)
    assert last == 700
    last = module.mark_positions(positions, 1 + len(packed(terms[0])), 3, 1, bits, marks)
    places, slots = np.zeros(8, np.int64), np.zeros(8, np.int64)
    with np.errstate(over="ignore"):
        n = module.collect(bits, marks, last, module.BIT_NUMBERS, places, slots)
    assert places[:n].tolist() == [0, 3, 64, 65, 700, 20_000]
    assert slots[:n].tolist() == [1, 0, 0, 1, 0, 1]
    assert not bits.any()
