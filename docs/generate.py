"""Pages made when the documentation is built: every command's help, the Python reference, the benchmark results."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import tables
from mkdocs.structure.files import File, Files
from public_modules import BY_NAME, public_modules
from typer.main import get_command
from typer.testing import CliRunner

from ranksieve.cli.app import MODULES, app
from ranksieve.parameter_table import SLOTS, table

ROOT = Path(__file__).parent.parent


def on_files(files: Files, config: Any) -> Files:
    pages = {"commands.md": commands(), "reference.md": reference(), "benchmarks.md": benchmarks()}
    pages["parameters.md"] = parameters()
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def commands() -> str:
    """`ranksieve COMMAND --help` of every command, as it is printed."""
    runner = CliRunner()
    parts = ["# Command line\n\nThe help of every command, as `ranksieve COMMAND --help` prints it.\n"]
    known = get_command(app).commands
    words = [
        (name, *inner) for name in MODULES for inner in ((), *((one,) for one in getattr(known[name], "commands", ())))
    ]
    for names in words:
        title = " ".join(names)
        shown = runner.invoke(app, [*names, "--help"], env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})
        if shown.exit_code:
            raise RuntimeError(f"ranksieve {title} --help failed: {shown.output}")
        parts.append(f"## ranksieve {title}\n\n```text\n{shown.output.strip()}\n```\n")
    return "\n".join(parts)


def parameters() -> str:
    """The one table of training parameters, and the rules that have parameters of their own."""
    parts = [
        f"# Parameters of training\n\n{tables.parameters(table())}",
        f"## Aliases\n\nPython and TOML files accept these names, too:\n\n{tables.aliases()}",
    ]
    parts += [f"## {registry.kind.capitalize()}\n\n{tables.rules(registry)}" for registry in SLOTS]
    return "\n\n".join([*parts, f"## Other rankers\n\n{tables.rankers()}\n"])


def reference() -> str:
    """Every public name: those at the top of the package, those of its submodules, and those imported by name."""
    parts = [
        "# Python reference\n\n`import ranksieve as rs`; the names of submodules are used as `rs.metrics.ndcg`. The "
        f"submodules {', '.join(BY_NAME)} are imported by name, as in `from ranksieve.results import Evaluation`. "
        "Their classes are what functions return, or pass to yours.\n"
    ]
    for module in public_modules():
        parts.append(f"## {module.__name__}\n\n{(module.__doc__ or '').splitlines()[0]}\n")
        for name in module.__all__:
            value = getattr(module, name)
            if not isinstance(value, ModuleType):
                parts.append(f"::: {value.__module__}.{value.__qualname__}\n    options:\n      heading_level: 3\n")
    return "\n".join(parts)


def benchmarks() -> str:
    """The committed results, one table a script."""
    parts = [
        "# Benchmarks\n\nWhat `benchmarks/*.py` measured last, as committed in `benchmarks/results/`. Times are ratios "
        "to a peer in the same run wherever there is one.\n"
    ]
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.json")):
        parts.append(f"## {path.stem}\n\n{_result(json.loads(path.read_text()))}\n")
    return "\n".join(parts)


def _result(found: Any) -> str:
    latest = found[-1] if isinstance(found, list) else found
    rows = latest.get("rows", [])
    facts = ", ".join(
        f"{key}: {value}" for key, value in latest.items() if key != "rows" and not isinstance(value, dict)
    )
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return f"{facts}\n\n{tables.lines(columns, ([row.get(key, '') for key in columns] for row in rows))}"
