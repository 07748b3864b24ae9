"""Cells of a benchmark that are kept on disk, so that a run which was interrupted goes on with what is missing."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any


def kept_path(folder: Path, name: str, settings: Any) -> Path:
    """The file of a cell: its name, and a digest of all it depends on, so that what changes is run anew."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
    plain = re.sub(r"[^\w.-]+", "-", name)
    return folder / f"{plain}-{digest}.json"
