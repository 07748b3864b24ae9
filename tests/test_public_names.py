"""The public face: every public name has a docstring with an example that runs, and is in the reference."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
from collections import Counter
from functools import cached_property
from pathlib import Path
from types import ModuleType

import pytest

import ranksieve

ROOT = Path(__file__).parent.parent
PACKAGE = Path(ranksieve.__file__).parent


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODULES = script("public_modules").public_modules()
NAMES = [
    (module, name) for module in MODULES for name in module.__all__ if not isinstance(getattr(module, name), ModuleType)
]

INTERNAL = {  # classes of objects that methods return for the use of ranksieve alone
    "Algorithm", "Candidates", "CategoryTests", "Graph", "Pairs", "ParamName", "Postings", "Prepared", "Scoring",
    "StoredVectors", "Summary",
}  # fmt: skip


def test_modules_with_public_names_are_public():
    """Those at the top of the package, and those that are imported by name."""
    top = [one for name in ranksieve.__all__ if isinstance(one := getattr(ranksieve, name), ModuleType)]
    assert MODULES[: len(top) + 1] == [ranksieve, *top]
    files = [*PACKAGE.glob("*.py"), *PACKAGE.glob("*/__init__.py")]
    declared = {file for file in files if re.search(r"^__all__\b|\b__all__ = ", file.read_text(), re.MULTILINE)}
    assert {Path(module.__file__) for module in MODULES} == declared


def test_a_public_name_is_in_one_module():
    counts = Counter(getattr(module, name) for module, name in NAMES)
    assert not [value for value, count in counts.items() if count > 1]


def returned_classes(function):
    """The names of ranksieve's classes in the return annotation of a function."""
    annotation = getattr(function, "__annotations__", {}).get("return")
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return CLASSES & set(re.findall(r"\w+", text))


def methods(cls):
    """The functions behind public methods, class methods and properties of a class."""
    for name, value in vars(cls).items():
        if not name.startswith("_"):
            if isinstance(value, property):
                yield value.fget
            elif isinstance(value, cached_property):
                yield value.func
            elif isinstance(value, classmethod | staticmethod):
                yield value.__func__
            elif inspect.isfunction(value):
                yield value


CLASSES = {
    node.name
    for file in PACKAGE.rglob("*.py")
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    if isinstance(node, ast.ClassDef)
}


def test_classes_that_functions_return_are_public():
    """So the reference describes the results of functions, and users can import their classes for annotations."""
    values = [getattr(module, name) for module, name in NAMES]
    public = {value.__name__ for value in values if inspect.isclass(value)}
    functions = [value for value in values if inspect.isroutine(value)]
    assert len(functions) > 60
    assert not set().union(*map(returned_classes, functions)) - public
    found = [method for value in values if inspect.isclass(value) for method in methods(value)]
    assert set().union(*map(returned_classes, found)) - public == INTERNAL


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


def test_the_types_of_every_module_with_a_public_name_are_checked():
    checked = set(script("public_modules").checked_modules())
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
