"""Feature files of the bug collections: every report with its candidates, labelled, one Parquet file a project.

    python benchmarks/bugs.py ../shared/data/ir build/bugs [--depth 1000]

A report's own number is cut from its text, because comments of the fix may name it. Reports that concern more than 50
files are left out. Files that are there already are kept.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import ranksieve as rs
from ranksieve.retrieval.labelling import Pairs, write_features
from ranksieve.retrieval.searching import Searcher
from retrieval_quality import FIELDS, read_collection

PROJECTS = ("ecf", "eclipse.jdt.debug", "tomcat70", "eclipse.pde.ui")


def make(folder: Path, out: Path, depth: int, threads: int | None = None) -> None:
    """Write the features of a project's reports, the `depth` best of BM25F each."""
    queries, judgements = read_collection(folder)
    with tempfile.TemporaryDirectory() as temporary:
        index = rs.Index.build(folder / "corpus.jsonl.xz", f"{temporary}/index", fields=FIELDS[folder.name])
        pairs = Pairs(queries, Searcher(index), depth, judgements=judgements)
        start = time.perf_counter()
        written = write_features(pairs, out, threads=threads)
        print(out, written, f"{time.perf_counter() - start:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in PROJECTS:
        path = arguments.out / f"{name}.parquet"
        if not path.exists():
            make(arguments.folder / f"bugs-{name}", path, arguments.depth, arguments.threads)


if __name__ == "__main__":
    main()
