"""The modules of the public names, those of the Python reference, as arguments of mypy: `-m ranksieve.params …`."""

from __future__ import annotations

from types import ModuleType

import ranksieve


def public_modules() -> list[str]:
    """The public submodules, and every module that defines a public name."""
    top = [getattr(ranksieve, name) for name in ranksieve.__all__]
    modules = [ranksieve, *(one for one in top if isinstance(one, ModuleType))]
    values = [getattr(module, name) for module in modules for name in module.__all__]
    return sorted({one.__name__ if isinstance(one, ModuleType) else one.__module__ for one in values})


if __name__ == "__main__":
    print(" ".join(f"-m {name}" for name in public_modules()))
