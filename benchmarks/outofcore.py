"""SelGB on more documents than fit into memory: peak memory, seconds per tree, bytes read per tree, the same model.

Run `python benchmarks/outofcore.py --folder DIR`; 5 to 25 minutes on two idle cores, and 16 GB of disk. Lists are
generated block by block and never held whole. Every phase runs in a process of its own, whose peak memory is measured:

- preparing a Parquet file: reading and binning it into a bin file,
- `--small` queries (16 million documents) with all bins in memory, and from disk: the model files must be the same,
- `--large` queries (64 million documents) from disk with 4 GiB.

A run that was stopped goes on with the phase at which it was stopped, if it has the same folder: files stay there until
the end.
"""

from __future__ import annotations

import argparse
import json
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import ranksieve as rs
from paper_settings import TREES, share
from ranksieve.data.bin_file import read_note
from ranksieve.data.bin_store import BinStore, Listener
from ranksieve.data.binned import bin_data
from ranksieve.data.generators import GeneratedSource, _list_size, _stream
from ranksieve.data.parquet import write_parquet
from ranksieve.files import atomic_text
from results import save

SAMPLE = 370  # queries that thresholds are learned from: about a million documents
DOCS_PER_QUERY = 2_690  # in the mean
PARQUET = 1_000  # queries of the Parquet file: 2.7 million documents, 1.7 GB


class FileStore(BinStore):
    """Keeps bins in a file in any case."""

    def fits(self, n_docs: int, width: int, *, validation: bool = False) -> bool:
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
    path, tiny = folder / "two-stage.parquet", folder / "tiny.parquet"
    store = FileStore("4G", str(folder), keep=False)
    write_parquet(rs.synth.two_stage(2), tiny)
    bin_data(tiny, store=store)  # compiles the kernels
    tiny.unlink()
    started, used = time.perf_counter(), time.process_time()
    binned = bin_data(path, store=store)
    seconds, used = time.perf_counter() - started, time.process_time() - used
    assert binned.disk is not None
    decoding = time.process_time()
    for _ in pq.ParquetFile(path, pre_buffer=False).iter_batches(batch_size=16_384, use_threads=False):
        pass
    decoding = time.process_time() - decoding
    size = path.stat().st_size / 1e6
    return {
        "documents": binned.lists.n_docs,
        "Parquet, MB": round(size),
        "s": round(seconds, 1),
        "CPU s": round(used, 1),
        "MB/s of Parquet": round(size / seconds),
        "MB/s of Parquet, two cores by CPU time": round(2 * size / used),
        "MB/s of float32 values": round(4e-6 * binned.lists.n_docs * binned.binning.n_features / seconds),
        "CPU s of one decoding with Arrow": round(decoding, 1),
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
        read.append((*io_counts(), time.process_time()))
        print(f"  tree {record.step}: {record.seconds:.2f} s, read {read[-1][:2]}", file=sys.stderr, flush=True)

    model = rs.train(
        data, algo="selgb", **TREES, **share(0.01), trees=trees, early_stopping=0, callbacks=[after_tree], **options
    )
    replace(model, info={**model.info, "seconds": []}).save(folder / f"{n_queries}-{memory or 'all'}.txt")
    seconds, (calls, disk, used) = np.array(model.info["seconds"]), np.diff(read, axis=0).T
    return {
        "memory": memory or "all bins in memory",
        "documents": read_note(bin_file(folder, n_queries))["shape"][0],
        "start to end, s": round(time.perf_counter() - started),
        "first tree (everything), s": round(float(seconds[0]), 2),
        f"s per tree, 2 to {trees}": round(float(seconds[1:].mean()), 3),
        "s per tree, 2 to 20": round(float(seconds[1:20].mean()), 3),
        f"s per tree, last 20 of {trees}": round(float(seconds[-20:].mean()), 3),
        f"CPU s per tree, 2 to {trees}": round(float(used.mean()), 3),
        "CPU s per tree, 2 to 20": round(float(used[:19].mean()), 3),
        f"CPU s per tree, last 20 of {trees}": round(float(used[-20:].mean()), 3),
        "GB read per tree, 2 to 20": round(float(calls[:19].mean()) / 1e9, 2),
        f"GB read per tree, last 20 of {trees}": round(float(calls[-20:].mean()) / 1e9, 2),
        "of these from the disk, GB per tree": round(float(disk.mean()) / 1e9, 2),
        "peak memory, GiB": round(peak_memory() / 2**30, 2),
    }


def run(name: str, *arguments: Any) -> dict[str, Any]:
    """Call a function of this file in a process of its own."""
    code = f"import json, outofcore; print(json.dumps(outofcore.{name}(*outofcore.arguments())))"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True, check=True)
    return {"part": name.replace("_", " "), **json.loads(done.stdout.splitlines()[-1])}


def arguments() -> list[Any]:
    folder, *others = sys.argv[1:]
    return [Path(folder), *(int(one) if one.isdecimal() else one for one in others)]


class Phases:
    """The phases of a run; the rows of finished ones are in a file, so that the next run skips them."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / "finished.json"
        self._finished: dict[str, Any] = json.loads(self._path.read_text()) if self._path.exists() else {}

    def run(self, name: str, *arguments: Any) -> dict[str, Any]:
        """The row of a phase."""
        key = " ".join(map(str, (name, *arguments)))
        if key not in self._finished:
            print(f"{time.strftime('%H:%M:%S')} {key}", flush=True)
            self._finished[key] = run(name, self._folder, *arguments)
            with atomic_text(self._path) as file:
                file.write(json.dumps(self._finished))
        print(self._finished[key], flush=True)
        return self._finished[key]


def generate_parquet(folder: Path, n_queries: int) -> dict[str, Any]:
    started, path = time.perf_counter(), folder / "two-stage.parquet"
    write_parquet(GeneratedSource(rs.synth.two_stage, range(n_queries), 0, 16), path)
    return {"MB": round(path.stat().st_size / 1e6), "s": round(time.perf_counter() - started)}


def learn_binning(folder: Path) -> dict[str, Any]:
    """Thresholds of about a million documents, for the bins of all parts."""
    (folder / "binning").write_bytes(pickle.dumps(bin_data(rs.synth.two_stage(SAMPLE)).binning))
    return {}


def all_phases(given: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """The rows of all phases; files that are not needed any more are removed."""
    phases = Phases(folder)
    phases.run("learn_binning")
    if given.parquet:
        phases.run("generate_parquet", given.parquet)
        yield phases.run("prepare_parquet")
        (folder / "two-stage.parquet").unlink(missing_ok=True)
    in_memory = None
    if given.small:
        yield phases.run("write_bins", given.small)
        in_memory = phases.run("train", given.small, given.trees, "")
        yield in_memory
        yield phases.run("train", given.small, given.trees, given.small_memory)
        texts = {(folder / f"{given.small}-{one}.txt").read_bytes() for one in ("all", given.small_memory)}
        assert len(texts) == 1, "the model files differ"
        for path in folder.glob(f"two-stage-{given.small}.*.bins"):
            path.unlink()
    if given.large:
        yield phases.run("write_bins", given.large)
        on_disk = phases.run("train", given.large, given.trees, given.memory)
        yield {**on_disk, **({} if in_memory is None else times_per_document(on_disk, in_memory))}


def times_per_document(on_disk: dict[str, Any], in_memory: dict[str, Any]) -> dict[str, float]:
    """How many times the seconds per tree and document of bins in memory a run from disk takes."""
    columns = [name for name in on_disk if "s per tree, " in name and "GB" not in name]
    more = on_disk["documents"] / in_memory["documents"]
    return {f"times, {name}, per document": round(on_disk[name] / in_memory[name] / more, 2) for name in columns}


def check_disk(folder: Path, given: argparse.Namespace) -> None:
    """Raise an error if the largest files do not fit; bins take a byte for each of 224 columns."""
    needed = max(given.large, given.small) * DOCS_PER_QUERY * 224 + given.parquet * DOCS_PER_QUERY * 640
    free = shutil.disk_usage(folder).free + sum(path.stat().st_size for path in folder.iterdir())
    print(f"{folder}: up to {needed / 1e9:.0f} GB are written, {free / 1e9:.0f} GB are free", flush=True)
    if needed > free:
        raise SystemExit("too little space; name another --folder, or fewer --large queries")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=6_000, help="queries of the comparison; 0: none")
    parser.add_argument("--large", type=int, default=24_000, help="queries of the large run; 0: none")
    parser.add_argument("--parquet", type=int, default=PARQUET, help="queries of the Parquet file; 0: none")
    parser.add_argument("--trees", type=int, default=60)
    parser.add_argument("--memory", default="4G")
    parser.add_argument("--small-memory", default="1500M")
    parser.add_argument("--folder", type=Path, default=Path("outofcore-data"), help="for all files; removed at the end")
    parser.add_argument("--name", default="outofcore", help="of the results; empty: do not save them")
    parser.add_argument("--note", default="", help="a remark for the results, such as on what else the machine did")
    given = parser.parse_args()
    folder = given.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    check_disk(folder, given)
    note = {"note": given.note} if given.note else {}
    rows = [{**row, **note} for row in all_phases(given, folder)]
    if given.name:
        save(given.name, rows)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
