"""Compiled code on disk is used while no source has changed; importing kernels changes nothing."""

import os
import subprocess
import sys
import textwrap

import pytest
from numba import config

pytestmark = pytest.mark.skipif(config.DISABLE_JIT, reason="about compiled code")

CALLEE = "from ranksieve.kernels.jit import njit\nfrom box.constants import TWO\n\n@njit(cache=True)\ndef callee(x):\n"
CALLER = """
from ranksieve.kernels.jit import njit
from box.callee import callee

@njit(cache=True)
def caller(x):
    return callee(x)
"""
OTHER = "from ranksieve.kernels.jit import njit\n\n@njit(cache=True)\ndef other(x):\n    return x\n"
RUN = """
from box.caller import caller
from box.other import other
print(caller(1), other(1), *(sum(kernel.stats.cache_hits.values()) for kernel in (caller, other)))
"""


@pytest.fixture
def box(tmp_path):
    """A package of kernels of which one calls another, with a constant of a third file."""
    package = tmp_path / "box"
    package.mkdir()
    files = {"__init__": "", "constants": "TWO = 2\n", "callee": CALLEE + "    return x + TWO\n"}
    for name, text in {**files, "caller": CALLER, "other": OTHER}.items():
        (package / f"{name}.py").write_text(text)
    return package


def run(code, *, folder=None, **environment):
    path = os.pathsep.join([*([str(folder)] if folder else []), *sys.path])
    given = {**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": "0", **environment}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    result = subprocess.run(command, env=given, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def results(box):
    return run(RUN, folder=box.parent, NUMBA_CACHE_DIR=str(box.parent / "cache"))


def test_a_change_of_what_a_kernel_uses_compiles_it_anew_and_no_other(box):
    assert results(box) == ["3", "1", "0", "0"]
    os.utime(box / "constants.py", ns=(1, 1))  # the same text
    assert results(box) == ["3", "1", "1", "1"]
    for file, old, new, expected in (("constants", "2", "39", "40"), ("callee", "x + TWO", "x * 41", "41")):
        path = box / f"{file}.py"
        path.write_text(path.read_text().replace(old, new))
        assert results(box) == [expected, "1", "0", "1"]
    assert results(box) == ["41", "1", "1", "1"]


def test_code_for_a_class_that_is_gone_is_compiled_anew(box):
    source = """
from typing import NamedTuple
from ranksieve.kernels.jit import njit

class Pair(NamedTuple):
    a: int
    b: int

@njit(cache=True)
def add(pair):
    return pair.a + pair.b
"""
    for name, expected in (("Pair", ["5", "0"]), ("Pair", ["5", "1"]), ("Couple", ["5", "0"])):
        (box / "tuples.py").write_text(source.replace("Pair", name))
        code = f"from box.tuples import add, {name}\nprint(add({name}(2, 3)), sum(add.stats.cache_hits.values()))"
        assert run(code, folder=box.parent, NUMBA_CACHE_DIR=str(box.parent / "cache")) == expected
        os.utime(box / "tuples.py", ns=(1, 1))


def test_importing_the_package_and_all_kernels_changes_no_environment_and_no_file():
    code = """
    import importlib, os, pathlib, pkgutil
    import ranksieve.dtypes
    folder = pathlib.Path(ranksieve.dtypes.__file__).parent
    stale = folder / "kernels" / "__pycache__" / "gone.kernel-1.py311.nbi"
    stale.parent.mkdir(exist_ok=True)
    stale.touch()
    before = dict(os.environ)
    import ranksieve.kernels
    for module in pkgutil.iter_modules(ranksieve.kernels.__path__, "ranksieve.kernels."):
        importlib.import_module(module.name)
    assert dict(os.environ) == before
    print(stale.exists(), "numba.np.ufunc.omppool" in __import__("sys").modules)
    stale.unlink()
    """
    assert run(code) == ["True", "False"]


def test_processes_that_need_the_same_kernel_compile_it_once(box):
    script = box.parent / "script.py"
    script.write_text(
        "from numba.core import event\nfrom box.caller import caller\n"
        "with event.install_recorder('numba:compile') as recorder:\n    assert caller(1) == 3\n"
        "print(sum(one.is_start for _, one in recorder.buffer))\n"
    )
    path = os.pathsep.join([str(box.parent), *sys.path])
    given = {**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": "0", "NUMBA_CACHE_DIR": str(box.parent / "cache")}
    started = [
        subprocess.Popen([sys.executable, script], env=given, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]  # fmt: skip
    counts = [int(one.communicate()[0]) for one in started]
    assert sum(counts) == 2, "caller and callee"
    assert not list((box.parent / "cache").rglob("*.lock"))
