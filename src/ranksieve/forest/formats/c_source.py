"""A forest as one C file without dependencies: tables, and a function that traverses them.

Features may be float or double; thresholds and leaf values are double, and leaves are added in the order of the trees:
scores are the forest's own, bit for bit, on any machine with IEEE arithmetic.
"""

from __future__ import annotations

import re
import textwrap

import numpy as np

from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.nodes import BITS, words_of_codes
from ranksieve.forest.formats.writing import DEFAULT, Options
from ranksieve.forest.structure import checked_values, children_of
from ranksieve.kernels.quantize import ZERO_THRESHOLD

DEFAULT_LEFT, ZERO_MISSING, CATEGORICAL = 1, 2, 4

TRAVERSAL = """\
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
                && value <= {ZERO_THRESHOLD} && value >= -{ZERO_THRESHOLD});  \\
            int is_left = missing ? flags[node] & {DEFAULT_LEFT} : {test};     \\
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

LIMIT = "value <= thresholds[node]"
LIMIT_OR_SET = "flags[node] & {CATEGORICAL} ? is_in_set(value, (int)thresholds[node]) : value <= thresholds[node]"
IS_IN_SET = """\
/* Whether a category, the whole part of a value, is in a set; bit b of word w stands for category {BITS} w + b. */
static int is_in_set(double value, int set) {{
    int first = set_starts[set], n_words = set_starts[set + 1] - first;
    long code;
    if (!(value > -1.0 && value < (double)n_words * {BITS}))
        return 0;
    code = (long)value;
    return (int)(set_words[first + code / {BITS}] >> (code % {BITS}) & 1UL);
}}

"""


def to_c(forest: Forest, options: Options = DEFAULT) -> str:
    """The text of a C89 file with `double NAME_score(const float *x)`, the same for double, and one for many."""
    values = checked_values(forest)
    prefix = re.sub(r"\W", "_", options.name, flags=re.ASCII)
    prefix = prefix if re.match(r"[A-Za-z]", prefix) else f"model_{prefix}"
    n_splits, n_leaves = np.diff(forest.split_offsets), forest.n_leaves
    left, right = children_of(forest)
    roots = np.where(n_splits > 0, forest.split_offsets[:-1], ~forest.leaf_offsets[:-1])
    flags = DEFAULT_LEFT * forest.default_left + ZERO_MISSING * (forest.zero_missing & ~forest.categorical)
    flags += CATEGORICAL * forest.categorical
    set_number = np.cumsum(forest.categorical) - 1  # in place of a threshold
    kind = "short" if forest.n_features <= 2**15 else "int"
    tables = [
        _table("int", "roots", roots),
        _table(kind, "features", forest.feature),
        _table("double", "thresholds", np.where(forest.categorical, set_number, forest.threshold)),
        _table("int", "lefts", left),
        _table("int", "rights", right),
        _table("char", "flags", flags),
        _table("double", "values", values),
        *_set_tables(forest),
    ]
    includes = "#include <stddef.h>\n" + "#include <math.h>\n" * bool(np.isinf(forest.threshold).any())
    names = "\n".join(
        f" *   x[{number}]  {_comment(feature)}{_category_names(forest, feature)}"
        for number, feature in enumerate(forest.feature_names)
    )
    traversal = TRAVERSAL.format(
        name=prefix,
        NAME=prefix.upper(),
        n_features=forest.n_features,
        n_trees=forest.n_trees,
        ZERO_THRESHOLD=repr(float(ZERO_THRESHOLD)),
        ZERO_MISSING=ZERO_MISSING,
        DEFAULT_LEFT=DEFAULT_LEFT,
        test=LIMIT_OR_SET.format(CATEGORICAL=CATEGORICAL) if forest.has_categories else LIMIT,
    )
    return (
        f"/* A forest of {forest.n_trees} trees and {n_leaves.sum()} leaves, written by ranksieve.\n *\n"
        f" * double {prefix}_score(const float *x) scores one document; NaN is a missing value.\n"
        f" * Do not compile with -ffast-math, which ignores NaN.\n *\n{names}\n */\n"
        f"{includes}\n{''.join(tables)}\n{traversal}"
    )


def _set_tables(forest: Forest) -> list[str]:
    """The sets of the categorical splits and the function that looks a category up; nothing where there are none."""
    if not forest.has_categories:
        return []
    sets = [words_of_codes(forest.set_of(split)) for split in np.flatnonzero(forest.categorical).tolist()]
    return [
        _table("int", "set_starts", np.cumsum([0, *map(len, sets)])),
        _table("unsigned long", "set_words", np.concatenate(sets), suffix="UL"),
        f"\n{IS_IN_SET.format(BITS=BITS)}",
    ]


def _table(kind: str, name: str, numbers: np.ndarray, suffix: str = "") -> str:
    """A constant array; C has no empty ones."""
    texts = [_number(value) + suffix for value in numbers.tolist()] or ["0"]
    lines = [", ".join(texts[start : start + 10]) for start in range(0, len(texts), 10)]
    return f"static const {kind} {name}[] = {{\n    " + ",\n    ".join(lines) + "};\n"


def _number(value: float) -> str:
    return repr(value).replace("inf", "HUGE_VAL")


def _category_names(forest: Forest, feature: str) -> str:
    """Lines of a comment with the names of a feature's categories by number."""
    names = ", ".join(f"{number} {_comment(name)}" for number, name in enumerate(forest.categories.get(feature, ())))
    lines = textwrap.wrap(names, 100, break_long_words=False, break_on_hyphens=False)
    return "".join(f"\n *          {line}" for line in lines)


def _comment(name: str) -> str:
    """A feature's name where it cannot end the comment."""
    return re.sub(r"[^ -~]", "?", name).replace("*/", "* /").replace("/*", "/ *")
