"""SelGB on more documents than fit into memory: peak memory, seconds per tree, bytes read per tree, the same model.

Run `python benchmarks/outofcore.py`; about 40 minutes on two cores, and 19 GB of disk. Lists are generated block by
block and never held whole. Every part runs in a process of its own, whose peak memory is measured:

- preparing a Parquet file: reading and binning it into a bin file,
- `--small` queries (16 million documents) with all bins in memory, and from disk: the model files must be the same,
- `--large` queries (64 million documents) from disk with 4 GiB.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import ranksieve as rs
from paper_settings import TREES, share
from ranksieve.data.bin_file import read_note
from ranksieve.data.bin_store import BinStore, Listener
from ranksieve.data.binned import bin_data
from ranksieve.data.generators import GeneratedSource, _list_size, _stream
from ranksieve.data.parquet import write_parquet
from results import save

SAMPLE = 370  # queries that thresholds are learned from: about a million documents
PARQUET = 1_000  # queries of the Parquet file: 2.7 million documents, 1.7 GB


class FileStore(BinStore):
    """Keeps bins in a file in any case."""

    def fits(self, n_docs: int, width: int, *, beside: bool = False) -> bool:
        return False


class Collection(GeneratedSource):
    """Generated lists whose number is known, so that one pass is enough, and whose bin file is used again."""

    def __init__(self, n_queries: int) -> None:
        super().__init__(rs.synth.two_stage, range(n_queries), 0, 16)
        self.n_docs = sum(_list_size(_stream(0, query)) for query in range(n_queries))
        self.files = (f"two-stage-{n_queries}",)

    def blocks(self, rows: int = 16_384) -> Any:
        done = 0
        for block in super().blocks(rows):
            done += block.n_docs
            self.fraction_read = done / self.n_docs
            yield block

    def fingerprint(self) -> list[Any]:
        return list(self.files)


def bin_file(folder: Path, n_queries: int) -> Path:
    (path,) = folder.glob(f"two-stage-{n_queries}.*.bins")
    return path


def prepare_parquet(folder: Path) -> dict[str, Any]:
    path = folder / "two-stage.parquet"
    store = FileStore("4G", str(folder), keep=False)
    started, used = time.perf_counter(), time.process_time()
    binned = bin_data(path, store=store)
    seconds, used = time.perf_counter() - started, time.process_time() - used
    assert binned.disk is not None
    size = path.stat().st_size
    return {
        "documents": binned.lists.n_docs,
        "Parquet, MB": round(size / 1e6),
        "s": round(seconds, 1),
        "CPU s": round(used, 1),
        "MB/s of Parquet": round(size / 1e6 / seconds),
        "MB/s of float32 values": round(4e-6 * binned.lists.n_docs * binned.binning.n_features / seconds),
    }


def write_bins(folder: Path, n_queries: int) -> dict[str, Any]:
    """Generate lists into a bin file."""
    binning = pickle.loads((folder / "binning").read_bytes())
    started, shown = time.perf_counter(), [0.0]

    class Shown(Listener):
        def prepare(self, doing: str, share: float) -> None:
            if time.perf_counter() - shown[0] > 30:
                shown[0] = time.perf_counter()
                print(f"  {doing}: {share:.0%}, {shown[0] - started:.0f} s", file=sys.stderr, flush=True)

    store = FileStore("4G", str(folder), listener=Shown())
    binned = bin_data(Collection(n_queries), binning=binning, store=store)
    seconds = time.perf_counter() - started
    return {
        "documents": binned.lists.n_docs,
        "generate and bin, s": round(seconds),
        "bins, GB": binned.bins.nbytes / 1e9,
    }


def in_memory(folder: Path, n_queries: int) -> Any:
    """The bins of a file, all in memory."""
    store = FileStore("4G", str(folder))
    binned = bin_data(Collection(n_queries), binning=pickle.loads((folder / "binning").read_bytes()), store=store)
    assert binned.disk is not None
    bins = np.empty(binned.bins.shape, np.uint8)
    binned.disk.file.read(0, bins)
    return replace(binned, bins=bins, disk=None)


def io_counts() -> tuple[int, int]:
    """Bytes that this process has read: by calls, and from the disk itself."""
    counts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counts["rchar"]), int(counts["read_bytes"])


def peak_memory() -> int:
    """Of this program; `ru_maxrss` would include the process that started it."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) << 10


def train(folder: Path, n_queries: int, trees: int, memory: str) -> dict[str, Any]:
    """Train with a limit of memory, or with all bins in memory; the model is saved without its times."""
    options: dict[str, Any] = {"binning": pickle.loads((folder / "binning").read_bytes())}
    data: Any = Collection(n_queries)
    if memory:
        options |= {"memory": memory, "bin_folder": str(folder)}
    else:
        data = in_memory(folder, n_queries)
    read, started = [], time.perf_counter()

    def after_tree(record: Any) -> None:
        read.append(io_counts())
        print(f"  tree {record.step}: {record.seconds:.2f} s, read {read[-1]}", file=sys.stderr, flush=True)

    model = rs.train(
        data, algo="selgb", **TREES, **share(0.01), trees=trees, early_stopping=0, callbacks=[after_tree], **options
    )
    replace(model, info={**model.info, "seconds": []}).save(folder / f"{n_queries}-{memory or 'all'}.txt")
    seconds, (calls, disk) = np.array(model.info["seconds"]), np.diff(read, axis=0).T / 1e9
    return {
        "memory": memory or "all bins in memory",
        "documents": read_note(bin_file(folder, n_queries))["shape"][0],
        "start to end, s": round(time.perf_counter() - started),
        "first tree (everything), s": round(float(seconds[0]), 2),
        "s per tree, 2 to 20": round(float(seconds[1:20].mean()), 3),
        f"s per tree, last 20 of {trees}": round(float(seconds[-20:].mean()), 3),
        "GB read per tree, 2 to 20": round(float(calls[:19].mean()), 2),
        f"GB read per tree, last 20 of {trees}": round(float(calls[-20:].mean()), 2),
        "of these from the disk, GB per tree": round(float(disk.mean()), 2),
        "peak memory, GiB": round(peak_memory() / 2**30, 2),
    }


def run(name: str, *arguments: Any) -> dict[str, Any]:
    """Call a function of this file in a process of its own."""
    code = f"import json, outofcore; print(json.dumps(outofcore.{name}(*outofcore.arguments())))"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True, check=True)
    row = {"part": name.replace("_", " "), **json.loads(done.stdout.splitlines()[-1])}
    print(row, flush=True)
    return row


def arguments() -> list[Any]:
    folder, *others = sys.argv[1:]
    return [Path(folder), *(int(one) if one.isdecimal() else one for one in others)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=6_000, help="queries of the comparison; 0: none")
    parser.add_argument("--large", type=int, default=24_000, help="queries of the large run; 0: none")
    parser.add_argument("--parquet", type=int, default=PARQUET, help="queries of the Parquet file; 0: none")
    parser.add_argument("--trees", type=int, default=60)
    parser.add_argument("--memory", default="4G")
    parser.add_argument("--small-memory", default="1500M")
    parser.add_argument("--folder", type=Path, default=Path("outofcore-data"), help="where the files are; removed")
    parser.add_argument("--name", default="outofcore", help="of the results; empty: do not save them")
    parser.add_argument("--note", default="", help="a remark for the results, such as on what else the machine did")
    given = parser.parse_args()
    folder = given.folder.absolute()
    folder.mkdir(exist_ok=True)
    rows = []
    try:
        (folder / "binning").write_bytes(pickle.dumps(bin_data(rs.synth.two_stage(SAMPLE)).binning))
        if given.parquet:
            write_parquet(
                GeneratedSource(rs.synth.two_stage, range(given.parquet), 0, 16), folder / "two-stage.parquet"
            )
            rows.append(run("prepare_parquet", folder))
            os.unlink(folder / "two-stage.parquet")
        if given.small:
            rows.append(run("write_bins", folder, given.small))
            for memory in ("", given.small_memory):
                rows.append(run("train", folder, given.small, given.trees, memory))
            texts = {(folder / f"{given.small}-{one}.txt").read_bytes() for one in ("all", given.small_memory)}
            assert len(texts) == 1, "the model files differ"
            os.unlink(bin_file(folder, given.small))
        if given.large:
            rows.append(run("write_bins", folder, given.large))
            rows.append(run("train", folder, given.large, given.trees, given.memory))
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    if given.name:
        save(given.name, [{**row, **({"note": given.note} if given.note else {})} for row in rows])


if __name__ == "__main__":
    main()
