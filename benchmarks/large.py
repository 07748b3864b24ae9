"""SelGB on 6,000 queries, 16 million documents and 220 features: peak memory and seconds per tree.

Run `python benchmarks/large.py`; about eight minutes on two cores, most of it making the data, which is streamed into
bins as a file would be.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

import ranksieve as rs
from paper_settings import TREES, share
from ranksieve.data.binned import bin_data
from ranksieve.data.generators import GeneratedSource
from results import save


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=6000)
    parser.add_argument("--trees", type=int, default=60)
    arguments = parser.parse_args()
    started = time.perf_counter()
    binned = bin_data(GeneratedSource(rs.synth.two_stage, range(arguments.queries), 0, 16))
    binning = time.perf_counter() - started
    print(f"{binned.lists.n_docs:,} documents binned in {binning:.0f} s", flush=True)
    model = rs.train(binned, algo="selgb", **TREES, **share(0.01), trees=arguments.trees, early_stopping=0)
    seconds = np.array(model.info["seconds"])
    row = {
        "queries": binned.lists.n_queries,
        "documents": binned.lists.n_docs,
        "features": binned.binning.n_features,
        "generate twice and bin, s": round(binning),
        "first tree (everything), s": round(float(seconds[0]), 2),
        "s per tree, 2 to 20": round(float(seconds[1:20].mean()), 3),
        f"s per tree, last 20 of {arguments.trees}": round(float(seconds[-20:].mean()), 3),
        "peak memory, GiB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }
    print(row)
    save("large", [row])


if __name__ == "__main__":
    main()
