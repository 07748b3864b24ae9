"""Messages: parameters are data, and each place where a message is shown has its own spelling."""

from __future__ import annotations

import ast
import pickle
import re
import warnings
from pathlib import Path

import pytest

import ranksieve
from ranksieve.errors import DataError, ParameterError, RanksieveError, RanksieveWarning, did_you_mean, param

PACKAGE = Path(ranksieve.__file__).parent


def test_a_parameter_has_two_spellings() -> None:
    error = ParameterError(param("min_docs"), " is 0; use ", param("algo", "mart"), " or ", param("global_", True))
    assert str(error) == "min_docs is 0; use algo='mart' or global_=True"
    assert error.for_command_line() == "--min-docs is 0; use --algo mart or --global True"
    assert error.parameters == ("min_docs", "algo", "global_")


def test_text_is_shown_as_it_is() -> None:
    text = "runs--old/dev.txt: see ranksieve train --help --algo=mart"
    assert str(DataError(text)) == DataError(text).for_command_line() == text


def test_prefixes_and_suffixes_keep_the_parameters() -> None:
    error = ParameterError(param("trees"), " is 0").with_prefix("params.toml:2: ").with_suffix("; see ", param("algo"))
    assert type(error) is ParameterError
    assert str(error) == "params.toml:2: trees is 0; see algo"
    assert error.for_command_line() == "params.toml:2: --trees is 0; see --algo"


def test_messages_survive_other_processes() -> None:
    error = pickle.loads(pickle.dumps(ParameterError(param("trees", 3), " is too few")))
    assert (str(error), error.for_command_line()) == ("trees=3 is too few", "--trees 3 is too few")


def test_warnings_are_messages_too() -> None:
    with pytest.warns(RanksieveWarning, match="depth=50 is deep") as caught:
        warnings.warn(RanksieveWarning(param("depth", 50), " is deep"), stacklevel=1)
    assert caught[0].message.for_command_line() == "--depth 50 is deep"


def test_warnings_name_the_line_that_called_the_package() -> None:
    data = ranksieve.synth.cubic(4)
    with pytest.warns(RanksieveWarning) as caught:
        model = ranksieve.train(data, algo="lambdamart", margin=2.0, trees=2, leaves=2, min_docs=1)
        ranksieve.prune(model, data, rate=0.5, reweight=False)
        ranksieve.train(data, algo="xcleaver", trees=1, grow=1, rate=0.0, leaves=2, min_docs=1)
    messages = " ".join(str(one.message) for one in caught)
    assert "margin is not used" in messages and messages.count("trees are judged on the training lists") == 2
    assert {one.filename for one in caught} == {__file__}


def test_the_command_line_shows_flags_and_python_names(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from ranksieve.cli.app import app

    shown = CliRunner().invoke(app, ["train", "x.txt", "--out", str(tmp_path / "m"), "--min-docs", "0"]).output
    assert shown == "error: --min-docs is 0; expected an integer from 1\n"
    with pytest.raises(RanksieveError, match=r"^min_docs is 0; expected an integer from 1$"):
        ranksieve.train(ranksieve.synth.cubic(2), min_docs=0)


def test_no_message_outside_the_command_line_has_flags_in_its_text() -> None:
    """A flag is a parameter, unless it is part of a command that the user is to type: `ranksieve index … --out …`."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        if path.is_relative_to(PACKAGE / "cli"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise | ast.Call) and _makes_message(node):
                found += [f"{path.name}:{node.lineno}: {text}" for text in _texts(node) if _has_flag(text)]
    assert not found, "\n".join(found)


def _makes_message(node: ast.AST) -> bool:
    made = node.exc if isinstance(node, ast.Raise) else node
    name = getattr(getattr(made, "func", None), "id", "")
    return name.endswith(("Error", "Warning"))


def _texts(node: ast.AST) -> list[str]:
    """The strings of a message, those with values in them as one."""
    inside = {id(part) for one in ast.walk(node) if isinstance(one, ast.JoinedStr) for part in ast.walk(one)} - {
        id(one) for one in ast.walk(node) if isinstance(one, ast.JoinedStr)
    }
    return [
        "".join(str(getattr(part, "value", "")) if isinstance(part, ast.Constant) else "X" for part in one.values)
        if isinstance(one, ast.JoinedStr)
        else str(one.value)
        for one in ast.walk(node)
        if isinstance(one, ast.JoinedStr) or (isinstance(one, ast.Constant) and id(one) not in inside)
    ]


def _has_flag(text: str) -> bool:
    return re.search(r"(^|[\s('\"])--[a-z]", re.sub(r"ranksieve [a-z]+ .*", "", text, flags=re.S)) is not None


def test_advice_on_names() -> None:
    assert did_you_mean("SelGBB", ["lambdamart", "selgb"]) == "did you mean 'selgb'? "
    assert did_you_mean("x", ["lambdamart", "selgb"]) == ""
