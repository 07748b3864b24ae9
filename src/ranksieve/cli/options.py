"""Training parameters as command-line options and as a TOML file, both from the one table in `params`."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, get_args

import typer

from ranksieve.cli.command import Command
from ranksieve.errors import ParameterError
from ranksieve.parameter_table import canonical, flag, table
from ranksieve.params import Params
from ranksieve.rules import OBJECTIVES, SELECTIONS, Parameter, parameters_of
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

    _own: Mapping[str, Parameter] = MappingProxyType(
        {}
    )  # the parameters of a rule that the arguments name as file.py:Class

    def training_parameters(self) -> dict[str, Any]:
        return {**table(), **self._own}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        self._own = _own_parameters(args)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        if OPTIONS not in ctx.meta:  # click compares parameters by identity
            ctx.meta[OPTIONS] = _options(self.training_parameters())
        return [*super().get_params(ctx), *ctx.meta[OPTIONS]]

    def invoke(self, ctx: Any) -> Any:
        ctx.meta[VALUES] = {one.name: ctx.params.pop(one.name) for one in ctx.meta[OPTIONS]}
        return super().invoke(ctx)


def _own_parameters(words: list[str]) -> dict[str, Parameter]:
    """The parameters of the rules that a command line names as file.py:Class; the files are imported."""
    found: dict[str, Parameter] = {}
    for registry in (SELECTIONS, OBJECTIVES):
        option = flag(registry.kind)
        for word, following in itertools.pairwise([*words, ""]):
            name = following if word == option else word.partition("=")[2] if word.startswith(f"{option}=") else ""
            if ":" in name:
                rule = registry.find(name)
                found |= parameters_of(rule) if isinstance(rule, type) else {}
    return found


def with_params(command: Callable[..., None]) -> Callable[..., None]:
    """Add one option per training parameter to a command; `chosen_params` returns their values."""
    command.command_class = ParamsCommand  # type: ignore[attr-defined]
    return command


def _options(known: dict[str, Parameter]) -> list[Any]:
    """The options, made by typer from a signature as those of every command."""

    def parameters() -> None: ...

    options = [_option(one) for one in known.values() if _is_simple(one.type)]
    parameters.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    parameters.__annotations__ = {one.name: one.annotation for one in options}
    app = typer.Typer(add_completion=False)
    app.command()(parameters)
    return typer.main.get_command(app).params


def _is_simple(kind: Any) -> bool:
    """Whether a command line can spell values of this type; others are set in TOML files and in Python."""
    return all(one in (str, int, float, bool, object) for one in get_args(kind) or [kind])


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
    flags = {name: value for name, value in context.meta[VALUES].items() if is_flag(context, name)}
    chosen = Params(**{**canonical(given), **flags}).load_files()
    chosen.check_used(flags)  # a file may be for several algorithms
    return chosen.drop_unused()


def is_flag(context: typer.Context, name: str) -> bool:
    """Whether the user has given it on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def read_toml(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The top-level keys of a TOML file: parameters, checked so that an error names file and line; others."""
    file = TomlFile(path, like="lines such as 'learning-rate = 0.05'")
    values = dict(file.values)
    of_run = {name: values.pop(name) for name in RUN_OPTIONS if name in values}
    try:
        Params(**values)
    except ParameterError as error:
        keys = {name: key for key in values for name in canonical({key: None})}
        found = [keys[name] for name in error.parameters if name in keys]
        raise error.with_prefix(f"{file.position((found[0],)) if found else path}: ") from None
    return values, of_run
