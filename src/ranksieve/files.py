"""Writing files so that a crash, a full disk or Ctrl-C never leaves half of one."""

from __future__ import annotations

import contextlib
import os
import shutil
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


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike[str], *, replace: bool = False) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; on success it becomes `path`, on failure it is removed.

    What is there already is refused, or with `replace` gives way in the end.
    """
    target = Path(path)
    if target.exists() and not replace:
        raise DataError(f"{target}: exists already; choose another name, or remove it first")
    try:
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise DataError(
            f"{target}: cannot write there ({error.strerror or error}); choose a folder that exists and is writable"
        ) from error
    try:
        yield temporary
        os.chmod(temporary, 0o777 & ~_umask())
        if target.exists():
            old = temporary.with_name(f"{temporary.name}.old")
            os.replace(target, old)
            os.replace(temporary, target)
            shutil.rmtree(old)
        else:
            os.replace(temporary, target)
    except OSError as error:
        raise DataError(f"{target}: writing failed ({error.strerror or error}); nothing was changed") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
