"""The user's own functions and classes, named as `file.py:function` or `package.module:function`."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from ranksieve.errors import ParameterError, param


def import_function(name: str, *, parameter: str, signature: str) -> Any:
    """What a parameter names; `signature` says what it must be."""
    home, _, function = name.rpartition(":")
    try:
        if home.endswith(".py"):
            spec = importlib.util.spec_from_file_location(Path(home).stem, home)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(home)
        found = getattr(module, function)
    except Exception as error:  # the file is the user's: anything can be wrong with it
        raise ParameterError(
            param(parameter), f" is {name!r}, which cannot be imported ({type(error).__name__}: {error}); expected "
            "file.py:function or package.module:function",
        ) from error  # fmt: skip
    if not callable(found):
        raise ParameterError(param(parameter), f" is {name!r}, of type {type(found).__name__}; expected {signature}")
    return found
