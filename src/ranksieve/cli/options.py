"""Training parameters as command-line options and as a TOML file, both from the one table in `params`."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ranksieve.errors import ParameterError
from ranksieve.params import Params, flag
from ranksieve.toml_file import TomlFile

TYPES: dict[str, Any] = {"str": str, "int": int, "float": float, "bool": bool}
TYPES["tuple[float, float]"] = tuple[float, float]
PANEL = "Training parameters"
SHORT = {"metric": ("-m",)}  # as in the other commands
OF_THE_RUN = ("missing",)  # options of the command itself that the TOML file may set too


def with_params(command: Callable[..., None]) -> Callable[..., None]:
    """Add one option per training parameter to a command, which receives their values as keywords."""
    own = inspect.signature(command, eval_str=True)
    named = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    signature = own.replace(parameters=[*named, *(_option(item) for item in dataclasses.fields(Params))])
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    return command


def _option(item: dataclasses.Field[Any]) -> inspect.Parameter:
    name = flag(item.name)
    kind = TYPES[str(item.type)]
    spelling = f"{name}/--no-{name[2:]}" if kind is bool else name
    text = item.metadata["help"]
    if kind is not bool:
        text = f"{text}; {item.metadata['expected']}"
    # the two types of a pair would make the column so wide that 80 columns leave no room for examples in the help
    metavar = "LOW HIGH" if item.type == "tuple[float, float]" else None
    option = typer.Option(spelling, *SHORT.get(item.name, ()), help=f"{text}.", rich_help_panel=PANEL, metavar=metavar)
    return inspect.Parameter(
        item.name, inspect.Parameter.KEYWORD_ONLY, default=item.default, annotation=Annotated[kind, option]
    )


def chosen_params(context: typer.Context, file: Path | None) -> Params:
    """The parameters of a run: flags given on the command line, else the TOML file's values, else the defaults.

    What the file says of the options `OF_THE_RUN` goes to `context.params`, where no flag was given.
    """
    given, of_run = read_toml(file) if file else ({}, {})
    context.params.update((name, value) for name, value in of_run.items() if not is_flag(context, name))
    flags = [item.name for item in dataclasses.fields(Params) if is_flag(context, item.name)]
    for name in flags:
        given.pop(name, None)
        given.pop(name.replace("_", "-"), None)
        given[name] = context.params[name]
    chosen = Params.from_mapping(given, source=str(file) if file else "command line")
    chosen.check_heeded(flags)  # a file may be for several algorithms
    return chosen


def is_flag(context: typer.Context, name: str) -> bool:
    """Whether the user has given it on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def read_toml(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The top-level keys of a TOML file: parameters, checked so that an error names file and line; others."""
    file = TomlFile(path, like="lines such as 'learning-rate = 0.05'")
    values = dict(file.values)
    of_run = {name: values.pop(name) for name in OF_THE_RUN if name in values}
    for name, value in values.items():
        _check({name: value}, file.position((name,)))
    _check(values, str(path))
    return values, of_run


def _check(values: dict[str, Any], place: str) -> None:
    try:
        Params.from_mapping(values, source=place)
    except ParameterError as error:
        raise ParameterError(f"{place}: {error.by_flags.removeprefix(f'{place}: ')}") from None
