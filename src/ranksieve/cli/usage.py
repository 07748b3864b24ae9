"""Mistakes in a command's arguments, told as the errors of everything else are: got, expected, what to do."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import typer
from typer.core import TyperCommand

from ranksieve.errors import did_you_mean
from ranksieve.params import Params, flag

UsageError: Any = typer.BadParameter.__mro__[1]  # typer brings its own click, or uses the installed one
NO_COMMAND = re.compile("No such command '([^']*)'")
GIVEN = "ranksieve.given"
EXPECTED = {flag(item.name): item.metadata["expected"] for item in dataclasses.fields(Params)}


class Command(TyperCommand):
    """A command that remembers the words it was given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[GIVEN] = list(args)
        return super().parse_args(ctx, args)


def usage_message(error: Any) -> str:
    """What to say of a mistake that typer found."""
    context = error.ctx
    advice = f"see {_name(context)} --help"
    if hasattr(error, "possibilities") and hasattr(error, "option_name"):
        known = [name for option in context.command.params for name in (*option.opts, *option.secondary_opts)]
        return f"unknown option {error.option_name}; {did_you_mean(error.option_name, known)}{advice}"
    command = NO_COMMAND.search(error.message)
    if command is not None:
        return f"unknown command {command[1]}; {did_you_mean(command[1], context.command.commands)}{advice}"
    parameter = getattr(error, "param", None)
    if parameter is None:
        return f"{_plain(error.format_message())}; {advice}"
    name = _spelled(parameter)
    if type(error).__name__ == "MissingParameter":
        return f"{name} is missing; {advice}"
    given = _given(context, parameter)
    expected = f"expected {EXPECTED[name]}" if name in EXPECTED else _plain(error.message).partition(", unable")[0]
    return f"{name}{'' if given is None else f' is {given!r}'}; {expected}; {advice}"


def _name(context: Any) -> str:
    """The command as it is called, whichever way it was started."""
    return "ranksieve" if context is None or context.parent is None else f"ranksieve {context.info_name}"


def _spelled(parameter: Any) -> str:
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.metavar or parameter.human_readable_name)


def _given(context: Any, parameter: Any) -> str | None:
    """The last text that stands behind an option."""
    found, words = None, context.meta.get(GIVEN, [])
    for place, word in enumerate(words, start=1):
        if word in parameter.opts:
            found = " ".join(words[place : place + parameter.nargs])
        elif word.partition("=")[0] in parameter.opts:
            found = word.partition("=")[2]
    return found


def _plain(message: str) -> str:
    """A sentence of typer's as a part of ours."""
    return (message[:1].lower() + message[1:]).rstrip(".")
