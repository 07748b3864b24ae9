"""A forest as one C file without dependencies: tables, and a function that traverses them.

Features may be float or double; thresholds and leaf values are double, and leaves are added in the order of the trees:
scores are the forest's own, bit for bit, on any machine with IEEE arithmetic.
"""

from __future__ import annotations

import re

import numpy as np

from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.writing import DEFAULT, Options
from ranksieve.forest.structure import checked_values
from ranksieve.kernels.quantize import ZERO

DEFAULT_LEFT, ZERO_MISSING = 1, 2

WALKER = """\
#define {NAME}_FEATURES {n_features}
#define {NAME}_TREES {n_trees}

#define {NAME}_DEFINE(function, type)                                                \\
double function(const type *x) {{                                                     \\
    double sum = 0.0;                                                                \\
    int tree;                                                                        \\
    for (tree = 0; tree < {NAME}_TREES; tree++) {{                                     \\
        int node = roots[tree];                                                      \\
        while (node >= 0) {{                                                          \\
            double value = (double)x[features[node]];                                \\
            int missing = value != value || ((flags[node] & {ZERO_MISSING})                        \\
                && value <= {ZERO} && value >= -{ZERO});  \\
            int is_left = missing ? flags[node] & {DEFAULT_LEFT} : value <= thresholds[node];     \\
            node = is_left ? lefts[node] : rights[node];                             \\
        }}                                                                            \\
        sum += values[~node];                                                        \\
    }}                                                                                \\
    return sum;                                                                      \\
}}

{NAME}_DEFINE({name}_score, float)
{NAME}_DEFINE({name}_score_double, double)

/* Scores of n documents, {NAME}_FEATURES values each, one document after the other. */
void {name}_scores(const float *documents, size_t n, double *scores) {{
    size_t row;
    for (row = 0; row < n; row++)
        scores[row] = {name}_score(documents + row * {NAME}_FEATURES);
}}
"""


def to_c(forest: Forest, options: Options = DEFAULT) -> str:
    """The text of a C89 file with `double NAME_score(const float *x)`, the same for double, and one for many."""
    values = checked_values(forest)
    prefix = re.sub(r"\W", "_", options.name, flags=re.ASCII)
    prefix = prefix if re.match(r"[A-Za-z]", prefix) else f"model_{prefix}"
    n_splits, n_leaves = np.diff(forest.split_offsets), forest.n_leaves
    first_split, first_leaf = (
        np.repeat(offsets[:-1], n_splits) for offsets in (forest.split_offsets, forest.leaf_offsets)
    )
    # a child >= 0 is a split, one < 0 is leaf ~child, both counted through the whole forest
    left, right = (
        np.where(side < 0, ~(~side + first_leaf), side + first_split) for side in (forest.left, forest.right)
    )
    roots = np.where(n_splits > 0, forest.split_offsets[:-1], ~forest.leaf_offsets[:-1])
    flags = DEFAULT_LEFT * forest.default_left + ZERO_MISSING * forest.zero_missing
    kind = "short" if forest.n_features <= 2**15 else "int"
    tables = [
        _table("int", "roots", roots),
        _table(kind, "features", forest.feature),
        _table("double", "thresholds", forest.threshold),
        _table("int", "lefts", left),
        _table("int", "rights", right),
        _table("char", "flags", flags),
        _table("double", "values", values),
    ]
    includes = "#include <stddef.h>\n" + "#include <math.h>\n" * bool(np.isinf(forest.threshold).any())
    names = "\n".join(f" *   x[{number}]  {_comment(feature)}" for number, feature in enumerate(forest.feature_names))
    walker = WALKER.format(
        name=prefix,
        NAME=prefix.upper(),
        n_features=forest.n_features,
        n_trees=forest.n_trees,
        ZERO=repr(float(ZERO)),
        ZERO_MISSING=ZERO_MISSING,
        DEFAULT_LEFT=DEFAULT_LEFT,
    )
    return (
        f"/* A forest of {forest.n_trees} trees and {n_leaves.sum()} leaves, written by ranksieve.\n *\n"
        f" * double {prefix}_score(const float *x) scores one document; NaN is a missing value.\n"
        f" * Do not compile with -ffast-math, which ignores NaN.\n *\n{names}\n */\n"
        f"{includes}\n{''.join(tables)}\n{walker}"
    )


def _table(kind: str, name: str, numbers: np.ndarray) -> str:
    """A constant array; C has no empty ones."""
    texts = [_number(value) for value in numbers.tolist()] or ["0"]
    lines = [", ".join(texts[start : start + 10]) for start in range(0, len(texts), 10)]
    return f"static const {kind} {name}[] = {{\n    " + ",\n    ".join(lines) + "};\n"


def _number(value: float) -> str:
    return repr(value).replace("inf", "HUGE_VAL")


def _comment(name: str) -> str:
    """A feature's name where it cannot end the comment."""
    return re.sub(r"[^ -~]", "?", name).replace("*/", "* /").replace("/*", "/ *")
