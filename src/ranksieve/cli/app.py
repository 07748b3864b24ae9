"""The commands put together, and what every one of them does with errors."""

from __future__ import annotations

import ast
import errno
import importlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

import ranksieve
from ranksieve.cli import INTERRUPTED
from ranksieve.cli.command import CHECKPOINT, SETTINGS, Command, CommandGroup, UsageError, usage_message
from ranksieve.errors import RanksieveError
from ranksieve.user_functions import user_error

COMMANDS = {
    "Models": (
        "train",
        "tune",
        "predict",
        "evaluate",
        "cv",
        "explain",
        "prune",
        "combine",
        "interpolate",
        "refit",
        "convert",
        "bench",
    ),
    "Data": ("describe", "split", "sample", "pack", "feature-log", "feature-set", "synth"),
    "Clicks": ("clicks",),
    "Search": ("index", "retrieve", "fuse", "features", "rerank", "serve"),
    "Experiments": ("experiment", "report", "demo"),
    "Setup": ("warm-up",),
}
MODULES = {name: name for names in COMMANDS.values() for name in names} | {
    **dict.fromkeys(("interpolate", "refit"), "combine"),
    **dict.fromkeys(("split", "sample", "pack", "synth"), "datasets"),
    **dict.fromkeys(("feature-log", "feature-set"), "engines"),
    **dict.fromkeys(("retrieve", "fuse", "rerank"), "runs"),
    **dict.fromkeys(("predict", "convert", "bench"), "model_commands"),
    "cv": "evaluate",
    "report": "experiment",
    "warm-up": "warm_up",
}


class LazyCommands(Mapping[str, Any]):
    """Commands by name. A module is imported when its command is used, so that the others cost no time."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            module = importlib.import_module(f"ranksieve.cli.{MODULES[name]}")
            group = getattr(module, "GROUP", None)
            if group is None:
                group = typer.Typer(add_completion=False, **SETTINGS)
                function = getattr(module, name.replace("-", "_"))
                group.command(cls=getattr(function, "command_class", Command))(function)
            self._loaded[name] = typer.main.get_command(group)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


def summary(name: str) -> str:
    """The first line of a command's docstring, read without importing its module."""
    source = Path(__file__).with_name(f"{MODULES[name]}.py").read_text(encoding="utf-8")
    functions = {item.name: item for item in ast.parse(source).body if isinstance(item, ast.FunctionDef)}
    return (ast.get_docstring(functions[name.replace("-", "_")]) or "").partition("\n")[0]


class Commands(CommandGroup):
    """Commands whose errors and warnings are one line; exit code 2 for bad input, 130 for Ctrl-C."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = LazyCommands()

    def make_context(self, *given: Any, **named: Any) -> Any:
        try:
            return super().make_context(*given, **named)
        except KeyboardInterrupt as error:
            raise _shown(INTERRUPTED, 130) from error

    def invoke(self, ctx: Any) -> Any:
        try:
            from ranksieve.cli.console import shown_warnings

            with shown_warnings():
                return super().invoke(ctx)
        except RanksieveError as error:
            raise _shown(error.for_command_line()) from error
        except UsageError as error:
            raise _shown(usage_message(error)) from error
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader of a pipe went away: `ranksieve … | head`
                raise
            plain = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            raise _shown(user_error(error) or plain) from error
        except KeyboardInterrupt as error:
            kept = f"; a checkpoint is in {folder}; continue with --resume" if (folder := _checkpoint(ctx)) else ""
            raise _shown(f"{INTERRUPTED}{kept}", 130) from error
        except Exception as error:
            if (message := user_error(error)) is None:
                raise
            raise _shown(message) from error

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, commands in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, summary(name)) for name in commands])


def _shown(message: str, code: int = 2) -> typer.Exit:
    """Show an error; what ends the command then."""
    from ranksieve.cli.console import show_error

    show_error(message)
    return typer.Exit(code)


def _checkpoint(ctx: Any) -> Path | None:
    """The folder for the command's checkpoints, if there are any."""
    folder: Path | None = ctx.meta.get(CHECKPOINT)
    return folder if folder is not None and folder.is_dir() and any(folder.iterdir()) else None


logging.getLogger("ranksieve").addHandler(logging.NullHandler())  # commands show their own progress
app = typer.Typer(
    name="ranksieve",
    cls=Commands,
    no_args_is_help=True,
    context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
    **SETTINGS,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ranksieve {ranksieve.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Learning to rank with gradient-boosted trees, for the second stage of a search system.

    Data files are LETOR (SVMlight) text, CSV or Parquet; text may be compressed (.gz, .xz, .zst). Models are written
    as LightGBM text models; models of XGBoost, RankLib, QuickRank and CatBoost can be read, too.
    """
