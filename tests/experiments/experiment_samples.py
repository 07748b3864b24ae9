"""A small experiment that trains in no time, and work that fails."""

from __future__ import annotations

import os
from pathlib import Path

from ranksieve.errors import DataError

WEB = """\
[data.web]
generate = "two-stage"
queries = 10
features = 6

[params]
trees = 4
leaves = 4
min-docs = 2
threads = 1
"""


def run_table(name: str, algo: str, *lines: str) -> str:
    """The table of a run."""
    return "\n".join(["", "[[runs]]", f'name = "{name}"', f'algo = "{algo}"', *lines, ""])


SPEC = (
    """\
title = "small"
stages = [2]
metrics = ["ndcg@10", "map"]
baseline = "plain"

"""
    + WEB
    + run_table("plain", "lambdamart", "shared-leaves = true")
    + run_table("SelGB", "selgb", "negatives = [0.02, 0.1]", "min-negatives = 1", "selections = true")
    + run_table("hard", "lambdamart", 'sample = { how = "by-model", model = "plain", share = 0.2 }')
    + run_table(
        "some", "lambdamart", 'sample = { how = "undersample", order = "random", share = 0.3 }', "seeds = [0, 1]"
    )
    + """
[quick]
data = { queries = 8 }
params = { trees = 2 }
seeds = 1
"""
)


def write_spec(folder: Path, text: str = SPEC) -> Path:
    path = folder / "small.toml"
    path.write_text(text, encoding="utf-8")
    return path


def fail_or_die(payload, out, *, threads, alone):
    if payload == "fail":
        raise DataError("it went wrong")
    if payload == "bug":
        raise ZeroDivisionError
    if payload == "die":
        os._exit(9)
    (out / payload).touch()
