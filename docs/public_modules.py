"""The public modules, as arguments of mypy: `-m ranksieve.params …`, with all modules that define a public name."""

from __future__ import annotations

import importlib
from types import ModuleType

import ranksieve

BY_NAME = ("results", "models", "views", "analyses", "experiments")  # not at the top: `from ranksieve.results import …`


def public_modules() -> list[ModuleType]:
    """The package, the submodules at its top, and those that are imported by name."""
    top = [getattr(ranksieve, name) for name in ranksieve.__all__]
    by_name = [importlib.import_module(f"ranksieve.{name}") for name in BY_NAME]
    return [ranksieve, *(one for one in top if isinstance(one, ModuleType)), *by_name]


def checked_modules() -> list[str]:
    """The public submodules, and every module that defines a public name."""
    modules = public_modules()
    values = [getattr(module, name) for module in modules for name in module.__all__]
    defining = {one.__module__ for one in values if not isinstance(one, ModuleType)}
    return sorted({module.__name__ for module in modules[1:]} | defining)


if __name__ == "__main__":
    print(" ".join(f"-m {name}" for name in checked_modules()))
