"""Writing files so that a crash, a full disk, Ctrl-C or kill -9 never leaves half of one."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from ranksieve.errors import DataError

if sys.platform != "win32":
    import fcntl

UNFINISHED = ".ranksieve-tmp"  # ending of what is being written
OLD = ".old"  # added to the name of a folder that is being replaced, where folders cannot be exchanged in one step
LONGEST_NAME = 100  # characters of the target's name that the temporary name repeats
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # constants of Linux's renameat2


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it becomes `path` in one step, on failure it is removed.

    What a killed process has left beside the same path is removed first.
    """
    target = Path(path)
    with _unfinished(target, _make_file) as temporary:
        try:
            yield temporary
            with open(temporary, "rb") as file:
                os.fsync(file.fileno())
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, target)
            _sync_folder(target.parent)
        except OSError as error:
            raise _failed(target, error) from error


@contextlib.contextmanager
def scratch_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield another temporary path beside `path`, for work on it; it is removed in any case."""
    with _unfinished(Path(path), _make_file) as temporary:
        yield temporary


@contextlib.contextmanager
def atomic_text(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Yield a text file that becomes `path` in one step on success, and is removed on failure."""
    with atomic_path(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        yield file


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike[str], *, replace: bool = False) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; on success it becomes `path`, on failure it is removed.

    A folder that exists is refused. With `replace` it is exchanged at the end: in one step on Linux; elsewhere a
    process that is killed between two renames leaves the old folder under a hidden name, and the next call restores it.
    """
    target = Path(path)
    restore_folder(target)
    if target.exists() and not replace:
        raise DataError(f"{target}: exists already; choose another name, or remove it first")
    with _unfinished(target, _make_folder) as temporary:
        try:
            yield temporary
            os.chmod(temporary, 0o777 & ~_umask())
            if replace and target.exists():
                _exchange(temporary, target)
            elif target.exists():  # made by another process in the meantime, perhaps empty
                raise FileExistsError(0, "exists by now", str(target))
            else:
                os.rename(temporary, target)
        except OSError as error:
            raise _failed(target, error) from error


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a file that `atomic_path` could not write; to be called before long work."""
    with _unfinished(Path(path), _make_file):
        pass


def check_folder(path: str | os.PathLike[str]) -> None:
    """Refuse a folder that cannot be made, or in which nothing can be written; to be called before long work."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder}: is not a folder; choose another name")
    while not folder.exists() and folder.parent != folder:
        folder = folder.parent
    if not os.access(folder, os.W_OK | os.X_OK) or not folder.is_dir():
        raise DataError(f"{path}: cannot write there; choose a folder that is writable")


@contextlib.contextmanager
def locked(path: str | os.PathLike[str], *, tries: int | None = None) -> Iterator[int]:
    """Lock a folder, or a file, which is made if there is none; yields its handle. The lock ends with the process.

    Other processes that lock the same path wait. With `tries`, they try that often, 50 ms apart, and then get a
    BlockingIOError.
    """
    if sys.platform == "win32" and os.path.isdir(path):  # cannot be opened there
        yield -1
        return
    handle = os.open(path, os.O_RDONLY if os.path.isdir(path) else os.O_RDWR | os.O_CREAT, 0o666)
    try:
        for left in reversed(range(tries or 1)) if sys.platform != "win32" else ():
            try:
                fcntl.flock(handle, fcntl.LOCK_EX if tries is None else fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not left:
                    raise
                time.sleep(0.05)
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def _unfinished(target: Path, make: Callable[[Path], Path]) -> Iterator[Path]:
    """A temporary file or folder beside the target; a lock shows others that it is in use."""
    _remove_leftovers(target)
    lock = None
    while lock is None:
        try:
            temporary = make(target)
        except OSError as error:
            raise DataError(
                f"{target}: cannot write there ({error.strerror or error}); choose a folder that exists and is writable"
            ) from error
        try:
            lock = try_lock(temporary)
        except OSError:  # a file system without locks: leftovers are not removed there
            lock = os.open(os.devnull, os.O_RDONLY)
    try:
        yield temporary
    finally:
        _remove(temporary)
        with contextlib.suppress(OSError):
            os.close(lock)


def _make_file(target: Path) -> Path:
    if target.is_dir():
        raise DataError(f"{target}: is a folder; expected the name of a file to write")
    if target.exists() and not target.is_file():
        raise DataError(f"{target}: is not a regular file; choose the name of a file to write")
    handle, name = tempfile.mkstemp(prefix=_prefix(target), suffix=UNFINISHED, dir=target.parent)
    os.close(handle)
    return Path(name)


def _make_folder(target: Path) -> Path:
    return Path(tempfile.mkdtemp(prefix=_prefix(target), suffix=UNFINISHED, dir=target.parent))


def _prefix(target: Path) -> str:
    return f".{target.name[:LONGEST_NAME]}."


def try_lock(path: Path) -> int | None:
    """A lock that ends with the process; None where another process has the lock or has removed the path."""
    if sys.platform == "win32":
        raise OSError("no locks")
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(handle), os.stat(path)):
            return handle
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError:
        os.close(handle)
        raise
    os.close(handle)
    return None


def _remove_leftovers(target: Path) -> None:
    """Remove what processes that were killed have left of the same target."""
    for path in _siblings(target, UNFINISHED):
        with contextlib.suppress(OSError):
            lock = try_lock(path)
            if lock is not None:
                _remove(path)
                os.close(lock)


def restore_folder(target: Path) -> None:
    """Give a folder its name back where a process was killed while replacing it."""
    for old in _siblings(target, UNFINISHED + OLD):
        with contextlib.suppress(OSError):
            if target.exists():
                _remove(old)
            else:
                os.rename(old, target)


def _siblings(target: Path, ending: str) -> list[Path]:
    try:
        names = os.listdir(target.parent)
    except OSError:
        return []
    return [target.parent / name for name in names if name.startswith(_prefix(target)) and name.endswith(ending)]


def _exchange(temporary: Path, target: Path) -> None:
    """Make the temporary folder the target, and the target the temporary folder, which is removed afterwards."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # not Linux, or a C library before 2018
        call = None
    if call is not None and (
        call(AT_FDCWD, os.fsencode(temporary), AT_FDCWD, os.fsencode(target), RENAME_EXCHANGE) == 0
    ):
        return
    old = temporary.with_name(temporary.name + OLD)
    os.rename(target, old)
    try:
        os.rename(temporary, target)
    except OSError:
        os.rename(old, target)
        raise
    _remove(old)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _failed(target: Path, error: OSError) -> DataError:
    return DataError(f"{target}: writing failed ({error.strerror or error}); nothing was changed")


def _sync_folder(folder: Path) -> None:
    """Let a new name survive a power failure, where the system can do so."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
