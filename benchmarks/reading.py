"""How fast LETOR text is read, beside scikit-learn's `load_svmlight_file`, after a check that both read the same.

Run `python benchmarks/reading.py`; it takes about 20 seconds and writes benchmarks/results/reading.json.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
import time
from pathlib import Path

import numba
import numpy as np
from sklearn.datasets import load_svmlight_file

from ranksieve import Dataset
from ranksieve.data.letor import write_letor
from ranksieve.data.parquet import write_parquet
from ranksieve.data.read import open_data, read

N_DOCS, N_FEATURES, REPEATS = 40_000, 136, 5
RESULTS = Path(__file__).parent / "results" / "reading.json"


def make_data() -> Dataset:
    """The shape of MSLR-WEB: 136 features, of which a third are counts, and about 100 documents a query."""
    rng = np.random.default_rng(0)
    features = np.round(rng.normal(size=(N_DOCS, N_FEATURES)), 6).astype(np.float32)
    features[:, ::3] = rng.integers(0, 50, size=features[:, ::3].shape)
    features[rng.random(features.shape) < 0.1] = 0
    return Dataset.from_arrays(features, rng.integers(0, 5, N_DOCS), qid=np.arange(N_DOCS) // 100)


def check_equal(path: str) -> None:
    features, labels, qid = load_svmlight_file(path, dtype=np.float32, query_id=True)
    data = read(path)
    np.testing.assert_array_equal(data.features, features.toarray())
    np.testing.assert_array_equal(data.labels, labels)
    np.testing.assert_array_equal(np.repeat(data.query_ids, data.lists.sizes), qid)


def best_seconds(work, repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def count_rows(path: str) -> int:
    return sum(block.n_docs for block in open_data(path).blocks())


def on_one_thread(work) -> None:
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        work()
    finally:
        numba.set_num_threads(threads)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        text, zipped, packed = (f"{folder}/data{suffix}" for suffix in (".txt", ".txt.gz", ".parquet"))
        data = make_data()
        write_letor(data, text)
        write_letor(data, zipped)
        write_parquet(open_data(text), packed)
        check_equal(text)
        megabytes = os.path.getsize(text) / 1e6
        seconds = {
            "scikit-learn, text": best_seconds(lambda: load_svmlight_file(text, dtype=np.float32, query_id=True), 2),
            "ranksieve, text": best_seconds(lambda: read(text), REPEATS),
            "ranksieve, text, 1 thread": best_seconds(lambda: on_one_thread(lambda: read(text)), REPEATS),
            "ranksieve, text in blocks": best_seconds(lambda: count_rows(text), REPEATS),
            "ranksieve, gzip": best_seconds(lambda: read(zipped), REPEATS),
            "ranksieve, Parquet": best_seconds(lambda: read(packed), REPEATS),
        }
    base = seconds["scikit-learn, text"]
    print(
        f"{N_DOCS:,} documents, {N_FEATURES} features, {megabytes:.0f} MB of text, {numba.get_num_threads()} threads\n"
    )
    print(f"{'reader':28}{'seconds':>9}{'text MB/s':>12}{'times':>8}")
    for name, value in seconds.items():
        print(f"{name:28}{value:9.3f}{megabytes / value:12.0f}{base / value:8.1f}")
    row = {
        "n_docs": N_DOCS,
        "n_features": N_FEATURES,
        "megabytes": round(megabytes, 1),
        "threads": numba.get_num_threads(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load": round(os.getloadavg()[0], 1),  # of the machine; much above 0 other work took part of the cores
        "seconds": {name: round(value, 4) for name, value in seconds.items()},
        "times_sklearn": round(base / seconds["ranksieve, text"], 1),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(row, indent=2) + "\n")


if __name__ == "__main__":
    main()
