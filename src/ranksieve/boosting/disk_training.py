"""Training on bins in files: what can be trained so, and how long a tree takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ranksieve.data.bin_file import BinFile, block_rows
from ranksieve.data.bin_store import BinStore, Listener
from ranksieve.data.binned import Binned
from ranksieve.dtypes import BIN
from ranksieve.errors import ParameterError, param
from ranksieve.params import Params
from ranksieve.rules import AUTO, traits_of
from ranksieve.text_formats import duration, file_size

LEVELWISE_SHARE = 0.12  # share of the rows in memory from which on a tree reads the file about once for each level
SAMPLE_BLOCKS = 8  # blocks that are read to estimate the speed of the disk
SECONDS_PER_BIN = 1e-9  # seconds of one thread for one bin of one document in one pass


def store_of(params: Params, callbacks: Sequence[Callable[[Any], None]] = ()) -> BinStore | None:
    """Where the bins of a run are kept; None: in memory. Refuses a limit of memory where bins have to be in memory.

    Callbacks that have the methods of a `Listener` get the progress of making bins.
    """
    if params.device != "cpu" and params.bag == 1:
        from ranksieve.cuda import device

        if device.is_chosen(params.device):
            return None  # `memory` is that of the GPU
    if params.forest_algorithm.grower != "best-first":
        if params.memory != AUTO:
            raise ParameterError(
                param("memory", params.memory), " does not work with ", param("algo", params.algo), ", which needs all "
                "bins in memory; leave one of the two out",
            )  # fmt: skip
        return None
    return BinStore(params.memory, params.bin_folder, params.keep_bins, listener_of(callbacks), params.bag)


def display_of(callbacks: Sequence[Any]) -> Listener | None:
    """The callback that shows progress and notes to a user; None if there is none."""
    return next((one for one in callbacks if hasattr(one, "note")), None)


def listener_of(callbacks: Sequence[Any]) -> Listener:
    """The callback that shows progress and notes to a user; otherwise one that logs notes."""
    return display_of(callbacks) or Listener()


def report_disk_time(
    data: Binned, params: Params, callbacks: Sequence[Callable[[Any], None]] = (), *, threads: int
) -> None:
    """Say how long a tree takes if each is grown on all rows of a file."""
    if data.disk is None or (traits_of(params.selection_rule).is_periodic and params.bag == 1):
        return
    file = data.disk.file
    passes = passes_per_tree(params.leaves, data.disk.room / file.n_rows)
    seconds = passes * file.n_bytes * (_seconds_per_byte(file) + SECONDS_PER_BIN / threads)
    listener_of(callbacks).note(
        f"every tree reads the {file_size(file.n_bytes)} of bins about {passes} times, in about {duration(seconds)}; "
        "trees on selected rows, such as those of selgb, take much less time"
    )


def passes_per_tree(leaves: int, share: float) -> int:
    """About how often a tree on all rows reads the file, with a share of the rows in memory.

    Measured with benchmarks/disk_passes.py: once for each level of a balanced tree, or once for two leaves if there is
    little memory.
    """
    return (leaves - 1).bit_length() if share >= LEVELWISE_SHARE else -(-leaves // 2)


def _seconds_per_byte(file: BinFile) -> float:
    """From some blocks of the file."""
    rows = min(block_rows(file.width), file.n_rows)
    space, started = np.empty((rows, file.width), BIN), time.perf_counter()
    for first in np.linspace(0, file.n_rows - rows, SAMPLE_BLOCKS).astype(np.int64):
        file.read(int(first), space)
    return (time.perf_counter() - started) / (SAMPLE_BLOCKS * space.nbytes)
