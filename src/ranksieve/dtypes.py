"""Every array type of the package, each with its one reason; and the types of arrays that users give."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    import scipy.sparse

Vector: TypeAlias = numpy.typing.ArrayLike  # one value per row or per query: an array, a list, a column of a table
# one row per document, one column per feature
Features: TypeAlias = (
    "np.ndarray | scipy.sparse.sparray | scipy.sparse.spmatrix | pandas.DataFrame | polars.DataFrame | pyarrow.Table"
)

FEATURE = np.float32  # what search engines compute and serve; half the memory of float64
LABEL = np.float32  # grades may be fractions; gains are computed in float64
GRADE = np.uint8  # a label that is an integer, where memory is short; in kernels, 0 for negatives
SCORE = np.float64  # sums of thousands of leaves must not depend on their order beyond 1e-15
OFFSET = np.int64  # 27 million rows times 220 features does not fit 32 bits
ROW = np.int32  # a row number: 2 billion rows, half the memory traffic of int64
POSITION = np.int16  # a rank on a result page
BIN = np.uint8  # a binned feature value
FIXED = np.int64  # fixed-point sums: integer addition is associative, so any thread count gives the same bits

MISSING_BIN = 255  # the bin of NaN; values use bins 0..254
MAX_BINS = 255  # how many bins values may use
MAX_POSITION = 1000  # the last rank that may have a bias of its own

MOST_FEATURES = 1_000_000  # rows are scored densely; a mistyped number must not cost all memory
