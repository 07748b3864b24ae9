"""Static samples as a specification asks for them: what each kind takes, checked before anything trains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranksieve.errors import ParameterError, check_key
from ranksieve.experiments.data import DataSpec

SAMPLES: dict[str, tuple[str, ...]] = {
    "truncate": ("k", "positives"),
    "by-model": ("share", "model"),
    "undersample": ("share", "n", "order"),
}


def sample_table(sample: Any) -> dict[str, Any] | None:
    """What a run's key `sample` says, if it has one."""
    if sample is None:
        return None
    how = sample.get("how") if isinstance(sample, dict) else sample
    if not isinstance(sample, dict) or how not in SAMPLES:
        raise ParameterError(
            f'the sample is {how!r}; expected a table such as {{how = "truncate", k = 500}}, '
            f"how one of {', '.join(SAMPLES)}"
        )
    for key in sample:
        check_key(key, ("how", *SAMPLES[how]))
    return dict(sample)


def check_sample(sample: Mapping[str, Any], data: DataSpec) -> None:
    """Refuse a sample that cannot be taken of the data."""
    k, share, n = (sample.get(key) for key in ("k", "share", "n"))
    if sample["how"] == "truncate" and not (isinstance(k, int) and k >= 1):
        raise ParameterError(f"k is {k!r}; truncate expects a whole number from 1")
    if share is not None and not (isinstance(share, (int, float)) and 0 < share <= 1):
        raise ParameterError(f"share is {share!r}; expected a number in (0, 1]")
    if sample["how"] == "by-model" and (share is None or "model" not in sample):
        raise ParameterError("by-model expects a share, and as model the name of an earlier run")
    if sample["how"] == "undersample" and (share is None) == (n is None):
        raise ParameterError("undersample expects one of share and n")
    for key, known in (("positives", ("keep", "drop")), ("order", ("random", "ascending", "descending"))):
        if sample.get(key, known[0]) not in known:
            raise ParameterError(f"{key} is {sample[key]!r}; expected one of {', '.join(known)}")
    needs_order = sample["how"] == "truncate" or sample.get("order", "random") != "random"
    if needs_order and not data.has_first_stage():
        raise ParameterError(f'data {data.name!r} has no first-stage feature; say which (first-stage = "bm25")')
