"""Where benchmark results are kept: one JSON file a benchmark, with the machine and the versions."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
from pathlib import Path

FOLDER = Path(__file__).parent / "results"
PACKAGES = ("ranksieve", "numba", "numpy", "lightgbm", "scikit-learn")


def machine() -> str:
    """The processor and its number of usable cores."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].split(":", 1)[1].strip() if lines else model
    return f"{model}, {os.cpu_count()} cores"


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
