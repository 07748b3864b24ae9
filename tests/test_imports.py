"""The order of the modules, and what importing the package costs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import ranksieve

PACKAGE = Path(ranksieve.__file__).parent
LAYERS = [
    (
        "errors",
        "dtypes",
        "files",
        "user_functions",
        "field_types",
        "html_tables",
        "other_names",
        "rules",
        "text_formats",
        "toml_file",
        "threads",
    ),
    ("parameter_table", "registration", "params"),
    ("kernels",),
    ("cuda",),
    ("data",),
    ("forest",),
    ("models",),
    ("evaluation",),
    ("boosting",),
    ("pruning",),
    ("progress",),
    ("rankers",),
    ("retrieval",),
    ("clicks",),
    ("plots",),
    ("experiments",),
    ("report",),
    ("serve",),
    ("cluster",),
    ("analyses", "callbacks", "io", "metrics", "pyterrier", "results", "sampling", "significance", "synth", "views"),
    ("estimator",),
    ("cli", "__main__"),
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def imported(path: Path) -> set[str]:
    """Dotted names inside ranksieve that a file imports anywhere, in functions and under TYPE_CHECKING too."""
    package = ("ranksieve", *path.relative_to(PACKAGE).parts[:-1])
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            base = ".".join(filter(None, [start, node.module]))
            names |= {f"{base}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] == "ranksieve"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_imports_only_what_stands_before_it(path: Path) -> None:
    own = path.relative_to(PACKAGE).with_suffix("").parts[0]
    for name in imported(path):
        part = name.split(".")[1] if "." in name else "__version__"
        if part != "__version__":
            assert part in RANK, f"{name} has no place in the order; use the module it is defined in"
            assert RANK[part] <= RANK[own], f"{own} comes before {part}"


def in_new_process(code: str) -> dict:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_importing_the_package_imports_no_library() -> None:
    got = in_new_process(
        "import json, sys; import ranksieve; dir(ranksieve); print(json.dumps({'modules': list(sys.modules)}))"
    )
    assert not {"numba", "numpy", "scipy", "sklearn", "pyarrow", "typer", "rich"} & set(got["modules"])


def test_importing_every_module_compiles_nothing() -> None:
    names = [
        ".".join(("ranksieve", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        for path in MODULES
        if path.name != "__main__.py"
    ]
    got = in_new_process(
        "import importlib, json\n"
        "from numba.core.dispatcher import Dispatcher\n"
        f"modules = [importlib.import_module(name) for name in {names!r}]\n"
        "found = {f'{m.__name__}.{k}': v for m in modules for k, v in vars(m).items() if isinstance(v, Dispatcher)}\n"
        "print(json.dumps({k: len(v.signatures) for k, v in found.items()}))"
    )
    assert got, "no compiled functions found"
    assert not [name for name, signatures in got.items() if signatures]


def test_every_public_name_can_be_had() -> None:
    for name in ranksieve.__all__:
        assert getattr(ranksieve, name) is not None
    assert set(dir(ranksieve)) == set(ranksieve.__all__)
    with pytest.raises(AttributeError, match="attribute nonsense"):
        _ = ranksieve.nonsense
