"""Kernels as plain Python: the interpreter checks every index, and nothing is compiled."""

from types import ModuleType

import numpy as np
import pytest

from naive_lanes import PLAIN
from ranksieve.kernels import decimals, json_matrix


@pytest.fixture
def interpreted(monkeypatch):
    """A function that makes the kernels of modules, and those that these import, plain Python functions for this test.

    What stands for one instruction becomes its plain version; functions of other modules that a kernel calls in turn
    stay compiled, unless their module is given too. Returns the first module.
    """

    def interpret(*modules: ModuleType) -> ModuleType:
        for module in modules:
            for name, value in list(vars(module).items()):
                plain = PLAIN.get(name) or getattr(value, "py_func", None)
                if plain is not None:
                    monkeypatch.setattr(module, name, plain)
        return modules[0]

    return interpret


@pytest.fixture(scope="module")
def plain():
    """`interpreted` for the modules that read numbers, once for all tests of a file, as hypothesis needs it."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (decimals, json_matrix):
            for name, value in list(vars(module).items()):
                if function := PLAIN.get(name) or getattr(value, "py_func", None):
                    patch.setattr(module, name, function)
        with np.errstate(over="ignore"):
            yield
