"""Damaged TOML files of parameters: each is read, or refused with an error that names the file."""

from __future__ import annotations

import warnings

from damage import damaged
from ranksieve.cli.options import read_toml
from ranksieve.errors import RanksieveError

TEXT = """\
algo = "selgb"
trees = 300
leaves = 31
learning-rate = 0.1
negatives = 0.05
step-range = [0.0, 2.0]
gains = [0, 1, 3]
monotone = "f1:+1,f2:-1"
categorical = ["brand", "genre"]
missing = "nan"
selection = "top-negatives"
"""


def test_damaged_parameters_are_read_or_refused(fuzz_cases, tmp_path):
    path, refused = tmp_path / "params.toml", 0
    path.write_text(TEXT)
    read_toml(path)
    for number, rng in enumerate(fuzz_cases(250)):
        path.write_bytes(damaged(TEXT.encode(), rng))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read_toml(path)
        except RanksieveError as error:
            refused += 1
            assert str(error).startswith(str(path)), f"case {number}: {error}"
        except Exception as error:
            raise AssertionError(f"case {number}: {error!r} of\n{path.read_bytes()!r}") from error
    assert refused
