"""JSON files of models that are not plain forests: a kind, feature names, arrays, and how they were trained."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ranksieve.errors import ModelError
from ranksieve.files import atomic_path

FORMAT = 1  # a reader refuses newer ones
START = b'{"ranksieve":'  # how such a file begins
RECOVER = "copy it again from where it was saved, or train it again"


def write_model(
    path: str | os.PathLike[str],
    kind: str,
    feature_names: Sequence[str],
    arrays: Mapping[str, Any],
    info: Mapping[str, Any],
) -> None:
    """Write a model; equal models give equal bytes, so training times are left out."""
    content = {
        "ranksieve": FORMAT,
        "kind": kind,
        "feature_names": list(feature_names),
        **{name: one.tolist() if isinstance(one, np.ndarray) else one for name, one in arrays.items()},
        "info": {name: value for name, value in info.items() if name != "seconds"},
    }
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    with atomic_path(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def kind_of(content: bytes) -> Any:
    """The kind of model in the content of a file, the word after `"kind":` near its start; None where there is none."""
    if not content.startswith(START):
        return None
    _, _, rest = content[:200].partition(b'"kind":')
    try:
        return json.JSONDecoder().raw_decode(rest.decode(errors="replace").lstrip())[0]
    except ValueError:
        return None


def parse_model(content: bytes, source: str) -> dict[str, Any]:
    """The content of a model file, checked to be complete and of a format that can be read."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{source}: is not complete JSON ({error}); {RECOVER}") from error
    version = found.get("ranksieve")
    if not isinstance(version, int) or version > FORMAT:
        raise ModelError(f"{source}: has format {version!r}, this ranksieve reads up to {FORMAT}; upgrade ranksieve")
    names, info = found.get("feature_names"), found.get("info")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or not is_info(info):
        raise ModelError(f"{source}: needs feature names and an info object; the file was changed, {RECOVER}")
    return found


def is_info(info: Any) -> bool:
    """Whether a value of a file can be the `info` of a model: an object with finite numbers, its tables objects."""
    try:
        json.dumps(info, allow_nan=False)
    except ValueError:
        return False
    return isinstance(info, dict) and all(isinstance(info.get(name, {}), dict) for name in ("params", "data"))


def numbers(content: Mapping[str, Any], name: str, shape: tuple[int, ...], source: str) -> np.ndarray:
    """One array of a model; its shape must be the expected one (-1: any) and its numbers finite."""
    try:
        array = np.array(content[name])
        if array.dtype.kind not in "iuf":  # NumPy would turn the text "1_0" into 10
            raise TypeError(f"values of type {array.dtype}")
        array = array.astype(np.float64)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"{source}: {name!r} is missing or does not hold numbers; the file was changed, {RECOVER}"
        ) from error
    fits = array.ndim == len(shape) and all(want in (-1, got) for want, got in zip(shape, array.shape, strict=True))
    if not fits or not np.isfinite(array).all():
        raise ModelError(
            f"{source}: {name!r} has shape {array.shape}, expected {shape} of finite numbers; "
            f"the file was changed, {RECOVER}"
        )
    return array
