"""Files of the finished cells of a benchmark. A run that was interrupted goes on with the cells that have no file."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any


def path_of_cell(folder: Path, name: str, settings: Any) -> Path:
    """The file of a cell. Its name has a digest of all that the cell depends on: after a change it runs again."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
    plain = re.sub(r"[^\w.-]+", "-", name)
    return folder / f"{plain}-{digest}.json"
