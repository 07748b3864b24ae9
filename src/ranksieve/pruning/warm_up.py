"""Compiling what pruning needs before it is needed."""

from __future__ import annotations

import numpy as np

from ranksieve.boosting.tree import Tree, to_forest
from ranksieve.data.binned import bin_data
from ranksieve.data.generators import two_stage
from ranksieve.pruning.prune import prune


def compile_kernels(metric: str = "ndcg@10") -> None:
    """Prune two stumps, so that every kernel is compiled and kept on disk.

    In a process of its own this fills the cache while another trains, which needs other kernels.
    """
    data = bin_data(two_stage(2))
    stumps = [
        Tree(
            np.array([[feature, 3, 1, -1, -2]], np.int32),
            np.ones(1),
            np.ones(1, np.int64),
            np.array([0.1, 0.2]),
            np.ones(2, np.int64),
            np.ones(2),
        )
        for feature in range(2)
    ]
    prune(to_forest(stumps, data.binning, data.feature_names, {}), data, judge_on="train", rate=0.5, metric=metric)
