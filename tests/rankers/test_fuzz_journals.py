"""Damaged journals of trials: an error of ours, or a search that goes on."""

from __future__ import annotations

import re

import pytest

from damage import damaged
from ranksieve.errors import DataError
from ranksieve.rankers.trials import Outcome, Trials

pytest.importorskip("optuna")
SPACE = {"leaves": [4, 8], "l2": {"low": 0.1, "high": 1.0, "log": True}}


def _l2(values, report):
    return Outcome(values["l2"], trees=7)


def test_damaged_journals_are_refused_or_continued(fuzz_cases, tmp_path):
    path, refused = tmp_path / "journal", 0
    trials = Trials("search", SPACE, path)
    trials.try_first({"leaves": 4, "l2": 0.5})
    trials.run(_l2, 2)
    content = path.read_bytes()
    for number, rng in enumerate(fuzz_cases(200)):
        changed = damaged(content, rng)
        path.write_bytes(changed)
        try:
            found = Trials("search", SPACE, path)
            found.run(_l2, len(found.done()) + 1)
            assert found.best(1)
        except DataError as error:
            assert str(error).startswith(f"{path}: ") and "\n" not in str(error), f"case {number}: {error}"
            assert path.read_bytes().startswith(changed[: changed.rfind(b"\n") + 1])
            refused += 1
        except Exception as error:
            raise AssertionError(f"case {number}: {error!r}") from error
    assert refused


@pytest.mark.parametrize("text", ["hello", "hello\n", '{"a": 1}\n', "1\n2"])
def test_other_files_are_left_alone(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=r"notes.txt: is not a journal of trials, or damaged"):
        Trials("search", SPACE, path)
    assert path.read_text() == text


def test_a_line_that_was_cut_off_is_removed(tmp_path):
    path = tmp_path / "journal"
    Trials("search", SPACE, path).run(_l2, 1)
    content = path.read_bytes()
    path.write_bytes(content + content[: content.index(b"\n") - 3])
    again = Trials("search", SPACE, path)
    assert len(again.done()) == 1
    assert path.read_bytes().startswith(content + b'{"op_code":0')  # the study, named again


def test_numbers_of_trees_are_checked(tmp_path):
    path = tmp_path / "journal"
    Trials("search", SPACE, path).run(_l2, 2)
    assert [one.trees for one in Trials("search", SPACE, path).done()] == [7, 7]
    content = path.read_text()
    for wrong in ("0", '"many"', "true"):
        path.write_text(re.sub(r'"trees": ?7', f'"trees": {wrong}', content))
        with pytest.raises(DataError, match=r"is not a journal of trials, or damaged .*the trial 0 has .* trees"):
            Trials("search", SPACE, path)


def test_waiting_trials_with_values_outside_the_space_are_refused(tmp_path):
    path = tmp_path / "journal"
    Trials("search", SPACE, path).try_first({"leaves": 4, "l2": 0.5})
    content = path.read_text()
    assert '"l2": 0.5' in content or '"l2":0.5' in content
    path.write_text(content.replace('"l2": 0.5', '"l2": 99').replace('"l2":0.5', '"l2":99'))
    with pytest.raises(DataError, match=r"is not a journal of trials, or damaged .*would try"):
        Trials("search", SPACE, path)
