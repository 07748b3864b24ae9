"""Kernels that only kernels call are linked into these, and are the same code when Python calls them too."""

import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba.core import event

from ranksieve.kernels.jit import njit

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


@njit(cache=True)
def half(x):
    if x < 0:
        raise ValueError("below 0")
    return x / 2


@njit(cache=True)
def halves(values):
    total = 0.0
    for value in values:
        total += half(value)
    return total


@njit(cache=True)
def digits(n):
    return 1 if n < 10 else 1 + digits(n // 10)


@njit(cache=True)
def digits_of_twice(n):
    return digits(2 * n)


@numba.njit
def third(x):
    return x / 3


@njit(cache=True)
def third_of_half(x):
    return third(half(x))


def test_python_and_kernels_call_the_same_kernel():
    values = np.array([1.0, 2.0, 5.0])
    assert halves(values) == 4.0
    assert not half.signatures, "no code for Python was needed"
    assert half(3.0) == 1.5 and half.signatures
    assert halves(values) == 4.0


def test_errors_in_linked_kernels_are_raised():
    with pytest.raises(ValueError, match="below 0"):
        halves(np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match="below 0"):
        half(-1.0)


def test_a_kernel_may_call_itself():
    assert digits_of_twice(500) == 4 and digits(999) == 3


def test_functions_of_others_can_still_be_called_from_python():
    assert third_of_half(12.0) == 2.0
    assert third(12.0) == 4.0


def test_only_kernels_that_python_calls_get_machine_code(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    @njit(cache=True)
    def inner(x):
        return x + np.zeros(1)

    @njit(cache=True)
    def outer(x):
        return inner(x)[0]

    with event.install_recorder("numba:compile") as recorder:
        assert outer(2.0) == 2.0
    libraries = {}
    for _, one in recorder.buffer:
        dispatcher = one.data["dispatcher"]
        libraries |= {(dispatcher.py_func.__name__, len(libraries)): r.library for r in dispatcher.overloads.values()}
    assert {name for (name, _), library in libraries.items() if not library._is_only_linked} == {"outer"}
    assert len(libraries) > 2, "with those of Numba"


def test_linked_kernels_are_kept_on_disk(tmp_path, monkeypatch):
    source = "from ranksieve.kernels.jit import njit\n\n\n@njit(cache=True)\ndef inner(x):\n    return x + 1\n\n\n"
    for name in ("first", "second"):
        source += f"@njit(cache=True)\ndef {name}(x):\n    return inner(x)\n\n\n"
    (tmp_path / "linked_sample.py").write_text(source)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    code = (
        "from numba.core import event\nimport linked_sample as k\n"
        "with event.install_recorder('numba:compile') as recorder:\n    assert k.{}(1) == 2 and k.{}(1) == 2\n"
        "print(*(one.data['dispatcher'].py_func.__name__ for _, one in recorder.buffer if one.is_start))"
    )
    compiled = [
        subprocess.run(
            [sys.executable, "-c", code.format(*names)], capture_output=True, text=True, check=True
        ).stdout.split()
        for names in (("first", "first"), ("second", "inner"), ("second", "inner"))
    ]
    assert compiled == [["first", "inner"], ["second", "inner"], []]


def test_functions_of_other_libraries_are_kept_as_numba_keeps_them(tmp_path, monkeypatch):
    (tmp_path / "other_library.py").write_text(
        "from numba import float64, vectorize\n\n\n"
        "@vectorize([float64(float64)], cache=True)\ndef twice(x):\n    return 2 * x\n"
    )
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    use = "import other_library\nprint(other_library.twice(1.5))"
    kernel = "from ranksieve.kernels.linking import link_without_machine_code\nlink_without_machine_code()\n"
    for code in (kernel + use, use):  # written with kernels in the process, read without
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout == "3.0\n", done.stderr
