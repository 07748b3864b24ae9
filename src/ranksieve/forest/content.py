"""`read_content`: what a model file holds."""

from __future__ import annotations

import os
from pathlib import Path

from ranksieve.errors import ModelError


def read_content(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a model file."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); check the path") from error
