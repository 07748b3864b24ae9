"""Compiled loops: arrays in, arrays out."""

from ranksieve.kernels.numba_cache import CACHE, drop_stale
from ranksieve.threads import prepare_threads

prepare_threads()
drop_stale(CACHE, [*CACHE.parent.glob("*.py"), CACHE.parent.parent / "dtypes.py"])
