"""How often a tree of λ-MART reads the bin file, by the share of rows in memory and the number of leaves.

Run `python benchmarks/disk_passes.py`; a minute on two cores. These are counts of bytes, which do not depend on what
else the machine does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import ranksieve as rs
from ranksieve.boosting.disk_training import passes_per_tree
from ranksieve.data.bin_file import BinFile
from ranksieve.data.bin_store import BinStore
from ranksieve.data.binned import Binned, bin_data
from results import save

QUERIES, TREES = 100, 10
SHARES = (0.05, 0.1, 0.15, 0.25, 0.5)
LEAVES = (8, 16, 64)


class ShareStore(BinStore):
    """Keeps bins in a file, and a share of their rows in memory."""

    share = 1.0

    def fits(self, n_docs: int, width: int, *, validation: bool = False) -> bool:
        return False

    def room(self, file: BinFile) -> int:
        return int(self.share * file.n_rows)


def passes(binned: Binned, share: float, leaves: int) -> dict[str, Any]:
    """Bytes read per tree, as multiples of the file."""
    assert binned.disk is not None
    file, read = binned.disk.file, []
    rs.train(
        binned, algo="lambdamart", trees=TREES, leaves=leaves, early_stopping=0,
        callbacks=[lambda record: read.append(file.bytes_read)],
    )  # fmt: skip
    counts = np.diff(read) / file.n_bytes  # the first tree is left out: the speed of the disk is estimated before it
    return {
        "documents": file.n_rows,
        "share of rows in memory": share,
        "leaves": leaves,
        "times the file is read per tree, mean": round(float(counts.mean()), 1),
        "least": round(float(counts.min()), 1),
        "most": round(float(counts.max()), 1),
        "estimate": passes_per_tree(leaves, binned.disk.room / file.n_rows),
    }


def main() -> None:
    data, rows = rs.synth.two_stage(QUERIES), []
    for share in SHARES:
        store = ShareStore("4G", keep=False)
        store.share = share
        for leaves in LEAVES:
            rows.append(passes(bin_data(data, store=store), share, leaves))
            print(rows[-1], flush=True)
    save("disk_passes", rows)


if __name__ == "__main__":
    main()
