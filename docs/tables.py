"""Tables in the pages that are generated from the registries: `python docs/tables.py` writes them again.

A table is between `<!-- table: NAME -->` and `<!-- end -->`. The pages contain the tables, so that they can be read
without building the documentation.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ranksieve.other_names import ALIASES
from ranksieve.parameter_table import FORESTS, SLOTS, algorithms, flag, help_of, table
from ranksieve.rules import RANKERS, Parameter, Registry, parameters_of
from ranksieve.text_formats import some_of

BLOCK = re.compile(r"(<!-- table: (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)
MOST_ALGORITHMS = 3  # that have a rule as their default and are named beside it
MOST_VALUES = 6  # of a parameter that are all named


def written(page: Path) -> str:
    """The text of a page with its tables as they are now."""

    def block(found: re.Match[str]) -> str:
        try:
            return f"{found[1]}{_table(*found[2].split())}\n{found[3]}"
        except KeyError as error:
            raise ValueError(f"{page}: the marker 'table: {found[2]}' has the unknown name {error}") from None

    return BLOCK.sub(block, page.read_text(encoding="utf-8"))


def _table(name: str, *arguments: str) -> str:
    if name == "parameters":
        return parameters(arguments)
    if name == "aliases":
        return aliases()
    return rankers() if name == RANKERS.kind else rules({one.kind: one for one in SLOTS}[name])


def rules(registry: Registry) -> str:
    """The rules of a kind, what they do, and their parameters with the defaults in the same order."""
    rows = []
    for name, rule in registry.items():
        own = _own(rule)
        defaults = ", ".join(f"`{one.default!r}`" for one in own.values())
        rows.append((f"`{name}`", _about(registry, name), _names(own), defaults))
    return lines((f"`{registry.kind}`", "what it does", "parameters", "defaults"), rows)


def rankers() -> str:
    """The algorithms that are not one boosted forest."""
    known, rows = algorithms(), []
    first: dict[tuple[str, ...], str] = {}  # of the algorithms with the same parameters
    for name, one in RANKERS.items():
        same = first.setdefault(tuple(known[name].parameters), name)
        rows.append(
            (f"`{name}`", _doc(one), _names(known[name].parameters) if same == name else f"as `{same}`", one.file)
        )
    return lines((f"`{RANKERS.kind}`", "model", "parameters", "file"), rows)


def parameters(names: Iterable[str]) -> str:
    """Training parameters by name."""
    known = table()
    rows = [(f"`{name}`", f"`{known[name].default!r}`", help_of(known[name]), _values(known[name])) for name in names]
    return lines(("parameter", "default", "meaning", "values"), rows)


def aliases() -> str:
    """The names of LightGBM, XGBoost, CatBoost and scikit-learn that are accepted for parameters."""
    found: dict[str, list[str]] = {}
    for alias, name in ALIASES.items():
        found.setdefault(name, []).append(f"`{alias}`")
    return lines(("parameter", "aliases"), ((f"`{name}`", ", ".join(names)) for name, names in found.items()))


def lines(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table in Markdown."""
    cells = [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in (head, *rows)]
    texts = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([texts[0], "|" + "---|" * len(cells[0]), *texts[1:]])


def _about(registry: Registry, name: str) -> str:
    algos = [f'`algo="{algo}"`' for algo, one in FORESTS.items() if getattr(one, registry.kind, "") == name]
    return _doc(registry[name]) + (f" ({', '.join(algos)})" if 0 < len(algos) <= MOST_ALGORITHMS else "")


def _doc(rule: Any) -> str:
    """The first paragraph of a docstring."""
    return " ".join((inspect.getdoc(rule) or "").partition("\n\n")[0].split())


def _own(rule: Any) -> Mapping[str, Parameter]:
    return parameters_of(rule) if isinstance(rule, type) else {}


def _names(names: Iterable[str]) -> str:
    """Names in Python; one that ends in an underscore, as it is a word of Python, has none elsewhere."""
    return ", ".join(f"`{name}` (`{flag(name)}`)" if name.endswith("_") else f"`{name}`" for name in names)


def _values(one: Parameter) -> str:
    return one.expected if len(one.names) <= MOST_VALUES else f"one of {some_of(one.names, MOST_VALUES // 2)}"


if __name__ == "__main__":
    for path in sorted(Path(__file__).parent.glob("*.md")):
        path.write_text(written(path), encoding="utf-8")
