"""Kernels as plain Python: the interpreter checks every index, and nothing is compiled."""

from types import ModuleType

import pytest


@pytest.fixture
def interpreted(monkeypatch):
    """A function that makes a module's kernels, and those that it imports, plain Python functions for this test."""

    def interpret(module: ModuleType) -> ModuleType:
        for name, value in list(vars(module).items()):
            if hasattr(value, "py_func"):
                monkeypatch.setattr(module, name, value.py_func)
        return module

    return interpret
