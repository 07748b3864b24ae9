"""A C compiler for the tests of C files."""

import ctypes
import shutil
import subprocess

import pytest


@pytest.fixture(scope="module")
def compiled_c(tmp_path_factory):
    """Compile C and load it; skips where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("c")

    def compile_and_load(text: str) -> ctypes.CDLL:
        source, library = folder / "model.c", folder / f"{abs(hash(text))}.so"
        source.write_text(text)
        warnings = ["-std=c89", "-Wall", "-Wextra", "-pedantic", "-Werror"]
        subprocess.run([compiler, *warnings, "-O2", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
        return ctypes.CDLL(str(library))

    return compile_and_load
