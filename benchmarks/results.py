"""Where benchmark results are kept: one JSON file a benchmark, with the machine and the versions."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
from pathlib import Path

FOLDER = Path(__file__).parent / "results"
VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2"}
PACKAGES = ("ranksieve", "numba", "numpy", "lightgbm", "scikit-learn")


def machine() -> str:
    """The processor, its number of usable cores and its widest vectors."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    flags = facts.get("flags", "").split()
    vectors = [name for flag, name in VECTORS.items() if flag in flags][:1]
    model = facts.get("model name") or platform.processor() or platform.machine()
    return ", ".join([model, f"{os.cpu_count()} cores", *vectors])


def save(name: str, rows: list[dict]) -> None:
    """Replace the results of one benchmark."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    content = {"date": str(datetime.date.today()), "machine": machine(), "versions": versions, "rows": rows}
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")
