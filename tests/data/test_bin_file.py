"""Bins in files: the same as in memory, used again, and written again if they are damaged."""

from __future__ import annotations

import errno
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import ranksieve as rs
from damage import damaged
from ranksieve.data import bin_store
from ranksieve.data.bin_file import BinFile, BinWriter, block_rows
from ranksieve.data.bin_store import BinStore, Listener
from ranksieve.data.binned import Binned, bin_data, bin_like
from ranksieve.data.binning import Binning
from ranksieve.data.parquet import ParquetSource
from ranksieve.data.read import open_data
from ranksieve.errors import DataError, ParameterError
from ranksieve.text_formats import file_size, read_size
from samples import small_dataset

SMALL = "9K"  # less than the bins of the data below take


@pytest.fixture
def data() -> rs.Dataset:
    """Queries with texts as ids whose rows are not adjacent, weights and positions."""
    given = small_dataset(n_queries=15)
    rng = np.random.default_rng(1)
    shuffled = rng.permutation(given.n_docs)
    queries = np.array([f"q{q}" for q in np.repeat(np.arange(15), given.lists.sizes)])
    return rs.Dataset.from_arrays(
        np.asarray(given.features)[shuffled], given.labels[shuffled], qid=queries[shuffled],
        weights=rng.random(given.n_docs), positions=rng.integers(0, 9, given.n_docs),
    )  # fmt: skip


@pytest.fixture
def path(data, tmp_path) -> Path:
    rs.io.write_parquet(data, tmp_path / "train.parquet")
    return tmp_path / "train.parquet"


def from_file(path, memory: str = SMALL, **options) -> Binned:
    binned = bin_data(path, max_bins=16, store=BinStore(memory, **options))
    assert binned.disk is not None
    return binned


def assert_same(a: Binned, b: Binned) -> None:
    np.testing.assert_array_equal(a.bins, b.bins)
    for name in ("labels", "offsets", "query_ids", "weights", "positions", "order"):
        np.testing.assert_array_equal(getattr(a.lists, name), getattr(b.lists, name))
    for name in ("thresholds", "offsets", "features"):
        np.testing.assert_array_equal(getattr(a.binning, name), getattr(b.binning, name))
    assert (a.info.feature_names, a.info.first_stage, a.source) == (b.info.feature_names, b.info.first_stage, b.source)


def test_bins_in_a_file_are_those_in_memory(small_memory, path, data):
    in_memory = bin_data(path, max_bins=16)
    written = from_file(path)
    assert in_memory.lists.order is not None
    assert_same(written, in_memory)
    assert_same(from_file(path), in_memory)  # read back
    given = bin_data(data, max_bins=16, store=BinStore(SMALL))
    assert given.disk is not None and np.array_equal(given.bins, in_memory.bins)


def test_text_is_binned_into_a_file(small_memory, tmp_path):
    lines = [f"{i % 3} qid:{i // 20} 1:{i % 7} 3:{i * 7 % 11}\n" for i in range(900)]
    (tmp_path / "train.txt").write_text("".join(lines))
    expected = bin_data(tmp_path / "train.txt", max_bins=16)
    assert_same(from_file(tmp_path / "train.txt"), expected)
    (tmp_path / "train.txt.weight").write_text("2\n" * 900)  # a file beside it counts as part of it
    assert from_file(tmp_path / "train.txt").lists.weights is not None


def test_a_file_is_used_again_while_the_source_is_unchanged(small_memory, path, monkeypatch):
    from_file(path)
    monkeypatch.setattr(ParquetSource, "blocks", None)  # reading the source would fail
    assert from_file(path).lists.n_docs
    with pytest.raises(TypeError):
        bin_data(path, max_bins=15, store=BinStore(SMALL))
    os.utime(path, (1, 1))
    with pytest.raises(TypeError):
        from_file(path)


def test_validation_bins_depend_on_the_training_bins(small_memory, path, tmp_path):
    train = from_file(path)
    valid = tmp_path / "valid.parquet"
    rs.io.write_parquet(small_dataset(8, seed=3), valid)
    store = BinStore(SMALL)
    store.use_file(bin_store.StoredBins(train.disk.file, train.lists, train.binning, train.info))
    in_file = bin_like(valid, train, store=store)
    assert in_file.disk is not None
    np.testing.assert_array_equal(in_file.bins, bin_like(valid, train).bins)


def test_validation_bins_depend_on_the_categories_of_each_feature(path):
    """Also where the codes of all features, one after the other, are the same."""
    every = [{0: [1, 2], 1: [3]}, {0: [1], 1: [2, 3]}, {0: [1, 2, 3]}, {1: [1, 2, 3]}, {0: [1, 2, 3], 1: []}]
    empty, features = np.zeros(0, np.float32), np.arange(2)
    source, store = open_data(path), BinStore()
    keys = set()
    for codes in every:
        arrays = {feature: np.array(some, np.int64) for feature, some in codes.items()}
        keys.add(store.key(source, {}, Binning(empty, np.zeros(3, np.int64), features, arrays)))
    assert len(keys) == len(every)


@pytest.mark.parametrize("place", [0, 5_000, -400, -3_000])
def test_a_damaged_file_is_written_again(small_memory, path, place, caplog):
    expected = bin_data(path, max_bins=16)
    from_file(path)
    file = Path(f"{path}.bins")
    content = bytearray(file.read_bytes())
    content[place] ^= 0x55
    file.write_bytes(content)
    assert_same(from_file(path), expected)
    assert "train.parquet.bins: the bin file is damaged" in caplog.text
    assert file.read_bytes() != content


@pytest.mark.parametrize("size", [0, 100, 8_000, -1])
def test_a_file_that_was_cut_short_is_written_again(small_memory, path, size):
    expected = bin_data(path, max_bins=16)
    from_file(path)
    file = Path(f"{path}.bins")
    file.write_bytes(file.read_bytes()[:size])
    assert_same(from_file(path), expected)


def test_a_full_disk_is_found_before_writing(small_memory, path, monkeypatch):
    monkeypatch.setattr(bin_store.shutil, "disk_usage", lambda folder: _Free)
    with pytest.raises(
        DataError, match=r"train.parquet.bins: the bin file takes [\d.]+ kB, and 10 B are free.*bin_folder"
    ):
        from_file(path)


class _Free:
    free = 10


def test_a_disk_that_gets_full_leaves_nothing(small_memory, path, monkeypatch):
    def full(self, bins):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(BinWriter, "append", full)
    with pytest.raises(DataError, match=r"train.parquet.bins: writing failed \(No space left on device\)"):
        from_file(path)
    assert sorted(os.listdir(path.parent)) == ["train.parquet"]


KILLED = """
import os, signal, sys
from ranksieve.data import bin_file, bin_store
from ranksieve.data.binned import bin_data
bin_file.BinWriter.finish = lambda *given: os.kill(os.getpid(), signal.SIGKILL)
bin_store.resident_memory = lambda: 0
bin_store.sample_bytes = lambda n_rows, n_features: 0
bin_store.WORK_BYTES = bin_store.FEATURE_BYTES = bin_store.WHOLE_BYTES = 0
bin_store.DOC_BYTES, bin_store.LABEL_BYTES, bin_store.MEMORY_BYTES = 0, 4, 4
bin_store.LEAST_ROWS = 8
bin_data(sys.argv[1], max_bins=16, store=bin_store.BinStore("9K"))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_killed_process_leaves_nothing_that_is_used(small_memory, path):
    ended = subprocess.run([sys.executable, "-c", KILLED, str(path)], capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    left = set(os.listdir(path.parent)) - {"train.parquet"}
    assert left and "train.parquet.bins" not in left
    from_file(path)
    assert sorted(os.listdir(path.parent)) == ["train.parquet", "train.parquet.bins"]


def test_random_damage_changes_no_bin(fuzz_cases, small_memory, path):
    expected = bin_data(path, max_bins=16)
    from_file(path)
    file = Path(f"{path}.bins")
    content = file.read_bytes()
    for number, rng in enumerate(fuzz_cases(20)):
        file.write_bytes(damaged(content, rng))
        try:
            assert_same(from_file(path), expected)
        except Exception as error:
            raise AssertionError(f"case {number}: {error!r}") from error


def test_files_can_be_elsewhere_and_can_be_removed(small_memory, path, tmp_path):
    folder = tmp_path / "bins"
    with pytest.raises(DataError, match=r"cannot write there .* bin_folder='FOLDER'"):
        from_file(path, folder=str(folder))
    folder.mkdir()
    from_file(path, folder=str(folder))
    (name,) = os.listdir(folder)
    assert re.fullmatch(r"train\.parquet\.[0-9a-f]{8}\.bins", name)
    removed = from_file(path, folder=str(folder), keep=False)
    assert os.listdir(folder) == []
    assert_same(removed, bin_data(path, max_bins=16))
    next(removed.disk.file.blocks())


def test_files_of_one_name_have_bin_files_of_their_own(small_memory, tmp_path, monkeypatch):
    folder = tmp_path / "bins"
    folder.mkdir()
    paths = [tmp_path / fold / "train.parquet" for fold in ("Fold1", "Fold2")]
    for seed, part in enumerate(paths):
        part.parent.mkdir()
        rs.io.write_parquet(small_dataset(15, seed=seed), part)
    written = [from_file(part, folder=str(folder)) for part in paths]
    assert len(os.listdir(folder)) == 2
    monkeypatch.setattr(ParquetSource, "blocks", None)  # reading the source would fail
    for part, expected in zip(paths, written, strict=True):
        assert_same(from_file(part, folder=str(folder)), expected)
    monkeypatch.chdir(tmp_path)  # a relative path of the same file
    np.testing.assert_array_equal(from_file(Path("Fold2/train.parquet"), folder=str(folder)).bins, written[1].bins)


def test_bins_of_arrays_are_in_a_temporary_file(small_memory, data, tmp_path):
    binned = bin_data(data, store=BinStore(SMALL, folder=str(tmp_path)))
    assert binned.disk is not None and os.listdir(tmp_path) == []


def test_several_files_have_one_bin_file(small_memory, tmp_path):
    from ranksieve.data.joined import JoinedSource, Piece

    paths = [tmp_path / f"{part}.parquet" for part in "ab"]
    for seed, part in enumerate(paths):
        rs.io.write_parquet(small_dataset(8, seed=seed), part)
    source = JoinedSource([Piece(part) for part in paths])
    from_file(source)
    assert (tmp_path / "a.parquet+1.bins").exists()


def test_sizes_in_refusals_have_the_units_of_the_limit(path):
    """As 4G is read, in units of 1,024 bytes, so that they can be compared."""
    with pytest.raises(ParameterError) as refused:
        rs.train(path, memory="96K", trees=1)
    found = re.search(
        r"memory='96K' is too little: .* take (\S+), and the program (\S+); give at least (\d+M)", str(refused.value)
    )
    rows, program, least = map(read_size, found.groups())
    assert 0 < rows < program < least == pytest.approx(1.1 * (rows + program), rel=0.02)


def test_a_limit_below_the_scores_is_refused(small_memory, path):
    with pytest.raises(
        ParameterError,
        match=r"memory='1K' is too little: scores and gradients of \d+ documents of .*; give at least 1M",
    ):
        from_file(path, "1K")


@pytest.fixture
def sizes(monkeypatch):
    """A program of 100 MB; constants that make sums easy."""
    monkeypatch.setattr(bin_store, "resident_memory", lambda: 100_000_000)
    monkeypatch.setattr(bin_store, "available_memory", lambda: 500_000_000)
    given = {"WORK_BYTES": 10_000_000, "FEATURE_BYTES": 100_000, "DOC_BYTES": 45, "LABEL_BYTES": 5, "WHOLE_BYTES": 10,
             "POSITIVE_BYTES": 0, "MEMORY_BYTES": 50}  # fmt: skip
    for name, value in given.items():
        monkeypatch.setattr(bin_store, name, value)


def test_bins_are_in_memory_up_to_the_limit(sizes):
    """100 features take 10 MB, and a document 150 bytes: 500,000 fit beside 120 MB."""
    store = BinStore("195000000")
    assert store.fits(500_000, 100) and not store.fits(500_001, 100)
    assert store.new_file(None, None, 200_000, 100) is None
    assert store.fits(300_000, 100) and not store.fits(300_001, 100)
    free = BinStore()  # 70% of what is free
    assert free.fits(3_500_000, 100) and not free.fits(3_500_001, 100)


def test_each_forest_of_a_bag_has_scores(sizes):
    """2 million documents need 60 bytes each with one forest, 80 with three."""
    for forests, limit in ((1, 120_000_000 + 120_000_000), (3, 120_000_000 + 160_000_000)):
        least = limit + bin_store.LEAST_ROWS * 100
        BinStore(str(least), forests=forests).check_room(2_000_000, 100, "data")
        with pytest.raises(ParameterError, match="is too little: scores and gradients of 2,000,000 documents of data"):
            BinStore(str(least - 1), forests=forests).check_room(2_000_000, 100, "data")


def test_a_worker_of_a_cluster_has_room_for_fewer_rows(sizes, tmp_path):
    (tmp_path / "x").touch()
    file, rooms = BinFile(tmp_path / "x", 1_000_000, 100), []
    for on_cluster in (False, True):
        store = BinStore("195000000", on_cluster=on_cluster)
        store.use_file(bin_store.StoredBins(file, small_dataset(2).lists, None, None))
        rooms.append(store.rows_in_memory(file))
    assert rooms[0] - rooms[1] == 12 * 1_000_000 // 100


@pytest.mark.parametrize(("memory", "left"), [("195000000", 75_000_000), ("auto", 330_000_000)])
def test_rows_in_memory_take_what_the_limit_leaves(sizes, tmp_path, memory, left):
    store, files = BinStore(memory), []
    for n_rows in (1_000_000, 250_000):
        path = tmp_path / f"{n_rows}"
        path.touch()
        files.append(BinFile(path, n_rows, 100))
        store.use_file(bin_store.StoredBins(files[-1], small_dataset(2).lists, None, None))
    left -= 1_250_000 * 45 + 2 * small_dataset(2).n_docs  # labels take one byte
    assert [store.rows_in_memory(file) for file in files] == [min(left * 4 // 500, 10**6), min(left // 500, 250_000)]


def test_a_limit_below_the_scores_or_the_sample_is_refused_at_the_last_byte(sizes):
    store = BinStore("195000000")
    store.check_room(1_248_293, 100, "x")  # 60 bytes each, and 1,024 rows
    with pytest.raises(ParameterError, match=r"gradients of 1,248,294 documents of x .* give at least 205M"):
        store.check_room(1_248_294, 100, "x")
    store.check_sample(10**9, 184, "x")  # 90,112 rows × 184 features of 4 bytes are 66.3 MB, beside 128.4 MB
    with pytest.raises(ParameterError, match=r"too little: the rows of x that thresholds .* give at least 205M"):
        store.check_sample(10**9, 185, "x")
    store.check_sample(50_000, 185, "x")


@pytest.mark.parametrize(
    ("memory", "start"), [("200", "200 bytes; did you mean 200M? It is too little"), ("9M", "too little")]
)
def test_a_limit_below_the_program_says_what_the_program_takes(sizes, memory, start):
    with pytest.raises(ParameterError) as caught:
        BinStore(memory).check_sample(0, 100, "x")
    assert str(caught.value) == f"memory={memory!r} is {start}: the program takes 114M; give at least 126M"


LIMITED = """
import re, sys
import ranksieve as rs

def train(path, memory):
    rs.train(path, memory=memory, trees=2, leaves=8, threads=1, algo="lambdamart", keep_bins=False)

small, large = sys.argv[1:]
train(small, "4G")  # compiles kernels
try:
    train(large, "1M")
except rs.errors.ParameterError as error:
    memory = re.search("give at least (.*)", str(error))[1]
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak begins anew
train(large, memory)
with open("/proc/self/status") as file:
    peak = next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))
print(int(memory.removesuffix("M")) << 20, peak)
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak of a process cannot be measured")
def test_the_process_stays_below_the_least_limit(tmp_path):
    """The rows that thresholds are computed from take 72 MB, and the buffers of a reader more."""
    rng = np.random.default_rng(0)
    for name, n_docs in (("small", 2_000), ("large", 40_000)):
        X = rng.integers(0, 1_000, (n_docs, 448)).astype(np.float32)
        given = rs.Dataset.from_arrays(X, (X[:, 0] > 900).astype(int), qid=np.arange(n_docs) // 100)
        rs.io.write_parquet(given, tmp_path / f"{name}.parquet")
    command = [sys.executable, "-c", LIMITED, tmp_path / "small.parquet", tmp_path / "large.parquet"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    limit, peak = map(int, ended.stdout.split())
    assert peak <= limit


def test_without_a_limit_bins_go_to_a_file_if_they_take_most_of_the_memory(small_memory, path, monkeypatch, caplog):
    n_bytes = bin_data(path, max_bins=16).bins.nbytes
    monkeypatch.setattr(bin_store, "available_memory", lambda: int(n_bytes / 0.69))
    assert bin_data(path, max_bins=16, store=BinStore()).disk is None
    assert not caplog.records
    monkeypatch.setattr(bin_store, "available_memory", lambda: int(n_bytes / 0.71))
    with caplog.at_level(logging.WARNING):
        assert bin_data(path, max_bins=16, store=BinStore()).disk is not None
    assert [record.getMessage() for record in caplog.records] == [
        f"the bins of {path} take {file_size(n_bytes)}, more than 70% of the free memory, "
        f"{file_size(int(n_bytes / 0.71))}; they are kept in {path}.bins"
    ]


def test_a_limit_that_bins_fit_into_is_reported(path, caplog):
    assert bin_data(path, max_bins=16, store=BinStore("9G")).disk is None
    assert [record.getMessage() for record in caplog.records] == [
        f"the bins of {path} take {file_size(bin_data(path, max_bins=16).bins.nbytes)} and fit into memory"
    ]


def test_relevant_documents_leave_room_for_fewer_rows(sizes, tmp_path, monkeypatch):
    (tmp_path / "x").touch()
    file, rooms = BinFile(tmp_path / "x", 1_000_000, 100), []
    lists = small_dataset(9).lists
    for size in (0, 400):
        monkeypatch.setattr(bin_store, "POSITIVE_BYTES", size)
        store = BinStore("195000000")
        store.use_file(bin_store.StoredBins(file, lists, None, None))
        rooms.append(store.rows_in_memory(file))
    assert rooms[0] - rooms[1] == 4 * np.count_nonzero(lists.labels) > 0


def test_weights_and_validation_sets_leave_room_for_fewer_rows(sizes, tmp_path, data):
    (tmp_path / "x").touch()
    file, rooms = BinFile(tmp_path / "x", 1_000_000, 100), []
    for lists, validation in ((small_dataset(2).lists, False), (data.lists, False), (small_dataset(2).lists, True)):
        store = BinStore("195000000")
        store.use_file(bin_store.StoredBins(file, lists, None, None), validation=validation)
        rooms.append(store.rows_in_memory(file))
    columns = data.lists.weights.nbytes + data.lists.positions.nbytes + data.lists.order.nbytes
    n_docs, left = small_dataset(2).n_docs, 75_000_000 - 45_000_000
    assert rooms[0] == (left - n_docs) // 100
    assert rooms[1] == (left - data.n_docs - columns) // 100
    assert rooms[2] == (left - 5 * n_docs - 1_000_000 * bin_store.TOP_BYTES) // 100


def test_progress_is_reported(small_memory, path):
    seen = []

    class Seen(Listener):
        def prepare(self, doing, share):
            seen.append((doing, share))

    from_file(path, listener=Seen())
    from_file(path, listener=Seen())
    assert {doing for doing, _ in seen} == {"reading the data", "binning the data", "checking train.parquet.bins"}
    assert seen[-1][1] == 1.0


def test_a_file_that_is_replaced_while_it_is_used_stays_the_same(tmp_path):
    path, other = tmp_path / "x.bins", tmp_path / "y.bins"
    path.write_bytes(bytes([1] * 64))
    file = BinFile(path, 4, 16)
    other.write_bytes(bytes([2] * 16))  # also shorter
    os.replace(other, path)
    assert (file.mapped == 1).all() and (file.read(0, np.empty((4, 16), np.uint8)) == 1).all()


@pytest.mark.skipif(sys.platform != "linux", reason="sizes of mapped files are limited in other ways")
def test_a_file_can_be_larger_than_all_memory(tmp_path):
    n_rows = 8 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1_024
    with open(tmp_path / "x.bins", "wb") as sparse:
        sparse.truncate(n_rows * 1_024)
    mapped = BinFile(tmp_path / "x.bins", n_rows, 1_024).mapped
    assert mapped.shape == (n_rows, 1_024) and mapped[-1].max() == 0


def test_a_file_that_was_cut_short_while_it_was_used_is_reported(tmp_path):
    (tmp_path / "x.bins").write_bytes(bytes(5 * 16))
    file = BinFile(tmp_path / "x.bins", 6, 16)
    visit = lambda: list(file.visit(lambda first, bins: None, 2))  # noqa: E731
    for use in (lambda: file.mapped, lambda: list(file.blocks()), visit, lambda: file.take(np.array([5]))):
        with pytest.raises(DataError, match=r"x\.bins: the bin file was cut short while it was used; start again"):
            use()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("end", ["close", "stop", "raise", "work"])
def test_a_visit_may_end_early(small_memory, tmp_path, threads, end):
    """Where a consumer stops or fails, or work fails: threads end, no more blocks are read, and the file is closed."""
    (tmp_path / "x.bins").write_bytes(bytes(500 * 16))
    opened = open(tmp_path / "x.bins", "rb", buffering=0)  # noqa: SIM115 (closed with the BinFile)
    file, before, worked = BinFile(tmp_path / "x.bins", 500, 16, opened), threading.active_count(), []

    def work(first, bins):
        worked.append(first)
        if end == "work" and len(worked) == 2:
            raise ArithmeticError

    if end == "close":
        visit = file.visit(work, threads)
        assert next(visit)[0] == 0
        visit.close()
        del visit
    else:
        try:
            for _ in file.visit(work, threads):
                if end == "stop":
                    break
                if end == "raise":
                    raise ArithmeticError
        except ArithmeticError:
            assert end != "stop"
        else:
            assert end == "stop"
    assert threading.active_count() == before and len(worked) <= 2 * threads + 1
    read = file.bytes_read
    time.sleep(0.01)
    assert file.bytes_read == read < file.n_bytes
    del file
    assert opened.closed


def test_the_file_that_was_verified_is_used(small_memory, path, tmp_path, monkeypatch):
    expected = from_file(path)
    verify = bin_store.verify

    def replaced_afterwards(*given):
        verify(*given)
        (tmp_path / "other").write_bytes(b"x")
        os.replace(tmp_path / "other", f"{path}.bins")

    monkeypatch.setattr(bin_store, "verify", replaced_afterwards)
    assert_same(from_file(path), expected)


@pytest.mark.parametrize("regrouped", [False, True])
@pytest.mark.skipif(sys.platform == "win32", reason="open files cannot be replaced")
def test_the_file_that_was_written_is_used(small_memory, tmp_path, data, monkeypatch, regrouped):
    path = tmp_path / "train.parquet"
    rs.io.write_parquet(data if regrouped else small_dataset(n_queries=15), path)
    expected = bin_data(path, max_bins=16)
    assert (expected.lists.order is not None) == regrouped
    end = bin_store.FileSink.__exit__

    def replaced_afterwards(*given):
        end(*given)
        (tmp_path / "other").write_bytes(b"x")
        os.replace(tmp_path / "other", f"{path}.bins")

    monkeypatch.setattr(bin_store.FileSink, "__exit__", replaced_afterwards)
    assert_same(from_file(path), expected)


def test_rows_are_read_as_they_were_written(small_memory, tmp_path):
    rng = np.random.default_rng(0)
    bins = rng.integers(0, 256, (500, 16), dtype=np.uint8)
    writer = BinWriter(tmp_path / "x.bins", 16)
    for part in np.split(bins, [3, 100, 101, 430]):
        writer.append(part)
    writer.finish({}, {})
    writer.close()
    file = BinFile(tmp_path / "x.bins", 500, 16)
    np.testing.assert_array_equal(file.mapped, bins)
    for threads, sizes in ((0, [64] * 7 + [52]), (1, [64] * 7 + [52]), (2, [42] * 11 + [38]), (500, [1] * 500)):
        visited = file.visit(lambda first, bins: (first, bins.sum()), threads) if threads else file.blocks()
        blocks = [(first, block.copy(), *found) for first, block, *found in visited]
        assert [len(block) for _, block, *_ in blocks] == sizes
        assert [first for first, *_ in blocks] == np.cumsum([0, *sizes[:-1]]).tolist()
        np.testing.assert_array_equal(np.concatenate([block for _, block, *_ in blocks]), bins)
        assert all(found == [(first, block.sum())] for first, block, *found in blocks if found)
    for share in (0.01, 0.3, 1.0):
        rows = np.flatnonzero(rng.random(500) < share).astype(np.int32)
        before = file.bytes_read
        np.testing.assert_array_equal(file.take(rows), bins[rows])
        assert file.bytes_read - before <= file.cost(rows)
    assert file.take(np.empty(0, np.int32)).shape == (0, 16)
    assert file.cost(np.arange(500)) < file.n_bytes * 2
    assert len(file._ranges(np.array([0, 1, 2, 60, 61, 499]))) == 3
    assert block_rows(16) == 64
