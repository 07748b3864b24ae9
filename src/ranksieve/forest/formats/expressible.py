"""What a consumer can hold of a forest. Everything else is refused here, with what to do about it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from ranksieve.errors import ModelError
from ranksieve.forest.forest import Forest
from ranksieve.forest.singles import to_single
from ranksieve.kernels.quantize import ZERO


@dataclass(frozen=True)
class Options:
    """What a user says of a file to write; see `Forest.save`."""

    name: str = "model"
    missing: str = "nan"
    nearest: bool = False


DEFAULT = Options()
MISSING = {
    "nan": "go where each split sends them",
    "zero": "count as 0",
    "never": "do not occur, the user promises",
}
SAY = "say what they are: --missing=zero where they count as 0, --missing=never if there are none"


def check_missing(forest: Forest, consumer: str, nan_left: np.ndarray | None, options: Options) -> None:
    """Refuse splits that send NaN, or zeros as missing, where the consumer does not.

    Parameters
    ----------
    nan_left : array of bool, optional
        Per split, whether the consumer sends NaN left; None where it keeps a direction per split as we do.
    """
    # a split that counts zeros as missing is a plain one where zeros go that way anyhow
    as_zero = np.where(forest.default_left, forest.threshold >= ZERO, forest.threshold < -ZERO)
    special = forest.zero_missing & ~as_zero
    if special.any():
        raise ModelError(
            f"{place(forest, special)} counts zeros as missing (LightGBM's zero_as_missing), which {consumer} cannot "
            "say; train without zero_as_missing, or keep to the formats lightgbm and c"
        )
    if options.missing != "nan" or nan_left is None:
        return
    differs = nan_left != forest.default_left
    if differs.any():
        side = "left" if forest.default_left[np.argmax(differs)] else "right"
        raise ModelError(f"{place(forest, differs)} sends missing values {side}, and {consumer} would not; {SAY}")


def with_missing_as_zero(forest: Forest) -> Forest:
    """The forest that sends missing values where it sends 0."""
    zero_left = np.where(forest.zero_missing, forest.default_left, forest.threshold >= 0)
    return replace(forest, default_left=zero_left)


def place(forest: Forest, splits: np.ndarray) -> str:
    """Where the first of some splits stands, and how many more there are."""
    at = int(np.argmax(splits))
    tree = int(np.searchsorted(forest.split_offsets, at, side="right")) - 1
    more = int(splits.sum()) - 1
    name = forest.feature_names[forest.feature[at]]
    others = f" (and {more:,} more)" if more else ""
    return f"split {at - forest.split_offsets[tree]} of tree {tree} on feature {name!r}{others}"


def single_values(values: np.ndarray, consumer: str) -> np.ndarray:
    """Leaf values rounded to float32, as the consumer keeps them; refuses those too large for it."""
    singles = to_single(values)
    if not np.isfinite(singles).all():
        raise ModelError(
            f"a leaf value is {values[np.argmax(~np.isfinite(singles))]:g}, and {consumer} keeps float32, "
            "up to 3.4e38; scale the tree weights down, which ranks the same"
        )
    return singles


def check_names(forest: Forest, consumer: str) -> None:
    """Refuse features that a consumer which knows them by name could not tell apart."""
    used = [forest.feature_names[number] for number in np.unique(forest.feature)]
    for name, times in Counter(used).items():
        if times > 1 or not name:
            raise ModelError(
                f"{times} features are named {name!r}, and {consumer} knows features by name; "
                "give every feature a name of its own"
            )
