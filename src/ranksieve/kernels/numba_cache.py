"""Whether compiled kernels are on disk yet; what is compiled at the first use takes a while."""

from __future__ import annotations

import logging
import os
from pathlib import Path

CACHE = Path(__file__).parent / "__pycache__"  # where Numba keeps kernels, if it may


def is_first_use(kernels: str) -> bool:
    """Whether kernels, named by their file, are yet to be compiled; False where Numba keeps them elsewhere or not."""
    elsewhere = os.environ.get("NUMBA_CACHE_DIR") or not os.access(CACHE if CACHE.exists() else CACHE.parent, os.W_OK)
    interpreted = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
    return not elsewhere and not interpreted and not any(CACHE.glob(f"{kernels}.*.nbi"))


def log_first_use(kernels: str) -> None:
    """Log that kernels are compiled; a warning, as it is shown where logging is not set up, and happens once."""
    if is_first_use(kernels):
        logging.getLogger("ranksieve").warning("compiling kernels (first use only); this may take a minute or two")
