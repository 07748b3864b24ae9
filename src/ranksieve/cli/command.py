"""How a command shows its help and reports mistakes in its arguments."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from ranksieve.errors import ParameterError, ParamName, did_you_mean, joined_parts

UsageError: Any = typer.BadParameter.__mro__[1]  # typer brings its own click, or uses the installed one
WORDS = "ranksieve.words"  # where a command leaves the words it was called with
CHECKPOINT = "ranksieve.checkpoint"  # where a command leaves the folder of its checkpoints
OPTION = "ranksieve.option"  # key of the metadata of a field that is an option
JOINED = {" ": "\N{NO-BREAK SPACE}", "-": "\N{NON-BREAKING HYPHEN}"}
LONGEST_JOINED = 30  # characters; a longer default is wrapped
METAVARS = {int: "INT", float: "FLOAT", str: "TEXT", Path: "FILE"}
NUMBERS = {int: "an integer", float: "a number"}
OTHER_OPTIONS = {
    "to": ("format",), "trees": ("size",), "out": ("qrels",), "stage": ("model",), "top": ("k",),
    **dict.fromkeys(("verbose", "verbosity", "verbose_eval", "silent"), ("quiet",)),
}  # fmt: skip
OTHER_COMMANDS = {"compare": "evaluate"}
DATA_OPTIONS = {"prune": "--valid"}  # option of the data, for commands whose data is not an argument
SETTINGS: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}  # settings of typer


class WholeWords:
    """Help in which no option, word with hyphens or default value is broken at the end of a line."""

    def get_help(self, ctx: Any) -> str:
        text: str = super().get_help(ctx)  # type: ignore[misc]
        return text.translate({ord(joined): plain for plain, joined in JOINED.items()})


class CommandGroup(WholeWords, TyperGroup):
    """Commands under one name."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if not ctx.resilient_parsing and args and self.get_command(ctx, args[0]) is None and args[0][:1] != "-":
            raise ParameterError(unknown_command(ctx, args[0]))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            shown = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
            formatter.write_dl([(name, (getattr(one, "help", "") or "").partition("\n")[0]) for name, one in shown])


class Command(WholeWords, TyperCommand):
    """A command with plain help in two columns, grouped by the panels of its options."""

    def rule_parameters(self) -> dict[str, Any]:
        """The parameters of rules among its options."""
        return {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[WORDS] = list(args)
        ctx.allow_extra_args = True  # click's error does not hold them
        extra = super().parse_args(ctx, args)
        if extra and not ctx.resilient_parsing:
            raise UsageError(f"got unexpected extra argument{'s' * (len(extra) > 1)} ({' '.join(extra)})", ctx)
        return extra

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = (param for param in self.get_params(ctx) if param.param_type_name == "argument")
        options = [param for param in self.params if param.param_type_name == "option" and param.required]
        required = [f"{spelled(param)} {metavar(self, param)}" for param in options]
        return [*(spelled(one) if one.required else f"[{spelled(one)}]" for one in arguments), *required, "[OPTIONS]"]

    def panel_titles(self) -> list[str]:
        """The panels that come first in its help, in their order."""
        return ["Arguments", "Options"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {title: [] for title in self.panel_titles()}
        for param in self.get_params(ctx):
            usual = "Arguments" if param.param_type_name == "argument" else "Options"
            panel = getattr(param, "rich_help_panel", None) or usual
            panels.setdefault(panel, []).append(described(self, param))
        for title, rows in panels.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def described(command: Any, param: Any) -> tuple[str, str]:
    """The two columns of a parameter's help: `-o, --out FILE` and `Model file to write. [required]`."""
    help = getattr(param, "help", "") or ""
    if param.param_type_name == "argument":
        return spelled(param), help.replace("-", JOINED["-"])
    names = ", ".join(sorted(param.opts, key=len))
    if param.secondary_opts:
        names += f" / {', '.join(param.secondary_opts)}"
    default = "required" if param.required else _default(param)
    if getattr(param, "multiple", False):
        help += " May be repeated."
    if default:
        help += f" [{default.replace(' ', JOINED[' '])}]" if len(default) < LONGEST_JOINED else f" [{default}]"
    return f"{names} {metavar(command, param)}".rstrip(), help.replace("-", JOINED["-"])


def _default(param: Any) -> str:
    shown, value = param.show_default, param.default
    if isinstance(shown, str):
        return f"default: {shown}"
    if param.secondary_opts:
        return f"default: {(param.opts if value else param.secondary_opts)[0]}"
    if param.is_flag or value is None or value == "" or callable(value):
        return ""
    return f"default: {' '.join(map(str, value)) if isinstance(value, (tuple, list)) else value}"


def metavar(command: Any, param: Any) -> str:
    """The placeholder for the value of an option in the help; empty for flags."""
    if param.is_flag or param.metavar is not None:
        return param.metavar or ""
    return METAVARS.get(_declaration(command, param.name)[0], "TEXT")


def spelled(param: Any) -> str:
    """A parameter as the user types it: `--out`, `MODEL`."""
    if param.param_type_name == "option":
        return str(max(param.opts, key=len))
    name = str(param.metavar or param.human_readable_name)
    return f"{name}..." if param.nargs == -1 and "..." not in name else name


def _declaration(command: Any, name: str) -> tuple[type, Any]:
    """The type of a parameter, or of the items where it is a list, and typer's information on it."""
    declared = inspect.signature(command.callback, eval_str=True).parameters.get(name)
    if declared is None:
        return str, None
    annotation, info = get_args(declared.annotation)
    kinds = [kind for kind in (annotation, *get_args(annotation)) if kind in METAVARS]
    nested = [kind for outer in get_args(annotation) for kind in get_args(outer) if kind in METAVARS]
    return (*kinds, *nested, str)[0], info


def option(default: Any, help: str, *names: str, **settings: Any) -> Any:
    """An option as a field of the dataclass that `takes_options` looks for; settings are those of `typer.Option`."""
    return dataclasses.field(default=default, metadata={OPTION: typer.Option(*names, help=help, **settings)})


def takes_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command with one parameter per field, in place of each argument whose type is a dataclass.

    A field is annotated as typer wants parameters to be, or made by `option`.
    """
    own = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: one.annotation for name, one in own.items() if dataclasses.is_dataclass(one.annotation)
    }

    def run(**values: Any) -> None:
        for name, kind in groups.items():
            values[name] = kind(**{field.name: values.pop(field.name) for field in dataclasses.fields(kind)})
        command(**values)

    parts = (_fields(groups[name]) if name in groups else [one] for name, one in own.items())
    return _with_parameters(command, run, itertools.chain.from_iterable(parts))


def _fields(options: Any) -> Iterator[inspect.Parameter]:
    """The fields of a dataclass as parameters of a command."""
    hints = get_type_hints(options, include_extras=True)
    about = {field.name: field.metadata.get(OPTION) for field in dataclasses.fields(options)}
    for name, one in inspect.signature(options).parameters.items():
        yield one.replace(annotation=Annotated[hints[name], about[name]] if about[name] else hints[name])


def with_options(command: Callable[..., None], run: Callable[..., None], options: Mapping[str, Any]) -> Any:
    """`run` with the parameters of a command and options, by name, that are None where they are not given."""
    own = inspect.signature(command, eval_str=True).parameters.values()
    added = (
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for name, option in options.items()
    )
    return _with_parameters(command, run, (*own, *added))


def _with_parameters(
    command: Callable[..., None], run: Callable[..., None], parameters: Iterable[inspect.Parameter]
) -> Any:
    """`run` under the name of a command, with these parameters."""
    wrapped: Any = functools.wraps(command)(run)
    by_name = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    wrapped.__signature__ = inspect.Signature(by_name)
    wrapped.__annotations__ = {one.name: one.annotation for one in by_name}
    return wrapped


def is_flag(context: typer.Context, name: str) -> bool:
    """Whether the user has given it on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def usage_message(error: Any) -> str:
    """The line that reports a mistake in the arguments of a command."""
    context = error.ctx
    advice = f"see {_name(context)} --help"
    data_option = DATA_OPTIONS.get("" if context is None else context.info_name)
    if hasattr(error, "possibilities") and hasattr(error, "option_name"):
        known = [
            name for option in context.command.get_params(context) for name in (*option.opts, *option.secondary_opts)
        ]
        from ranksieve.other_names import ADVICE, ALIASES, NEAREST
        from ranksieve.parameter_table import flag

        if error.option_name == "--data" and data_option:
            return f"unknown option --data; give the data as {data_option} FILE; {advice}"
        name = error.option_name.lstrip("-").replace("-", "_")
        own = [one.name for one in ADVICE.get(name, ()) if isinstance(one, ParamName)]
        if name in ADVICE and flag(NEAREST.get(name, "")) not in known and all(flag(one) in known for one in own):
            return f"unknown option {error.option_name}; {joined_parts(ADVICE[name], flags=True)}; {advice}"
        usual = (ALIASES | NEAREST).get(name)
        near = [flag(one) for one in (usual, *OTHER_OPTIONS.get(name, ())) if one]
        wanted = next((one for one in near if one in known), error.option_name)
        long = [one for one in known if one.startswith("--")]
        return f"unknown option {error.option_name}; {did_you_mean(wanted, long)}{advice}"
    param = getattr(error, "param", None)
    if param is None:
        message = error.format_message()
        if data_option and context.args:
            advice = f"give the data as {data_option} FILE; {advice}"
        return f"{(message[:1].lower() + message[1:]).rstrip('.')}; {advice}"
    if type(error).__name__ == "MissingParameter":
        return f"{spelled(param)} is missing; {advice}"
    given = _given(context, param)
    return f"{spelled(param)}{'' if given is None else f' is {given!r}'}; {_expected(context.command, param)}; {advice}"


def unknown_command(context: Any, name: str) -> str:
    """The line that reports a command that does not exist."""
    near = did_you_mean(OTHER_COMMANDS.get(name, name), context.command.commands)
    return f"unknown command {name}; {near}see {_name(context)} --help"


def _expected(command: Any, param: Any) -> str:
    own = command.rule_parameters().get(param.name)
    if own is not None:
        return f"expected {own.expected}"
    kind, info = _declaration(command, param.name)
    number = NUMBERS.get(kind, "a value")  # besides wrong numbers, typer refuses only missing values
    if param.nargs > 1:
        return f"expected {param.nargs} numbers"
    low, high = getattr(info, "min", None), getattr(info, "max", None)
    return f"expected {number}" + ("" if low is None else f" from {low:g}") + ("" if high is None else f" to {high:g}")


def _name(context: Any) -> str:
    """The command as it is called, whichever way it was started."""
    names: list[str] = []
    while context is not None and context.parent is not None:
        names.insert(0, context.info_name)
        context = context.parent
    return " ".join(("ranksieve", *names))


def _given(context: Any, param: Any) -> str | None:
    """The last text that was given to an option."""
    found, words = None, context.meta.get(WORDS, [])
    for place, word in enumerate(words, start=1):
        if word in param.opts:
            found = " ".join(words[place : place + param.nargs])
        elif word.partition("=")[0] in param.opts:
            found = word.partition("=")[2]
    return found
