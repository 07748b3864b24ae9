"""Speed and memory of indexing, speed of retrieval (against bm25s on the same tokens), features, and serving.

    python benchmarks/retrieval.py ../shared/data/ir

CPU time stands beside wall time, so that a busy machine shows. bm25s must be installed for its row.
"""

from __future__ import annotations

import argparse
import itertools
import lzma
import multiprocessing
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np

import ranksieve as rs
from ranksieve.retrieval.corpus import read_documents
from ranksieve.retrieval.feature_extractor import FeatureExtractor
from ranksieve.retrieval.queries import QueryAnalysis, read_queries
from ranksieve.retrieval.searching import Retriever
from results import save

BUG_FIELDS = ["file=path~[^/]+$", "path", "text"]


def timed(call: Callable[[], Any], repeats: int = 3) -> tuple[Any, float, float]:
    """What a call returns, and the least wall and CPU seconds of some."""
    spans = []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        value = call()
        spans.append((time.perf_counter() - wall, time.process_time() - cpu))
    return value, min(span[0] for span in spans), min(span[1] for span in spans)


def busy(seconds: float = 2.0) -> float:
    """Share of the processors' time, in percent, that others take while this process sleeps."""

    def ticks() -> np.ndarray:
        return np.array(Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:], dtype=float)

    before = ticks()
    time.sleep(seconds)
    spent = ticks() - before
    return round(100 * (1 - (spent[3] + spent[4]) / spent.sum()), 1)


def indexing(folder: Path, fields: list[str], out: Path) -> dict:
    """Documents are held in memory, so that neither reading nor decompressing counts."""
    documents = [document for _, document in read_documents(folder / "corpus.jsonl.xz")]
    sources = {field.partition("=")[2].partition("~")[0] or field for field in fields}
    n_bytes = sum(len((doc.get(name) or "").encode()) for doc in documents for name in sources)
    rs.Index.build(documents[:50], out, fields=fields, replace=True)  # compiles
    index, wall, cpu = timed(lambda: rs.Index.build(documents, out, fields=fields, replace=True), 2)
    size = sum(path.stat().st_size for path in out.iterdir())
    return {
        "what": "index", "collection": folder.name, "documents": index.n_docs, "text MB": round(n_bytes / 1e6, 1),
        "index MB": round(size / 1e6, 1), "wall s": round(wall, 2), "cpu s": round(cpu, 2),
        "MB per cpu s": round(n_bytes / 1e6 / cpu, 1),
    }  # fmt: skip


def indexing_memory(folder: Path, field: str, out: Path, copies: int = 8, budget: int = 32 << 20) -> dict:
    """Memory that a process has held after indexing a few documents, and after a corpus larger than the budget.

    The corpus is read as plain text: what a decompressor takes is not the index's. Another process has compiled the
    kernels: what the compiler has freed would serve the index, and its peak would hide the index's.
    """
    plain = out.with_name("corpus.jsonl")
    with lzma.open(folder / "corpus.jsonl.xz") as packed, open(plain, "wb") as file:
        shutil.copyfileobj(packed, file)
    for times in (0, copies):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            n_docs, n_bytes, before, peak = pool.apply(_peaks, (plain, field, out, times, budget))
    return {
        "what": "index memory", "collection": f"{copies} × {folder.name}", "documents": n_docs,
        "text MB": round(n_bytes / 1e6, 1), "budget MB": round(budget / 1e6, 1),
        "peak MB, 50 documents": round(before * 1024 / 1e6, 1), "peak MB": round(peak * 1024 / 1e6, 1),
    }  # fmt: skip


def _peaks(corpus: Path, field: str, out: Path, copies: int, budget: int) -> tuple[int, int, int, int]:
    counts = {"bytes": 0}

    def documents(most: int, times: int) -> Iterator[dict]:
        for copy in range(times):
            for _, document in itertools.islice(read_documents(corpus), most):
                counts["bytes"] += len(document[field].encode())
                yield {"id": f"{copy}/{document['id']}", field: document[field]}

    build = lambda *size: rs.Index.build(documents(*size), out, fields=[field], memory=budget, replace=True)  # noqa: E731
    index, before = build(50, 1), peak_memory()
    if copies:
        counts["bytes"] = 0
        index = build(10**9, copies)
    return index.n_docs, counts["bytes"], before, peak_memory()


def peak_memory() -> int:
    """The most memory that this process has held, in KiB."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text()).group(1))


def retrieval(folder: Path, field: str, out: Path, depth: int) -> dict:
    """One field, BM25, one thread; both get term numbers, so that neither analyses text."""
    import bm25s

    index = rs.Index.build(folder / "corpus.jsonl.xz", out, fields=[field], replace=True)
    texts = list(read_queries(folder / "queries.tsv.xz").values())
    analyzer = index.fields[0].analyzer
    tokens = [
        analyzer.terms(index.fields[0].text(document) or "")
        for _, document in read_documents(folder / "corpus.jsonl.xz")
    ]
    peer = bm25s.BM25(k1=1.2, b=0.75, method="lucene", backend="numba")
    peer.index(tokens, show_progress=False)
    prepared = QueryAnalysis(index).prepare(texts)
    known = [prepared.terms[a:b] for a, b in zip(prepared.starts[:-1], prepared.starts[1:], strict=True)]
    words = [[term for term in dict.fromkeys(analyzer.terms(text)) if index.term_number(term) >= 0] for text in texts]
    assert [len(some) for some in known] == [len(some) for some in words]
    k = min(depth, index.n_docs)
    retriever = Retriever(index, rs.retrieval.FirstStage("bm25", k3=0.0), threads=1)
    retriever.of_prepared(prepared, k)
    ours, our_wall, our_cpu = timed(lambda: retriever.of_prepared(prepared, k))
    retrieve = lambda: peer.retrieve(words, k=k, show_progress=False, n_threads=1)  # noqa: E731
    retrieve()
    theirs, their_wall, their_cpu = timed(retrieve)
    for q in range(len(texts)):
        n = min(10, ours.offsets[q + 1] - ours.offsets[q])
        np.testing.assert_allclose(ours.list_of(q)[1][:n], 2.2 * theirs.scores[q][:n], rtol=1e-3)
    return {
        "what": "retrieve", "collection": folder.name, "queries": len(texts), "depth": k,
        "queries per s": round(len(texts) / our_wall), "bm25s queries per s": round(len(texts) / their_wall),
        "cpu s": round(our_cpu, 3), "bm25s cpu s": round(their_cpu, 3), "× bm25s cpu": round(our_cpu / their_cpu, 2),
    }  # fmt: skip


def features(folder: Path, fields: list[str], out: Path, n_queries: int = 60) -> dict:
    index = rs.Index.build(folder / "corpus.jsonl.xz", out, fields=fields, replace=True)
    texts = list(read_queries(folder / "queries.tsv.xz").values())[:n_queries]
    prepared = QueryAnalysis(index).prepare(texts)
    candidates = Retriever(index).of_prepared(prepared, 1000)
    extractor = FeatureExtractor(index)
    start = time.perf_counter()
    extractor.extract(texts[:1], QueryAnalysis(index).prepare(texts[:1]), Retriever(index).candidates(texts[:1], 10))
    compiling = time.perf_counter() - start
    made, wall, cpu = timed(lambda: extractor.extract(texts, prepared, candidates))
    return {
        "what": "features", "collection": folder.name, "pairs": len(made), "features": made.shape[1],
        "terms per query": round(len(prepared.terms) / len(texts), 1), "threads": numba.get_num_threads(),
        "pairs per s": round(len(made) / wall), "pairs per cpu s": round(len(made) / cpu),
        "first call s": round(compiling, 1),
    }  # fmt: skip


def serving(folder: Path, out: Path, n_queries: int = 93) -> dict:
    """One thread, one query at a time; the model has 300 trees of 16 leaves."""
    index = rs.Index.build(folder / "corpus.jsonl.xz", out, fields=["text"], replace=True)
    queries, judgements = read_queries(folder / "queries.tsv.xz"), rs.io.read_judgements(folder / "qrels.txt.xz")
    data = rs.retrieval.extract_features(index, queries, judgements=judgements, depth=1000)
    model = rs.train(data, trees=300, leaves=16, negatives=0.2, min_negatives=1, min_docs=5, gain="variance")
    pipeline = rs.Pipeline(index, model, depth=1000, threads=1)
    texts = list(queries.values())[:n_queries]
    pipeline.search(texts[0])
    spans = []
    for text in texts:
        start = time.perf_counter()
        pipeline.search(text, k=10)
        spans.append(1000 * (time.perf_counter() - start))
    prepared = QueryAnalysis(index).prepare(texts)
    retriever, extractor = Retriever(index, threads=1), FeatureExtractor(index, threads=1)
    candidates, _, first = timed(lambda: retriever.of_prepared(prepared, 1000))
    rows, _, described = timed(lambda: extractor.extract(texts, prepared, candidates))
    _, _, scored = timed(lambda: model.predict(rows, threads=1))
    per_query = {name: round(1000 * cpu / len(texts), 2) for name, cpu in
                 (("first stage ms", first), ("features ms", described), ("model ms", scored))}  # fmt: skip
    return {
        "what": "serve", "collection": folder.name, "documents": index.n_docs, "trees": model.n_trees, "depth": 1000,
        "p50 ms": round(float(np.percentile(spans, 50)), 2), "p95 ms": round(float(np.percentile(spans, 95)), 2),
        **per_query,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    rows: list[dict] = [{"what": "machine", "cores": os.cpu_count(), "busy before %": busy()}]
    with tempfile.TemporaryDirectory() as temporary:
        out = Path(temporary) / "index"
        for work in (
            lambda: indexing(folder / "bugs-tomcat70", ["path", "text"], out),
            lambda: indexing(folder / "vaswani", ["text"], out),
            lambda: indexing_memory(folder / "bugs-tomcat70", "text", out),
            lambda: retrieval(folder / "vaswani", "text", out, 1000),
            lambda: retrieval(folder / "bugs-tomcat70", "text", out, 1000),
            lambda: features(folder / "bugs-tomcat70", BUG_FIELDS, out),
            lambda: features(folder / "cranfield", ["title", "text"], out),
            lambda: serving(folder / "vaswani", out),
        ):
            rows.append(work())
            print(rows[-1], flush=True)
    save("retrieval", rows)


if __name__ == "__main__":
    main()
