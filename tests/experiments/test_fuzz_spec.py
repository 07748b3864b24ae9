"""Damaged specifications and results: each is read, or refused with an error that names the file."""

from __future__ import annotations

import re
import warnings

import numpy as np
from experiment_samples import SPEC, write_spec

from damage import damaged
from ranksieve.errors import RanksieveError
from ranksieve.experiments.read_spec import load_spec
from ranksieve.experiments.results import Results
from ranksieve.experiments.run import run_experiment

SPECIFICATIONS = 200
VALUES = (
    "[]", "{}", "[[]]", "[1, 'a']", "-1", "0", "1", "2.5", "nan", "inf", "-inf", "1e400", "9223372036854775807",
    "99999999999999999999", "true", "false", "''", "'x'", "'plain'", "'SelGB'", "'rules.py:rule'", "'a:b:c'", "'../x'",
    "'\\u0000'", "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "{ how = 'truncate', k = 3 }", "{ a = 1, b = [2] }",
    "{ model = 'plain', first = 2 }", "{ low = 1, high = 'x' }", "{ low = 0, high = 3, log = true }",
    "['plain', 'hard']", "[0, 0]", "['ndcg@10', 'ndcg@10']", "[0.5, 0.25, 0.25]", "'lambdamart'", "'xcleaver'",
    "'feature'", "['mart', 3]",
)  # fmt: skip
KEYS = (
    "title", "metrics", "stages", "seeds", "figures", "baseline", "compare", "timed", "data", "params", "runs", "quick",
    "tune", "generate", "queries", "features", "file", "train", "split", "folds", "first-stage", "background",
    "background-queries", "background-seed", "name", "algo", "sample", "prune", "selections", "shared-leaves", "init",
    "interpolate", "selection", "step", "step-range", "trees", "leaves", "negatives", "metric", "monotone", "gains",
    "rate", "strategy", "base", "seed", "nothing", '"a b"', "a.b",
)  # fmt: skip
SMALL = (
    '[data.a]\ngenerate = "cubic"\nqueries = 12\n[[runs]]\nalgo = "lambdamart"\ntrees = 2\nleaves = 4\nthreads = 1\n'
)
LINE = re.compile(r"^([\w-]+) = (.*)$", re.MULTILINE)
TEXT = SPEC + "\n[tune]\nleaves = { low = 2, high = 8 }\n"


def with_other_values(text: str, seed: int) -> str:
    """One to three lines with other keys, other values, or gone."""
    rng = np.random.default_rng(seed)
    for _ in range(rng.integers(1, 4)):
        found = list(LINE.finditer(text))
        at = found[rng.integers(len(found))]
        key, value = at[1], VALUES[rng.integers(len(VALUES))]
        if rng.random() < 0.4:
            key = KEYS[rng.integers(len(KEYS))]
        line = "" if rng.random() < 0.1 else f"{key} = {value}"
        kept = text[at.start() : at.end()] + "\n" if rng.random() < 0.3 else ""
        text = text[: at.start()] + kept + line + text[at.end() :]
    return text


def test_damaged_specifications_are_read_or_refused(tmp_path, fuzz_cases):
    refused = 0
    for seed, _ in enumerate(fuzz_cases(SPECIFICATIONS)):
        text = damaged(TEXT.encode(), seed) if seed % 4 == 0 else with_other_values(TEXT, seed).encode()
        path = write_spec(tmp_path)
        path.write_bytes(text)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                spec = load_spec(path, quick=seed % 2 == 0)
            assert spec.cells and len({cell.key for cell in spec.cells}) == len(spec.cells)
        except RanksieveError as error:
            refused += 1
            assert str(error).startswith(str(path)), (seed, error)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r} of\n{text.decode(errors='replace')}") from error
    assert 0 < refused < seed


def test_damaged_results_are_read_or_refused(tmp_path, fuzz_cases):
    path = tmp_path / "spec.toml"
    path.write_text(SMALL)
    results = run_experiment(load_spec(path), tmp_path / "out", jobs=1)
    files = [tmp_path / "out" / "experiment.json", *sorted(results.cells[0].folder.iterdir())]
    files = [file for file in files if file.suffix in (".json", ".parquet")]
    refused = 0
    for number, rng in enumerate(fuzz_cases(120)):
        file = files[rng.integers(len(files))]
        content = file.read_bytes()
        file.write_bytes(damaged(content, rng))
        try:
            for cell in Results.open(tmp_path / "out").cells:
                assert cell.label and isinstance(cell.settings, dict)
                for name in ("curve", "queries"):
                    assert isinstance(cell.table(name), dict)
        except RanksieveError as error:
            refused += 1
            assert str(tmp_path / "out") in str(error) and "\n" not in str(error), f"case {number}: {error}"
        except Exception as error:
            raise AssertionError(f"case {number} of {file.name}: {error!r}") from error
        file.write_bytes(content)
    assert refused
