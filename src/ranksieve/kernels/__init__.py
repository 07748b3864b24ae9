"""Compiled loops: arrays in, arrays out."""

import os

from ranksieve.kernels.numba_cache import CACHE, drop_stale

# Threads of GNU OpenMP spin for a millisecond and more before they sleep. Kernels here follow each other within
# microseconds, and on a busy machine two programs that spin starve each other: measured, a hundred times slower.
if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
    os.environ["GOMP_SPINCOUNT"] = "2000"

drop_stale(CACHE, [*CACHE.parent.glob("*.py"), CACHE.parent.parent / "dtypes.py"])
