"""Parameters as command-line options and as a TOML file, both derived from the rules that have them."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, get_args

import typer

from ranksieve.cli.command import JOINED, METAVARS, Command, is_flag
from ranksieve.errors import ParameterError
from ranksieve.parameter_table import (
    SLOTS,
    Algorithm,
    algorithms,
    canonical,
    file_parameters,
    flag,
    help_of,
    table,
    users,
)
from ranksieve.params import Params
from ranksieve.rules import RANKERS, SELECTIONS, Parameter
from ranksieve.toml_file import TomlFile

SHORT = {"metric": ("-m",)}  # as in the other commands
OPTIONS = "ranksieve.options"  # where a command leaves the options of its parameters
VALUES = "ranksieve.params"  # where a command leaves the values of its parameters
RUN_OPTIONS = ("missing", "categorical")  # options of the command itself that the TOML file may set too

# Titles, and functions that return parameters; with the title "", the titles are the groups of the parameters.
Groups = Mapping[str, Callable[[], Mapping[str, Parameter]]]


class ParamsCommand(Command):
    """A command with one option per parameter of some groups, which have a title each, or many by `Parameter.group`.

    The options are made when the command is first used, since the tables of parameters import the code of the rules.
    """

    groups: ClassVar[Groups] = {}
    _own: Mapping[str, Parameter] = MappingProxyType({})  # parameters of rules that the arguments name as file.py:Class

    def rule_parameters(self) -> dict[str, Any]:
        return {name: one for parameters in self._panels().values() for name, one in parameters.items()}

    def _panels(self) -> dict[str, Mapping[str, Parameter]]:
        panels: dict[str, dict[str, Parameter]] = {}
        own = self._own
        for title, parameters in self.groups.items():
            for name, one in {**parameters(), **own}.items():
                panels.setdefault(title or one.group, {})[name] = one
            own = MappingProxyType({})  # these are in the first group
        return dict(panels)

    def panel_titles(self) -> list[str]:
        return [*super().panel_titles(), *self._panels()]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        self._own = _own_parameters(args)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        own = super().get_params(ctx)
        if OPTIONS not in ctx.meta:  # click compares parameters by identity
            ctx.meta[OPTIONS] = _options(self._panels())
            _check_names(ctx.meta[OPTIONS], own)
        return [*own, *ctx.meta[OPTIONS]]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        super().format_options(ctx, formatter)
        if "algo" in self.rule_parameters():
            with formatter.section("Algorithms"):
                formatter.write_dl(list(algorithm_lines()))

    def invoke(self, ctx: Any) -> Any:
        ctx.meta[VALUES] = {one.name: ctx.params.pop(one.name) for one in ctx.meta[OPTIONS]}
        return super().invoke(ctx)


def _check_names(options: list[Any], own: list[Any]) -> None:
    """Refuse parameters of rules that are named as the command's own options and arguments are."""
    names = {one.name for one in own}
    spellings = {spelling for one in own for spelling in (*one.opts, *one.secondary_opts)}
    for one in options:
        taken = next((spelling for spelling in (*one.opts, *one.secondary_opts) if spelling in spellings), None)
        if taken is not None or one.name in names:
            raise ParameterError(
                f"the field {one.name!r} of a rule would become the option {taken or one.opts[0]}, but this command "
                "has another parameter of that name; rename the field"
            )


def algorithm_lines() -> Iterator[tuple[str, str]]:
    """The name of each algorithm and what it is, by the docstrings of its rules or of its ranker."""
    known: dict[Algorithm, str] = {}  # the first name of each forest
    for name, one in algorithms().items():
        if not one.is_forest:
            text = _first_line(RANKERS[name])
        elif (same := known.setdefault(one, name)) != name:
            text = f"Another name of {same}."
        else:
            trees = "oblivious trees" if one.grower == "oblivious" else "trees"
            rows = _first_line(SELECTIONS[one.selection]).partition(": ")[0].rstrip(".")
            rows = f"{rows[0].lower()}{rows[1:]}"
            text = f"Boosted {trees}, objective {one.objective}, selection {one.selection}: {rows}."
        yield name, text.replace("-", JOINED["-"])


def _first_line(rule: Any) -> str:
    """The first line of a rule's docstring, with parameters as options."""
    text, names = (rule.__doc__ or "").partition("\n")[0], table()
    return re.sub(r"`(\w+)`", lambda found: flag(found[1]) if found[1] in names else found[1], text)


def _own_parameters(words: list[str]) -> dict[str, Parameter]:
    """The parameters of the rules that a command line names as file.py:Class; the files are imported."""
    chosen: dict[str, list[str]] = {}
    for registry in SLOTS:
        option = flag(registry.kind)
        for word, following in itertools.pairwise([*words, ""]):
            name = following if word == option else word.partition("=")[2] if word.startswith(f"{option}=") else ""
            chosen.setdefault(registry.kind, []).append(name)
    return file_parameters(chosen)


def with_params(groups: Groups) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add one option per parameter of the groups to a command; `given_flags` returns their values."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        command.command_class = type("ParamsCommand", (ParamsCommand,), {"groups": groups})  # type: ignore[attr-defined]
        return command

    return decorate


def _options(panels: Mapping[str, Mapping[str, Parameter]]) -> list[Any]:
    """The options, made by typer from a signature as those of every command."""

    def parameters() -> None: ...

    names = {name for known in panels.values() for name in known}
    options = [
        _option(one, title, help_of(one) if names.issuperset(users(one.name)) else one.help)
        for title, known in panels.items()
        for one in known.values()
        if _is_simple(one.type)
    ]  # a help text names users of a parameter only where the command has an option that chooses them
    parameters.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    parameters.__annotations__ = {one.name: one.annotation for one in options}
    app = typer.Typer(add_completion=False)
    app.command()(parameters)
    return typer.main.get_command(app).params


def _is_simple(kind: Any) -> bool:
    """Whether a command line can spell values of this type; others are set in TOML files and in Python."""
    return all(one in (str, int, float, bool, object) for one in get_args(kind) or [kind])


def _option(item: Parameter, panel: str, about: str) -> inspect.Parameter:
    name, kind = flag(item.name), str if item.type is object else item.type
    is_pair = kind not in (str, int, float, bool)
    spelling = f"{name}/--no-{name[2:]}" if kind is bool else name
    text = about if kind is bool else f"{about}; {'see Algorithms' if item.name == 'algo' else item.expected}"
    metavar = "LOW HIGH" if is_pair else "NAME" if item.names else METAVARS.get(kind)
    option = typer.Option(spelling, *SHORT.get(item.name, ()), help=f"{text}.", rich_help_panel=panel, metavar=metavar)
    return inspect.Parameter(
        item.name, inspect.Parameter.KEYWORD_ONLY, default=item.default, annotation=Annotated[kind, option]
    )


def chosen_params(context: typer.Context, file: Path | None) -> Params:
    """The parameters of a run: flags given on the command line, else the TOML file's values, else the defaults.

    The file's values of the options `RUN_OPTIONS` go to `context.params`, unless a flag was given.
    """
    given, of_run = read_toml(file) if file else ({}, {})
    context.params.update((name, value) for name, value in of_run.items() if not is_flag(context, name))
    flags = given_flags(context)
    chosen = Params(**{**canonical(given), **flags}).load_files()
    chosen.check_used(flags)  # a file may be for several algorithms
    return chosen.drop_unused()


def given_flags(context: typer.Context) -> dict[str, Any]:
    """The values of the parameters that the user has given on the command line."""
    return {name: value for name, value in context.meta[VALUES].items() if is_flag(context, name)}


def option_words(option: Any, value: Any) -> list[str]:
    """An option and its value as words of a command line."""
    if isinstance(value, bool):
        return [option.opts[0] if value else option.secondary_opts[0]]
    if option.multiple:
        return [word for one in value for word in (option.opts[0], str(one))]
    return [option.opts[0], *map(str, value if isinstance(value, tuple) else [value])]


def read_toml(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The top-level keys of a TOML file: parameters, checked so that an error names file and line; others."""
    file = TomlFile(path, like="lines such as 'learning-rate = 0.05'")
    values = dict(file.values)
    of_run = {name: values.pop(name) for name in RUN_OPTIONS if name in values}
    tables = [
        name for name, value in values.items() if isinstance(value, dict) and not canonical({name: 0}).keys() & table()
    ]
    if tables:
        where = file.position((tables[0],))
        raise ParameterError(f"{where}: is a table [{tables[0]}]; put the parameters at the top level of the file")
    try:
        Params(**values)
    except ParameterError as error:
        keys = {name: key for key in values for name in canonical({key: None})}
        found = [keys[name] for name in error.parameters if name in keys]
        raise error.with_prefix(f"{file.position((found[0],)) if found else path}: ") from None
    return values, of_run
