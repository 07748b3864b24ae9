"""Writing files so that a crash, a full disk or Ctrl-C never leaves half of one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ranksieve.errors import DataError


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it becomes `path` in one step, on failure it is removed."""
    target = Path(path)
    if target.exists() and not target.is_file():
        raise DataError(f"{target}: is not a regular file; choose the name of a file to write")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        os.close(handle)
    except OSError as error:
        raise DataError(
            f"{target}: cannot write there ({error.strerror or error}); choose a folder that exists and is writable"
        ) from error
    temporary = Path(name)
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except OSError as error:
        raise DataError(f"{target}: writing failed ({error.strerror or error}); nothing was changed") from error
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
