"""The service beside the pipeline that it serves: latency, throughput, errors and memory, over the loopback interface.

    python benchmarks/serving.py ../shared/data/ir/bugs-tomcat70

One service process, 1,000 candidates with all features, a model of 500 trees. The pipeline is called directly in one
process for its latency, and in as many processes as there are cores for its throughput. Answers are compared with the
pipeline's before anything is timed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

import ranksieve as rs
from ranksieve.retrieval.queries import read_queries
from results import save
from retrieval import BUG_FIELDS, busy

DEPTH, N_TREES, K = 1000, 500, 10
LONGEST = 2000  # characters of a query: bug reports are long
WARM_UP = 50  # requests


def prepare(collection: Path, folder: Path, n_queries: int) -> list[str]:
    """Build the index and the model; returns texts of queries that have as many candidates as asked for."""
    index = rs.Index.build(collection / "corpus.jsonl.xz", folder / "index", fields=BUG_FIELDS)
    queries = {id: text[:LONGEST] for id, text in read_queries(collection / "queries.tsv.xz").items()}
    judgements = rs.io.read_judgements(collection / "qrels.txt.xz")
    some = dict(list(queries.items())[:n_queries])
    data = rs.retrieval.extract_features(index, some, judgements=judgements, depth=DEPTH)
    rs.train(data, trees=N_TREES, leaves=16, verbose=False).save(folder / "model.txt")
    sizes = np.diff(data.offsets)
    return [some[str(id)] for id, size in zip(data.query_ids, sizes, strict=True) if size == DEPTH]


class Client:
    """A connection that is kept open."""

    def __init__(self, port: int):
        self._port = port

    async def __aenter__(self) -> Client:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 24)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def ask(self, path: str, body: bytes | None = None, kind: str = "application/json") -> tuple[int, bytes]:
        """The status and body of an answer."""
        method = "GET" if body is None else "POST"
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n"
        if body is not None:
            head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        self._writer.write(head.encode() + b"\r\n" + (body or b""))
        received = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(received.partition("content-length:")[2].split("\r\n")[0])
        return int(received.split()[1]), await self._reader.readexactly(length)


def path_of(text: str) -> str:
    return f"/search?q={quote(text)}&k={K}"


async def latencies(port: int, requests: Sequence[tuple[Any, ...]]) -> list[float]:
    """Milliseconds of requests, one after the other."""
    spans = []
    async with Client(port) as client:
        for request in requests:
            start = time.perf_counter()
            status, _ = await client.ask(*request)
            spans.append(1000 * (time.perf_counter() - start))
            assert status == 200
    return spans


async def load(port: int, paths: list[str], n_requests: int, connections: int) -> tuple[float, int, list[float]]:
    """Seconds for so many requests over some connections, errors among them, and their milliseconds."""
    left, errors, spans = iter(range(n_requests)), 0, []

    async def work() -> None:
        nonlocal errors
        async with Client(port) as client:
            for number in left:
                start = time.perf_counter()
                status, _ = await client.ask(paths[number % len(paths)])
                spans.append(1000 * (time.perf_counter() - start))
                errors += status != 200

    start = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(connections)))
    return time.perf_counter() - start, errors, spans


def direct(folder: str, texts: list[str], n_searches: int, spans: Any = None) -> list[float]:
    """Milliseconds of searches by the pipeline alone."""
    found = []
    with rs.Pipeline(f"{folder}/index", f"{folder}/model.txt", threads=1) as pipeline:
        for text in texts[:5]:
            pipeline.search(text)
        if spans is not None:
            spans.wait()
        for number in range(n_searches):
            start = time.perf_counter()
            pipeline.search(texts[number % len(texts)], K)
            found.append(1000 * (time.perf_counter() - start))
    return found


def direct_throughput(folder: str, texts: list[str], n_searches: int) -> float:
    """Searches per second by as many processes as there are cores."""
    context, n_cores = multiprocessing.get_context("spawn"), os.cpu_count() or 1
    barrier = context.Barrier(n_cores + 1)
    each = n_searches // n_cores
    workers = [context.Process(target=direct, args=(folder, texts, each, barrier)) for _ in range(n_cores)]
    for worker in workers:
        worker.start()
    barrier.wait()
    start = time.perf_counter()
    for worker in workers:
        worker.join()
    return each * n_cores / (time.perf_counter() - start)


def memory(process: int) -> float:
    """Megabytes that a process holds."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


def start_service(folder: Path) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, "-m", "ranksieve", "serve", folder / "index", "--model", folder / "model.txt"]
    process = subprocess.Popen([*map(str, command), "--port", "0"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = next(line for line in process.stdout if "ready on" in line)
    return process, int(line.split(":")[-1].split(";")[0])


def p(spans: list[float], share: float) -> float:
    return round(float(np.percentile(spans, share)), 2)


async def check_answers(port: int, folder: Path, texts: list[str]) -> None:
    """The service answers what the pipeline does."""
    with rs.Pipeline(folder / "index", folder / "model.txt") as pipeline:
        async with Client(port) as client:
            for text in texts[:10]:
                _, body = await client.ask(path_of(text))
                hits = [(hit["document"], hit["score"], hit["rank"]) for hit in json.loads(body)["hits"]]
                assert hits == pipeline.search(text, K)


def vectors(folder: Path, text: str) -> dict[str, tuple[bytes, str]]:
    """The feature vectors of a query's candidates, and their content type: as 32-bit floats, as Python writes them in
    JSON, and in JSON with as few digits as float32 needs.
    """
    with rs.Pipeline(folder / "index", folder / "model.txt") as pipeline:
        features = pipeline.score(text).features
    rows = [[None if np.isnan(value) else float(value) for value in row] for row in features]
    short = ",".join(f"[{','.join('null' if np.isnan(one) else str(one) for one in row)}]" for row in features)
    return {
        "binary": (features.astype("<f4").tobytes(), "application/octet-stream"),
        "json": (json.dumps({"features": rows}).encode(), "application/json"),
        "json, float32": (f'{{"features":[{short}]}}'.encode(), "application/json"),
    }


def measure(folder: Path, texts: list[str], n_requests: int, n_timed: int) -> list[dict]:
    """All rows; latencies of service and pipeline are taken in turns, so that both see the same machine."""
    process, port = start_service(folder)
    try:
        asyncio.run(check_answers(port, folder, texts))
        requests = [(path_of(text),) for text in texts]
        asyncio.run(latencies(port, (requests * WARM_UP)[:WARM_UP]))
        ours, theirs = [], []
        for _ in range(5):
            theirs += direct(str(folder), texts, n_timed // 5)
            ours += asyncio.run(latencies(port, (requests * n_timed)[: n_timed // 5]))
        rows = [
            {"what": "latency", "pipeline p50 ms": p(theirs, 50), "pipeline p99 ms": p(theirs, 99),
             "service p50 ms": p(ours, 50), "service p99 ms": p(ours, 99),
             "overhead p50 ms": round(p(ours, 50) - p(theirs, 50), 2)},
        ]  # fmt: skip
        for name, (body, kind) in vectors(folder, texts[0]).items():
            spans = asyncio.run(latencies(port, [("/rerank", body, kind)] * 200))[20:]
            rows.append({"what": f"rerank vectors, {name}", "vectors": DEPTH, "MB": round(len(body) / 1e6, 2),
                         "p50 ms": p(spans, 50), "p99 ms": p(spans, 99)})  # fmt: skip
        alone = direct_throughput(str(folder), texts, n_timed * 2)
        before = memory(process.pid)
        paths = [path for (path,) in requests]
        seconds, errors, spans = asyncio.run(load(port, paths, n_requests, 16))
        again = direct_throughput(str(folder), texts, n_timed * 2)
        both = (alone + again) / 2
        rows.append({"what": "load", "connections": 16, "requests": n_requests, "errors": errors,
                     "per s": round(n_requests / seconds, 1), "pipeline per s": round(both, 1),
                     "share %": round(100 * n_requests / seconds / both, 1), "p50 ms": p(spans, 50),
                     "p99 ms": p(spans, 99), "MB before": before, "MB after": memory(process.pid)})  # fmt: skip
        return rows
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", type=Path)
    parser.add_argument("--requests", type=int, default=20_000, help="requests over 16 connections")
    parser.add_argument("--timed", type=int, default=500, help="requests one after the other")
    parser.add_argument("--queries", type=int, default=100, help="queries to train on and to send")
    given = parser.parse_args()
    rows: list[dict] = [{"what": "machine", "cores": os.cpu_count(), "busy before %": busy()}]
    with tempfile.TemporaryDirectory() as temporary:
        texts = prepare(given.collection, Path(temporary), given.queries)
        rows.append({"what": "service", "collection": given.collection.name, "trees": N_TREES, "candidates": DEPTH,
                     "features": rs.load(Path(temporary) / "model.txt").n_features, "queries": len(texts)})  # fmt: skip
        rows += measure(Path(temporary), texts, given.requests, given.timed)
    for row in rows:
        print(row, flush=True)
    save("serving", rows)


if __name__ == "__main__":
    main()
