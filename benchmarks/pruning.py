"""Pruning 75% of 400 trees by QUALITY-LOSS and re-weighting the rest, beside the time λ-MART took to grow them.

Run `python benchmarks/pruning.py [--trees 400] [--only two-stage|web]`; about four minutes on two free cores. Each data
set is saved when it is done; a row has the load of the machine, and both CPU time and wall time. The data: 300
two-stage queries (0.8 M documents), and 1,000 queries of about 120 documents with five grades, as Web collections have.
Before anything is timed, the first removals are shown to be those of scoring every smaller forest anew. Kernels are
compiled before the clock starts; that time is printed apart.
"""

from __future__ import annotations

import argparse
import json
import os
import time

import numpy as np

import ranksieve as rs
from paper_settings import VARIANCE
from ranksieve.data.binned import bin_data
from ranksieve.evaluation.metrics import mean, parse_metric
from ranksieve.pruning.leaves import find_leaves
from results import FOLDER, save

SETTINGS = {"algo": "lambdamart", **VARIANCE, "learning_rate": 0.05, "early_stopping": 0, "threads": 2}
METRIC = parse_metric("ndcg@10")
CHECKED = 2  # removals compared with scoring anew


def web(n_queries: int, start: int = 0) -> rs.Dataset:
    """Lists of 60 to 180 documents, 136 features, five grades with few high ones; another start is other queries."""
    rng, truth = np.random.default_rng([7, start]), np.random.default_rng(5)
    sizes = rng.integers(60, 181, n_queries)
    n_docs = int(sizes.sum())
    features = rng.standard_normal((n_docs, 136)).astype(np.float32)
    linear = features[:, :25] @ truth.standard_normal(25) / 5
    bent = 0.8 * features[:, 0] * features[:, 1] + 0.6 * np.abs(features[:, 2])
    quality = linear + bent + rng.standard_normal(n_docs) + 0.7 * np.repeat(rng.standard_normal(n_queries), sizes)
    return rs.Dataset.from_arrays(features, np.digitize(quality, [0.0, 1.2, 2.8, 3.8]), group=sizes)


SETS = {
    "two-stage": (lambda: rs.synth.two_stage(300), lambda: rs.synth.two_stage(100, start=300)),
    "web": (lambda: web(1000), lambda: web(333, start=1000)),
}


def timed(work) -> tuple[float, float, object]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def removals_of_scoring_anew(forest: rs.Forest, data: rs.Dataset, n: int) -> list[int]:
    """The first removals of QUALITY-LOSS, every smaller forest's scores summed and measured whole."""
    outputs = np.stack([forest.take([t]).predict(data) for t in range(forest.n_trees)], axis=1)
    kept, removed = list(range(forest.n_trees)), []
    for _ in range(n):
        values = {}
        for tree in kept:
            scores = outputs[:, [t for t in kept if t != tree]].sum(axis=1)
            values[tree] = mean(METRIC.per_query(data.labels, scores, data.offsets))
        best = max(values.values())
        removed.append(max(tree for tree in kept if values[tree] > best - 1e-11))
        kept.remove(removed[-1])
    return removed


def check(forest: rs.Forest, data: rs.Dataset) -> None:
    some, few = data.take_queries(np.arange(20)), forest.first(60)
    pruned = rs.prune(few, some, judge_on="train", rate=CHECKED / 60 + 1e-6, reweight=False)
    gone = sorted(set(range(60)) - set(pruned.info["pruning"]["kept"]))
    assert gone == sorted(removals_of_scoring_anew(few, some, CHECKED))


def run(name: str, n_trees: int) -> dict:
    load = os.getloadavg()[0]
    train, valid = (make() for make in SETS[name])
    binned = bin_data(train)
    valid_bins = bin_data(valid, binning=binned.binning)
    warm = rs.train(binned, trees=4, **SETTINGS)
    compiling, *_ = timed(
        lambda: rs.prune(warm, binned, valid=valid_bins, judge_on="train", rate=0.5, rounds=2, threads=2)
    )
    growing, growing_cpu, forest = timed(lambda: rs.train(binned, trees=n_trees, **SETTINGS))
    check(forest, train)
    numbers = find_leaves(forest, binned).numbers
    seconds, cpu, pruned = timed(
        lambda: rs.prune(forest, binned, valid=valid_bins, judge_on="train", rate=0.75, threads=2)
    )
    story = pruned.info["pruning"]
    row = {
        "what": name,
        "queries": train.n_queries,
        "documents": train.n_docs,
        "trees": f"{n_trees} → {pruned.n_trees}",
        "growing, s": round(growing, 2),
        "growing, cpu s": round(growing_cpu, 2),
        "prune and reweight, s": round(seconds, 2),
        "prune and reweight, cpu s": round(cpu, 2),
        "times growing": round(seconds / growing, 3),
        "times growing, cpu": round(cpu / growing_cpu, 3),
        **{f"{phase}, s": round(value, 2) for phase, value in pruned.info["phase_seconds"].items()},
        "rounds of re-weighting": len(story["rounds"]) - 1,
        "bytes per document and tree": numbers.nbytes / (train.n_docs * n_trees),
        "train ndcg@10": f"{story['before']['train']:.4f} → {story['after']['train']:.4f}",
        "valid ndcg@10": f"{story['before']['valid']:.4f} → {story['after']['valid']:.4f}",
        "compiling, s": round(compiling, 1),
        "load before": round(load, 1),
    }
    print(row, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, default=400)
    parser.add_argument("--only", choices=SETS)
    arguments = parser.parse_args()
    for name in [arguments.only] if arguments.only else SETS:
        row, others = run(name, arguments.trees), [row for row in known() if row["what"] != name]
        save("pruning", [*others, row])


def known() -> list[dict]:
    """Rows of data sets that were run before."""
    path = FOLDER / "pruning.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []


if __name__ == "__main__":
    main()
