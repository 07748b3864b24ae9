"""Trees and shares as in the SelGB paper, for benchmarks that do not measure the defaults."""

from __future__ import annotations

from typing import Any

TREES: dict[str, Any] = {"leaves": 64, "min_docs": 5}
VARIANCE: dict[str, Any] = {**TREES, "gain": "variance"}


def share(negatives: float) -> dict[str, Any]:
    """A share of each query's negatives, however few they are."""
    return {"negatives": negatives, "min_negatives": 1}
