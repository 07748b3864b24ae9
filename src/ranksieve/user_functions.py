"""The user's own functions and classes, named as `file.py:function` or `package.module:function`."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import traceback
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from ranksieve.errors import DataError, ParameterError, param

FILE_MODULE = "ranksieve_file_"  # begins the names of modules made of files
_sent: dict[str, str] = {}  # sources of files that another process has sent, for machines without these files
_imported: dict[str, str] = {}  # the user's files as Python names them, and as messages name them


def import_function(name: str, *, parameter: str, signature: str) -> Any:
    """What a parameter names; `signature` says what it must be."""
    home, _, function = name.rpartition(":")
    try:
        module = _load_file(home) if home.endswith(".py") else _import_module(home)
        if not hasattr(module, function):
            raise AttributeError(f"{home} has no {function!r}")
        found = getattr(module, function)
    except Exception as error:  # the file is the user's: anything can be wrong with it
        raise ParameterError(
            param(parameter), f" is {name!r}, which cannot be imported ({type(error).__name__}: {error}); expected "
            "file.py:function or package.module:function",
        ) from error  # fmt: skip
    if not callable(found):
        raise ParameterError(param(parameter), f" is {name!r}, of type {type(found).__name__}; expected {signature}")
    return found


@contextlib.contextmanager
def calling(what: str, signature: str) -> Iterator[None]:
    """Turn any error of a user's function into a `DataError` that says where it failed.

    `what` begins the message, as in `feature 'age' failed on the query 'red'`; `signature` says what the function gets
    and returns.
    """
    try:
        yield
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise DataError(
            f"{what}: {type(error).__name__}: {error} ({place.filename}:{place.lineno}); it {signature}"
        ) from error


def user_error(error: BaseException) -> str | None:
    """What failed in the user's own code, and where; None if none of it was running."""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    places = [(code, line) for code, line in frames if code.co_filename in _imported]
    if not places:
        return None
    code, line = places[-1]
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"{_imported[code.co_filename]}:{line} in {code.co_name}: {what}; correct the function"


def function_name(function: Any) -> str:
    """The name of a function, as `file.py:function` or `package.module:function`; of others, the name of their type."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    name = getattr(function, "__qualname__", "")
    if module is None or not name:
        return type(function).__name__
    home = module.__name__
    if home.startswith(FILE_MODULE):
        home = Path(module.__file__ or home).name
    return f"{home}:{name}"


def read_source(name: str) -> dict[str, str]:
    """The file of a `file.py:function` and its text, for another process; empty where there is none."""
    home = name.rpartition(":")[0]
    return {home: Path(home).read_text(encoding="utf-8")} if home.endswith(".py") and Path(home).is_file() else {}


def keep_sources(sources: dict[str, str]) -> None:
    """Use these texts of files where the files themselves are missing."""
    _sent.update(sources)


def _import_module(name: str) -> ModuleType:
    module = importlib.import_module(name)
    file = getattr(module, "__file__", None)
    if file and name.partition(".")[0] != __name__.partition(".")[0]:
        _imported[file] = file
    return module


def _load_file(path: str) -> ModuleType:
    """The module of a file, imported once for each change of it."""
    is_sent = path in _sent and not Path(path).is_file()
    version = zlib.crc32(_sent[path].encode()) if is_sent else Path(path).stat().st_mtime_ns
    place = Path(path).resolve()
    name = f"{FILE_MODULE}{zlib.crc32(str(place).encode()):08x}_{version:x}_{place.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, place)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        _imported[path if is_sent else str(place)] = path
        sys.modules[name] = module  # dataclasses look their module up
        try:
            if is_sent:
                exec(compile(_sent[path], path, "exec"), module.__dict__)
            else:
                spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]
