"""The trees of a LightGBM text model as the flat arrays of a forest."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ranksieve.data.lists import starts_of
from ranksieve.errors import ModelError
from ranksieve.forest.forest import DTYPES, NO_CODES
from ranksieve.forest.formats.lightgbm_writer import CATEGORICAL, DEFAULT_LEFT, MISSING_NAN, MISSING_ZERO
from ranksieve.forest.formats.nodes import codes_of_words, is_count
from ranksieve.forest.structure import first_broken

# LightGBM's key: (array of Forest, one value per split instead of per leaf, required)
KEYS = {
    "leaf_value": ("leaf_values", False, True),
    "split_feature": ("feature", True, True),
    "threshold": ("threshold", True, True),
    "decision_type": ("decision_type", True, True),
    "left_child": ("left", True, True),
    "right_child": ("right", True, True),
    "split_gain": ("gain", True, False),
    "internal_count": ("split_count", True, False),
    "leaf_count": ("leaf_count", False, False),
    "leaf_weight": ("leaf_weight", False, False),
}
REMEDY = "copy the file again from where it was saved, or train the model again"


@dataclass(frozen=True)
class TreeText:
    """The text of one tree, and the line where it starts."""

    number: int
    text: str
    source: str
    line: int

    def fields(self) -> dict[str, str]:
        pairs = (line.partition("=") for line in self.text.split("\n"))
        return {key: value for key, _, value in pairs if key}

    def error(self, message: str, key: str = "Tree") -> ModelError:
        """The error to raise, with the line of a key."""
        keys = [line.partition("=")[0] for line in self.text.split("\n")]
        line = self.line + (keys.index(key) if key in keys else 0)
        return ModelError(f"{self.source}:{line}: {message}")


def read_trees(blocks: list[TreeText], n_features: int) -> dict[str, np.ndarray]:
    """The arrays and offsets of a `Forest`, checked: no index leads out of them."""
    words: dict[str, list[str]] = {key: [] for key in KEYS}
    n_leaves = np.array([_collect(block, words) for block in blocks], dtype=np.int64)
    leaf_offsets = starts_of(n_leaves)
    split_offsets = leaf_offsets - np.arange(len(leaf_offsets))
    arrays = {}
    for key, (name, per_split, _) in KEYS.items():
        offsets = split_offsets if per_split else leaf_offsets
        numbers = _numbers(words[key], DTYPES.get(name, np.int64), blocks, offsets, key)
        bad, expected = _unusable(key, numbers, n_features)
        if bad.any():
            block = _block_of(int(np.argmax(bad)), blocks, offsets)
            value = numbers[np.argmax(bad)]
            raise block.error(f"{key} of tree {block.number} holds {value}; {expected}; {REMEDY}", key)
        arrays[name] = numbers
    broken = first_broken(arrays["left"], arrays["right"], split_offsets, leaf_offsets)
    if broken is not None:
        raise blocks[broken[0]].error(f"tree {broken[0]} is not a tree: {broken[1]}; {REMEDY}", "left_child")
    _set_missing(arrays)
    arrays |= _sets(blocks, arrays, split_offsets)
    return {
        **{name: array.astype(DTYPES[name]) for name, array in arrays.items() if name in DTYPES},
        "set_offsets": arrays["set_offsets"],
        "set_codes": arrays["set_codes"],
        "split_offsets": split_offsets,
        "leaf_offsets": leaf_offsets,
    }


def _block_of(value: int, blocks: list[TreeText], offsets: np.ndarray) -> TreeText:
    """The tree that a value belongs to, by its place among the values of all trees."""
    return blocks[int(np.searchsorted(offsets, value, side="right")) - 1]


def _collect(block: TreeText, words: dict[str, list[str]]) -> int:
    """Append the words of one tree to those of the trees before it; returns its number of leaves."""
    fields = block.fields()
    count = fields.get("num_leaves", "")
    if not is_count(count) or int(count) < 1:
        raise block.error(f"num_leaves is {count[:20]!r}, expected an integer from 1; {REMEDY}", "num_leaves")
    if fields.get("is_linear", "0") != "0":
        message = "linear leaves, only constant ones are read; train with linear_tree=false"
        raise block.error(f"tree {block.number} has {message}", "is_linear")
    n_leaves = int(count)
    for key, (_, per_split, required) in KEYS.items():
        expected = n_leaves - per_split
        line = fields.get(key, "")
        values = line.split()
        if not values and not required:
            values = ["0"] * expected
        if len(values) != expected:
            raise block.error(
                f"{key} of tree {block.number} has {len(values)} values, expected {expected} "
                f"for {n_leaves} leaves; {REMEDY}",
                key,
            )
        if "_" in line or not line.isascii():  # Python's int and float take 1_0, and digits of any script
            odd = (word for word in values if "_" in word or not word.isascii())
            raise _not_a_number(block, key, next(odd, line))  # the line, if only a space in it is odd
        words[key] += values
    return n_leaves


def _numbers(words: list[str], dtype: type, blocks: list[TreeText], offsets: np.ndarray, key: str) -> np.ndarray:
    """The words as int64 or float64, exactly as Python reads them."""
    parse, wide = (float, np.float64) if dtype is np.float64 else (int, np.int64)
    try:
        return np.array(list(map(parse, words)), dtype=wide)
    except (ValueError, OverflowError) as error:
        for at, word in enumerate(words):
            try:
                np.array([parse(word)], dtype=wide)
            except (ValueError, OverflowError):
                raise _not_a_number(_block_of(at, blocks, offsets), key, word) from error
        raise


def _not_a_number(block: TreeText, key: str, word: str) -> ModelError:
    kind = "a number" if DTYPES.get(KEYS[key][0]) is np.float64 else "an integer"
    return block.error(f"{key} holds {word[:30]!r}, expected {kind}; {REMEDY}", key)


def _unusable(key: str, numbers: np.ndarray, n_features: int) -> tuple[np.ndarray, str]:
    """Which values a forest cannot hold, and what it can."""
    if key == "split_feature":
        return (numbers < 0) | (numbers >= n_features), f"the model has features 0 to {n_features - 1}"
    if key == "threshold":
        return np.isnan(numbers), "expected a number"
    if key == "leaf_value":
        return ~np.isfinite(numbers), "expected a finite number"
    if key == "decision_type":
        return (numbers < 0) | (numbers >= MISSING_ZERO + MISSING_NAN), "expected a number from 0 to 11"
    return np.zeros(len(numbers), dtype=bool), ""


def _set_missing(arrays: dict[str, np.ndarray]) -> None:
    """Replace `decision_type` by the flags of a forest.

    Where LightGBM saw no missing value (missing type none), it scores NaN as 0: NaN goes where 0 goes.
    Missing categories go right.
    """
    decision = arrays.pop("decision_type")
    default_left = (decision & DEFAULT_LEFT) != 0
    none = (decision & (MISSING_ZERO | MISSING_NAN)) == 0
    categorical = arrays["categorical"] = (decision & CATEGORICAL) != 0
    arrays["default_left"] = np.where(none, arrays["threshold"] >= 0.0, default_left) & ~categorical
    arrays["zero_missing"] = ((decision & MISSING_ZERO) != 0) & ~categorical


def _sets(blocks: list[TreeText], arrays: dict[str, np.ndarray], split_offsets: np.ndarray) -> dict[str, np.ndarray]:
    """The sets of categories of all splits; the threshold of a categorical split is the number of its set."""
    categorical, sets = arrays["categorical"], []
    for block, start, stop in zip(blocks, split_offsets[:-1], split_offsets[1:], strict=True):
        mine = categorical[start:stop]
        if not mine.any():
            sets += [NO_CODES] * int(stop - start)
            continue
        known = _sets_of_tree(block)
        for number, is_set in zip(arrays["threshold"][start:stop], mine, strict=True):
            if is_set and not (number == np.floor(number) and 0 <= number < len(known)):
                raise block.error(
                    f"threshold of tree {block.number} holds {number}; expected the number of one of its {len(known)} "
                    f"sets of categories; {REMEDY}",
                    "threshold",
                )
            sets.append(known[int(number)] if is_set else NO_CODES)
    sizes = [len(codes) for codes in sets]
    return {
        "threshold": np.where(categorical, 0.0, arrays["threshold"]),
        "set_offsets": starts_of(sizes),
        "set_codes": np.concatenate([NO_CODES, *sets]),
    }


def _sets_of_tree(block: TreeText) -> list[np.ndarray]:
    """The sets of categories of one tree, as LightGBM numbers them."""
    fields, numbers = block.fields(), []
    for key in ("cat_boundaries", "cat_threshold"):
        words = fields.get(key, "").split()
        if not words or not all(word.isascii() and word.isdigit() and len(word) <= 10 for word in words):
            raise block.error(f"{key} of tree {block.number} are not integers; {REMEDY}", key)
        numbers.append(np.array([int(word) for word in words], np.int64))
    boundaries, bits = numbers
    if boundaries[0] != 0 or (np.diff(boundaries) < 0).any() or boundaries[-1] != len(bits) or bits.max() >= 1 << 32:
        raise block.error(
            f"cat_boundaries of tree {block.number} do not divide its {len(bits)} words of 32 bits; {REMEDY}",
            "cat_boundaries",
        )
    return [codes_of_words(bits[a:b]) for a, b in pairwise(boundaries.tolist())]
