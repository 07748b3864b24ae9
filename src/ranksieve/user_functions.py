"""Functions of the user's own, named as `file.py:function` or `package.module:function`."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ranksieve.errors import ParameterError


def import_function(name: str, *, flag: str, of: str) -> Callable[..., Any]:
    """The function that a flag names; `of` says what it is to be a function of."""
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
    except Exception as error:  # the file is the user's: whatever is wrong with it is for them to see
        raise ParameterError(
            f"{flag} is {name!r}, which cannot be imported ({type(error).__name__}: {error}); expected "
            "file.py:function or package.module:function"
        ) from error
    if not callable(found):
        raise ParameterError(f"{flag} is {name!r}, which is {type(found).__name__}; expected a function of {of}")
    return found
