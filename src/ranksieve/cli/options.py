"""Training parameters as command-line options and as a TOML file, both from the one table in `params`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ranksieve.cli.command import Command
from ranksieve.errors import ParameterError
from ranksieve.params import Params, flag, table
from ranksieve.rules import Parameter
from ranksieve.toml_file import TomlFile

PANEL = "Training parameters"
SHORT = {"metric": ("-m",)}  # as in the other commands
OPTIONS = "ranksieve.options"  # where a command leaves the options of its training parameters
VALUES = "ranksieve.params"  # where a command leaves the values of its training parameters
RUN_OPTIONS = ("missing",)  # options of the command itself that the TOML file may set too


class ParamsCommand(Command):
    """A command with one option per training parameter.

    The options are made when the command is first used, since the table of parameters imports the training code.
    """

    def training_parameters(self) -> dict[str, Any]:
        return table()

    def get_params(self, ctx: Any) -> list[Any]:
        if OPTIONS not in ctx.meta:  # click compares parameters by identity
            ctx.meta[OPTIONS] = _options()
        return [*super().get_params(ctx), *ctx.meta[OPTIONS]]

    def invoke(self, ctx: Any) -> Any:
        ctx.meta[VALUES] = {name: ctx.params.pop(name) for name in table() if name in ctx.params}
        return super().invoke(ctx)


def with_params(command: Callable[..., None]) -> Callable[..., None]:
    """Add one option per training parameter to a command; `chosen_params` returns their values."""
    command.command_class = ParamsCommand  # type: ignore[attr-defined]
    return command


def _options() -> list[Any]:
    """The options, made by typer from a signature as those of every command."""

    def parameters() -> None: ...

    options = [_option(one) for one in table().values()]
    parameters.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    parameters.__annotations__ = {one.name: one.annotation for one in options}
    app = typer.Typer(add_completion=False)
    app.command()(parameters)
    return typer.main.get_command(app).params


def _option(item: Parameter) -> inspect.Parameter:
    name, kind = flag(item.name), str if item.type is object else item.type
    is_pair = kind not in (str, int, float, bool)
    spelling = f"{name}/--no-{name[2:]}" if kind is bool else name
    text = item.help if kind is bool else f"{item.help}; {item.expected}"
    metavar = "LOW HIGH" if is_pair else "NAME" if item.names else None
    option = typer.Option(spelling, *SHORT.get(item.name, ()), help=f"{text}.", rich_help_panel=PANEL, metavar=metavar)
    return inspect.Parameter(
        item.name, inspect.Parameter.KEYWORD_ONLY, default=item.default, annotation=Annotated[kind, option]
    )


def chosen_params(context: typer.Context, file: Path | None) -> Params:
    """The parameters of a run: flags given on the command line, else the TOML file's values, else the defaults.

    The file's values of the options `RUN_OPTIONS` go to `context.params`, unless a flag was given.
    """
    given, of_run = read_toml(file) if file else ({}, {})
    context.params.update((name, value) for name, value in of_run.items() if not is_flag(context, name))
    flags = [name for name in table() if is_flag(context, name)]
    for name in flags:
        given.pop(name, None)
        given.pop(name.replace("_", "-"), None)
        given[name] = context.meta[VALUES][name]
    chosen = Params(**{name.replace("-", "_"): value for name, value in given.items()})
    chosen.check_used(flags)  # a file may be for several algorithms
    return chosen


def is_flag(context: typer.Context, name: str) -> bool:
    """Whether the user has given it on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def read_toml(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The top-level keys of a TOML file: parameters, checked so that an error names file and line; others."""
    file = TomlFile(path, like="lines such as 'learning-rate = 0.05'")
    values = dict(file.values)
    of_run = {name: values.pop(name) for name in RUN_OPTIONS if name in values}
    for name, value in values.items():
        _check({name: value}, file.position((name,)))
    _check(values, str(path))
    return values, of_run


def _check(values: dict[str, Any], place: str) -> None:
    try:
        Params(**{name.replace("-", "_"): value for name, value in values.items()})
    except ParameterError as error:
        raise error.with_prefix(f"{place}: ") from None
