"""The first use of kernels is logged, wherever Numba keeps compiled code."""

import importlib.util
import pkgutil
import re
import sys
from pathlib import Path

import numba
import pytest

import ranksieve
from ranksieve.kernels import jit, numba_cache
from ranksieve.kernels.numba_cache import is_compiled, report_first_compile

KERNEL = "from ranksieve.kernels.jit import njit\n\n@njit(cache=True)\ndef double(x):\n    return x + x\n"


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Import a text as the kernels `sample`, as a new process does."""
    path = tmp_path / "ranksieve" / "kernels" / "sample.py"
    path.parent.mkdir(parents=True)

    def load_text(text):
        path.write_text(text)
        jit.digest_of_sources.cache_clear()
        jit._imports.cache_clear()
        spec = importlib.util.spec_from_file_location("ranksieve.kernels.sample", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # texts of one length and second look the same
    numba_cache._warn_once.cache_clear()
    return load_text


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="about compiled code")
@pytest.mark.parametrize("folder", ["", "elsewhere"])
def test_compiling_is_logged_once_where_no_code_is_kept(load, tmp_path, monkeypatch, caplog, folder):
    monkeypatch.setattr(numba.config, "CACHE_DIR", folder and str(tmp_path / folder))
    kernels = load(KERNEL)
    for _ in range(2):
        report_first_compile("sample")
    assert [(one.name, one.levelname, one.message[:17]) for one in caplog.records] == [
        ("ranksieve", "WARNING", "compiling kernels")
    ]
    assert not is_compiled("sample") and kernels.double(2) == 4 and is_compiled("sample")
    load(KERNEL)
    assert is_compiled("sample"), "on disk"
    load(KERNEL.replace("x + x", "2 * x"))
    assert not is_compiled("sample"), "a changed source"


def test_nothing_is_reported_for_files_without_compiled_kernels(load):
    load("def double(x):\n    return x + x\n")
    assert is_compiled("sample")


def test_reported_kernels_exist():
    source = Path(ranksieve.__file__).parent
    text = "".join(path.read_text(encoding="utf-8") for path in source.rglob("*.py"))
    named = set(re.findall(r'(?:kernels(?:: str)? ?= ?|show_waiting\(|report_first_compile\()"(\w+)"', text))
    assert {"growing", "scoring", "retrieving"} <= named
    assert named <= {module.name for module in pkgutil.iter_modules([str(source / "kernels")])}
