"""The commands put together, and what every one of them does with errors."""

from __future__ import annotations

import errno
import itertools
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import ranksieve
from ranksieve.cli.bench import bench
from ranksieve.cli.combine import combine, interpolate, refit
from ranksieve.cli.command import Command, UsageError, WholeWords, unknown_command, usage_message
from ranksieve.cli.console import show_error, shown_warnings
from ranksieve.cli.convert import convert
from ranksieve.cli.demo import demo
from ranksieve.cli.describe import describe
from ranksieve.cli.evaluate import evaluate
from ranksieve.cli.experiment import experiment
from ranksieve.cli.explain import explain
from ranksieve.cli.features import features
from ranksieve.cli.index import index
from ranksieve.cli.pack import pack
from ranksieve.cli.predict import predict
from ranksieve.cli.prune import prune
from ranksieve.cli.report import report
from ranksieve.cli.rerank import rerank
from ranksieve.cli.retrieve import retrieve
from ranksieve.cli.sample import sample
from ranksieve.cli.split import split
from ranksieve.cli.synth import synth
from ranksieve.cli.train import CHECKPOINT, train
from ranksieve.errors import ParameterError, RanksieveError

COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    "Models": (train, predict, evaluate, explain, prune, combine, interpolate, refit, convert, bench),
    "Data": (describe, split, sample, pack, synth),
    "Search": (index, retrieve, features, rerank),
    "Experiments": (experiment, report, demo),
}


class Commands(WholeWords, TyperGroup):
    """Commands whose errors and warnings are one line; exit code 2 for bad input, 130 for Ctrl-C."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with shown_warnings():
                return super().invoke(ctx)
        except RanksieveError as error:
            show_error(error.for_command_line())
            raise typer.Exit(2) from error
        except UsageError as error:
            show_error(usage_message(error))
            raise typer.Exit(2) from error
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader of a pipe went away: `ranksieve … | head`
                raise
            show_error(f"{error.filename}: {error.strerror}" if error.filename else str(error))
            raise typer.Exit(2) from error
        except KeyboardInterrupt as error:
            kept = f"; a checkpoint is kept in {folder}, go on with --resume" if (folder := _checkpoint(ctx)) else ""
            show_error(f"interrupted; nothing half-written is left{kept}")
            raise typer.Exit(130) from error

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, commands in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(one.__name__, (one.__doc__ or "").partition("\n")[0]) for one in commands])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if not ctx.resilient_parsing and args and self.get_command(ctx, args[0]) is None and args[0][:1] != "-":
            raise ParameterError(unknown_command(ctx, args[0]))
        return super().resolve_command(ctx, args)


def _checkpoint(ctx: Any) -> Path | None:
    """The folder that the command was told to keep checkpoints in, once one is there."""
    folder: Path | None = ctx.meta.get(CHECKPOINT)
    return folder if folder is not None and folder.is_dir() and any(folder.iterdir()) else None


logging.getLogger("ranksieve").addHandler(logging.NullHandler())  # commands say themselves what they do
app = typer.Typer(
    name="ranksieve",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
)
for command in itertools.chain(*COMMANDS.values()):
    app.command(cls=Command)(command)


def _version(asked: bool) -> None:
    if asked:
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
