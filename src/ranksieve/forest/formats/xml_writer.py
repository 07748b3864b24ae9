"""A forest as a RankLib or a QuickRank model: nested XML, features counted from 1, `x <= threshold` in float32.

Neither has a place for where missing values go. RankLib takes them for 0, QuickRank sends them right; a forest that
does otherwise is refused. Tree weights are multiplied into the leaves: both read weights as float32. RankLib keeps
leaves in float32 and adds them up in float32; QuickRank has float64 for both.
"""

from __future__ import annotations

import numpy as np

from ranksieve.forest.forest import Forest
from ranksieve.forest.formats.expressible import DEFAULT, Options, check_missing, single_values
from ranksieve.forest.formats.nesting import nested
from ranksieve.forest.formats.xml_reader import QUICKRANK_FEATURES, RANKLIB_FEATURES
from ranksieve.forest.singles import floor_single, single_texts
from ranksieve.forest.structure import checked_values


def to_ranklib(forest: Forest, options: Options = DEFAULT) -> str:
    """The text of a LambdaMART model of RankLib, which the plugins for Elasticsearch and OpenSearch read, too."""
    values = checked_values(forest)
    check_missing(forest, "RankLib (missing is 0)", forest.threshold >= 0, options)
    leaves = single_texts(single_values(values, "RankLib"))
    most_leaves = int(forest.n_leaves.max(initial=0))
    header = (
        f"## LambdaMART\n## No. of trees = {forest.n_trees}\n## No. of leaves = {most_leaves}\n"
        f"## No. of threshold candidates = 256\n## Learning rate = 1.0\n## Stop early = 100\n"
        f"{RANKLIB_FEATURES}{forest.n_features}\n"
    )
    # RankLib takes the first child of an element for its content: every tag begins its own line, and nothing else does
    return f"{header}\n{_ensemble(forest, leaves)}"


def to_quickrank(forest: Forest, options: Options = DEFAULT) -> str:
    """The text of a LAMBDAMART model of QuickRank."""
    values = checked_values(forest)
    check_missing(forest, "QuickRank", np.zeros(len(forest.feature), dtype=bool), options)
    facts = {
        "type": "LAMBDAMART",
        "trees": forest.n_trees,
        "leaves": int(forest.n_leaves.max(initial=0)),
        "shrinkage": 1,
        "leafsupport": 1,
        "discretization": 0,
        "estop": 0,
        QUICKRANK_FEATURES: forest.n_features,
    }
    info = "".join(f"\t\t<{key}>{value}</{key}>\n" for key, value in facts.items())
    body = _ensemble(forest, [repr(value) for value in values.tolist()])
    return f'<?xml version="1.0"?>\n<ranker>\n\t<info>\n{info}\t</info>\n{body}</ranker>\n'


def _ensemble(forest: Forest, leaves: list[str]) -> str:
    thresholds = single_texts(floor_single(forest.threshold), infinity="Infinity")

    def before(at: int, depth: int) -> str:
        tab = "\t" * (depth + 3)
        return (
            f"{tab}<feature>{forest.feature[at] + 1}</feature>\n{tab}<threshold>{thresholds[at]}</threshold>\n"
            f'{tab}<split pos="left">\n'
        )

    def between(at: int, depth: int) -> str:
        tab = "\t" * (depth + 3)
        return f'{tab}</split>\n{tab}<split pos="right">\n'

    def after(at: int, depth: int) -> str:
        return "\t" * (depth + 3) + "</split>\n"

    def leaf(at: int, depth: int) -> str:
        return "\t" * (depth + 3) + f"<output>{leaves[at]}</output>\n"

    trees = []
    for tree in range(forest.n_trees):
        content = nested(forest, tree, before=before, between=between, after=after, leaf=leaf)
        trees.append(f'\t<tree id="{tree + 1}" weight="1.0">\n\t\t<split>\n{content}\t\t</split>\n\t</tree>\n')
    return f"<ensemble>\n{''.join(trees)}</ensemble>\n"
