"""Feature files of the bug collections: every report with its candidates, labelled, one Parquet file a project.

    python benchmarks/bugs.py ../shared/data/ir build/bugs [--depth 1000]

A report's own number is cut from its text, because comments of the fix may name it. Reports that concern more than 50
files are left out. Files that are there already are kept. `pooled` makes one file of all projects.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import ranksieve as rs
from ranksieve.data.blocks import Block
from ranksieve.data.features import FeatureInfo
from ranksieve.data.parquet import write_blocks
from ranksieve.retrieval.feature_extractor import FeatureExtractor
from ranksieve.retrieval.labelling import QueryCandidates, labelled_blocks, write_features
from ranksieve.retrieval.notes import Notes
from ranksieve.retrieval.searching import Retriever
from retrieval_quality import FIELDS, read_collection

PROJECTS = ("ecf", "eclipse.jdt.debug", "tomcat70", "eclipse.pde.ui")


def make(folder: Path, out: Path, depth: int, threads: int | None = None) -> None:
    """Write the features of a project's reports, the `depth` best of BM25F each."""
    queries, judgements = read_collection(folder)
    with tempfile.TemporaryDirectory() as temporary:
        index = rs.Index.build(folder / "corpus.jsonl.xz", f"{temporary}/index", fields=FIELDS[folder.name])
        pairs = QueryCandidates(queries, Retriever(index), depth, judgements=judgements)
        start = time.perf_counter()
        written = write_features(pairs, out, threads=threads)
        print(out, written, f"{time.perf_counter() - start:.0f} s", flush=True)


def pooled(folder: Path, out: Path, *, depth: int, reports: int, select: tuple[str, ...], threads: int = 1) -> Path:
    """One file of as many reports of every project, drawn at random, with their candidates; kept if it is there."""
    if out.exists():
        return out
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        parts = []
        for name in PROJECTS:
            queries, judgements = read_collection(folder / f"bugs-{name}")
            chosen = sorted(np.random.default_rng(0).choice(len(queries), reports, replace=False))
            queries = {id: queries[id] for id in np.array(list(queries), dtype=object)[chosen]}
            judgements = {id: judgements[id] for id in queries}
            corpus = folder / f"bugs-{name}" / "corpus.jsonl.xz"
            index = rs.Index.build(corpus, f"{temporary}/{name}", fields=FIELDS[f"bugs-{name}"])
            pairs = QueryCandidates(queries, Retriever(index), depth, judgements=judgements)
            parts.append((pairs, FeatureExtractor(index, select, threads=threads)))
        _write_pooled(parts, out)
    return out


def _write_pooled(parts: list[tuple[QueryCandidates, FeatureExtractor]], out: Path) -> None:
    def blocks() -> Iterator[Block]:
        for pairs, extractor in parts:
            yield from labelled_blocks(pairs, extractor, Notes())

    first = parts[0][1]
    info = FeatureInfo(first.names, first.names.index(first.first_stage))
    write_blocks(blocks(), out, info, query_ids=[id for pairs, _ in parts for id in pairs.queries])


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
