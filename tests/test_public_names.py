"""The public face: every public name has a docstring with an example that runs, and stands in the reference."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path
from types import ModuleType

import pytest

import ranksieve

ROOT = Path(__file__).parent.parent
MODULES = [ranksieve, *(one for name in ranksieve.__all__ if isinstance(one := getattr(ranksieve, name), ModuleType))]
NAMES = [
    (module, name) for module in MODULES for name in module.__all__ if not isinstance(getattr(module, name), ModuleType)
]


def test_the_top_of_the_package_is_small():
    assert len(ranksieve.__all__) <= 31
    assert all(module.__all__ == sorted(module.__all__) for module in MODULES if module.__name__ != "ranksieve.plots")


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[f"{module.__name__}.{name}" for module, name in NAMES])
def test_every_public_name_has_a_docstring_with_an_example(module, name):
    value = getattr(module, name)
    own = value.__doc__ or ""  # not an inherited one
    assert own and not own.startswith(f"{name}("), "no docstring"
    assert not value.__module__.split(".")[-1].startswith("_")
    if not (inspect.isclass(value) and issubclass(value, BaseException | Warning)):
        assert ">>> " in own, "no example; `tests/test_docstrings.py` runs it"


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[f"{module.__name__}.{name}" for module, name in NAMES])
def test_public_methods_have_docstrings(module, name):
    value = getattr(module, name)
    if not inspect.isclass(value) or issubclass(value, BaseException):
        return
    for method, what in vars(value).items():
        if method.startswith("_") or not (inspect.isfunction(what) or isinstance(what, classmethod | staticmethod)):
            continue
        assert getattr(what, "__func__", what).__doc__, f"{name}.{method} has no docstring"


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_types_of_every_module_with_a_public_name_are_checked():
    checked = set(script("public_modules").public_modules())
    assert checked == {module.__name__ for module in MODULES[1:]} | {getattr(*one).__module__ for one in NAMES}
    assert (
        "mypy --strict --follow-imports silent $$($(BIN)/python docs/public_modules.py)"
        in (ROOT / "Makefile").read_text()
    )


def test_the_reference_lists_the_public_names_and_nothing_else(monkeypatch):
    pytest.importorskip("mkdocs")
    monkeypatch.syspath_prepend(ROOT / "docs")  # the script imports another one there
    generate = script("generate")
    listed = {line.removeprefix("::: ") for line in generate.reference().splitlines() if line.startswith("::: ")}
    values = (getattr(module, name) for module, name in NAMES)
    assert listed == {f"{value.__module__}.{value.__qualname__}" for value in values}


def test_the_estimator_has_useful_types():
    for method in ("fit", "predict", "score"):
        parameters = inspect.signature(getattr(ranksieve.Ranker, method)).parameters.values()
        assert not [p.name for p in parameters if p.name != "self" and p.annotation in (p.empty, "Any")]
