"""Every training parameter: one table that the Python API, the estimator, TOML files and the command line share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranksieve.dtypes import MAX_BINS
from ranksieve.errors import ParameterError, did_you_mean
from ranksieve.heeding import EVERYWHERE, OPTIMAL, RANKERS, SELECTING, of_boosting
from ranksieve.text_formats import AUTO, are_gains, are_signs, features_text, is_monotone, numbers_text, signs_text

__all__ = ["Params"]

MAX_LEAVES = 65_536  # leaf numbers have two bytes where trees are scored

ALGORITHMS = {
    # name: (selection, objective, grower)
    "lambdamart": ("everything", "lambda", "best-first"),
    "selgb": ("top", "lambda", "best-first"),
    "sieve": ("adaptive", "lambda", "best-first"),  # measured beside selgb in docs/selections.md
    "negsgb": ("random", "lambda", "best-first"),
    "sgb": ("rows", "lambda", "best-first"),
    "mart": ("everything", "squared", "best-first"),
    "gbrt": ("everything", "squared", "best-first"),  # another name of MART
    "oblivious-lambdamart": ("everything", "lambda", "oblivious"),
    "oblivious-mart": ("everything", "squared", "oblivious"),
}
STRATEGIES = ("last", "random", "skip", "low-weights", "quality-loss", "quality-loss-once", "score-loss")


def _param(
    default: Any, help: str, check: Callable[[Any], bool], expected: str, *, convert: Callable[[Any], Any] | None = None
) -> Any:
    return field(default=default, metadata={"help": help, "check": check, "expected": expected, "convert": convert})


@dataclass(frozen=True)
class _OneOf:
    """A check that a value is one of some names, which knows them for advice."""

    names: tuple[str, ...]

    def __call__(self, value: Any) -> bool:
        return value in self.names


def _one_of(*names: str) -> tuple[Callable[[Any], bool], str]:
    return _OneOf(names), "one of " + ", ".join(names)


def _positive_int(value: Any) -> bool:
    return isinstance(value, int) and value >= 1


def _count(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def _fraction(value: Any) -> bool:
    return 0 < value <= 1


def _not_negative(value: Any) -> bool:
    return 0 <= value < float("inf")


def _range(value: Any) -> bool:
    low, high = value
    return -float("inf") < low < high < float("inf")


@dataclass(frozen=True, kw_only=True)
class Params:
    """Parameters of `train`; names are the same in Python, TOML (with dashes) and on the command line.

    Examples
    --------
    >>> Params(trees=300).trees, Params().algo
    (300, 'selgb')
    """

    algo: str = _param("selgb", "Algorithm", *_one_of(*ALGORITHMS, *RANKERS))
    trees: int = _param(1000, "Most trees to grow (mcrank: rounds)", _positive_int, "a whole number from 1")
    leaves: int = _param(64, "Leaves of a tree", lambda v: isinstance(v, int) and 2 <= v <= MAX_LEAVES,
                         f"a whole number from 2 to {MAX_LEAVES}")  # fmt: skip
    learning_rate: float = _param(0.05, "Shrinkage of each tree; step of lambdarank", _fraction, "a number in (0, 1]")
    step: str = _param("shrinkage", "How far to go with a tree: shrinkage, or the optimal step for the metric",
                       *_one_of("shrinkage", "optimal"))  # fmt: skip
    step_range: tuple[float, float] = _param((0.1, 5.0), "Smallest and largest optimal step", _range,
                                             "two numbers, the smaller one first", convert=tuple)  # fmt: skip
    step_on: str = _param("train", "Lists for which a step is optimal: the training or the first validation set",
                          *_one_of("train", "valid"))  # fmt: skip
    step_shrinkage: float = _param(1.0, "Factor of the optimal step", _fraction, "a number in (0, 1]")
    negatives: float = _param(0.01, "Share of a query's negatives (sgb: of all rows) kept", _fraction, "in (0, 1]")
    min_negatives: int = _param(
        -1, "Fewest negatives kept of a query that has them (-1 means 1, or 20 for adaptive and progress)",
        lambda v: isinstance(v, int) and v >= -1, "a whole number from -1",
    )  # fmt: skip
    max_negatives: float = _param(0.5, "Largest share of a query's negatives adaptive and progress keep",
                                  _fraction, "a number in (0, 1]")  # fmt: skip
    rest: float = _param(0.01, "Second share, of random or lowest ones: top+random, top+bottom, goss",
                         lambda v: 0 <= v <= 1, "a number in [0, 1]")  # fmt: skip
    margin: float = _param(1.5, "How far below the lowest positive negatives still count: adaptive, progress",
                           lambda v: -float("inf") < v < float("inf"), "a number")  # fmt: skip
    selection: str = _param(
        AUTO, "Who teaches a tree: everything, top, random, rows, gradient, adaptive, progress, top+random, "
        "top+bottom, goss, your file.py:function (auto: as the algorithm says)",
        lambda v: isinstance(v, str) and bool(v), "the name of a selection",
    )  # fmt: skip
    every: int = _param(1, "Trees between two selections", _positive_int, "a whole number from 1")
    metric: str = _param("ndcg@10", "Metric that validation reports and early stopping watches", bool, "a metric name")
    early_stopping: int = _param(100, "Stop after this many trees or epochs without gain (0: never)", _count,
                                 "a number from 0")  # fmt: skip
    objective: str = _param("ndcg", "Metric whose λ the trees fit", *_one_of("ndcg", "map", "mrr", "err"))
    truncation: int = _param(
        30, "Ranks that keep their discount in λ (0: the metric's cut-off, -1: all)",
        lambda v: isinstance(v, int) and v >= -1, "a whole number from -1",
    )  # fmt: skip
    normalize: bool = _param(True, "Normalise λ by score distance and per query, as LightGBM does",
                             lambda v: isinstance(v, bool), "true or false")  # fmt: skip
    first_tree: str = _param("lambdas", "What the first tree fits", *_one_of("lambdas", "labels"))
    gain: str = _param(AUTO, "Split gain: variance, or newton, better for lambdamart on long lists with few positives "
                       "(auto: newton for sieve, else variance)", *_one_of(AUTO, "variance", "newton"))  # fmt: skip
    min_docs: int = _param(5, "Fewest documents in a leaf", _positive_int, "a whole number from 1")
    min_hessian: float = _param(0.0, "Smallest sum of second derivatives in a leaf", _not_negative, "a number from 0")
    l2: float = _param(1.0, "L2 regularisation of leaf values", _not_negative, "a number from 0")
    max_depth: int = _param(0, "Deepest leaf (0: no limit)", _count, "a whole number from 0")
    collapse: float = _param(
        0.0, "Collapse a tree's deepest leaves until its depth is within this share of a balanced tree's (0: never)",
        _not_negative, "a number from 0",
    )  # fmt: skip
    feature_fraction: float = _param(1.0, "Share of the features each tree may use", _fraction, "a number in (0, 1]")
    features: str = _param(
        "*", "Features to learn from: names, globs, numbers from 1, ranges, with commas; ! takes away",
        lambda v: isinstance(v, str) and bool(v.strip(" ,")), "names as in 'bm25_*,7,!length'", convert=features_text,
    )  # fmt: skip
    monotone: str = _param(
        "none", "Features along which scores never fall (+1) or never rise (-1)", are_signs,
        "names with signs as in 'bm25_*:+1,spam:-1', or one sign per feature, not a mixture", convert=signs_text,
    )  # fmt: skip
    gains: str = _param(
        AUTO, "Gain of each label from 0 up, in λ of ndcg and in metrics ndcg, dcg and avg-ndcg (auto: 2^label - 1, "
        "or as the metric says)",
        are_gains, "numbers as in '0,1,3,7' that begin with 0 and never fall", convert=numbers_text,
    )  # fmt: skip
    row_fraction: float = _param(1.0, "Share of the rows each tree is grown on; λ are of the whole lists", _fraction,
                                 "a number in (0, 1]")  # fmt: skip
    max_bins: int = _param(MAX_BINS, "Bins of a feature", lambda v: isinstance(v, int) and 2 <= v <= MAX_BINS,
                           f"a whole number from 2 to {MAX_BINS}")  # fmt: skip
    base: str = _param("lambdamart", "Algorithm that grows the trees (xcleaver)", *_one_of(*ALGORITHMS))
    grow: int = _param(400, "Trees grown per round (xcleaver)", _positive_int, "a whole number from 1")
    rate: float = _param(0.75, "Share of them removed (xcleaver)", lambda v: 0 <= v < 1, "a number in [0, 1)")
    strategy: str = _param("quality-loss", "Which of them are removed (xcleaver)", *_one_of(*STRATEGIES))
    global_: bool = _param(False, "Prune and weigh all trees each round, not only the new ones (xcleaver)",
                           lambda v: isinstance(v, bool), "true or false")  # fmt: skip
    c: float = _param(1.0, "Weight of the pair losses (ranksvm)", lambda v: 0 < v < float("inf"), "a number above 0")
    hidden: int = _param(10, "Hidden units of the net (lambdarank)", _positive_int, "a whole number from 1")
    epochs: int = _param(100, "Most passes over the queries (lambdarank)", _positive_int, "a whole number from 1")
    feature: str = _param("first-stage", "What to rank by (feature)", lambda v: isinstance(v, str) and bool(v),
                          "a feature's name, or first-stage")  # fmt: skip
    threads: int = _param(0, "Threads (0: all cores); the model does not depend on it", _count, "a number from 0")
    seed: int = _param(0, "Seed of everything random", _count, "a whole number from 0")

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if isinstance(value, np.generic):
                value = value.item()
                object.__setattr__(self, item.name, value)
            if isinstance(value, int) and not isinstance(value, bool) and item.type == "float":
                object.__setattr__(self, item.name, float(value))
            try:
                if item.metadata["convert"] is not None:
                    value = item.metadata["convert"](value)
                    object.__setattr__(self, item.name, value)
                good = type(value) is not bool if item.type != "bool" else True
                good = good and bool(item.metadata["check"](value))
            except (TypeError, ValueError, AttributeError):
                good = False
            if not good:
                hint = did_you_mean(value, getattr(item.metadata["check"], "names", ()))
                raise ParameterError(f"{flag(item.name)} is {value!r}; {hint}expected {item.metadata['expected']}")
        if self.step_range[0] < 0 and is_monotone({"params": {"monotone": self.monotone}}):
            raise ParameterError(
                f"--step-range begins at {self.step_range[0]:g}, and with a negative step a tree would break the "
                "promise of --monotone; begin at 0 or above"
            )

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], *, source: str = "parameters") -> Params:
        """Parameters from names with underscores or dashes; unknown ones are refused with the nearest known name."""
        known = [item.name for item in dataclasses.fields(cls)]
        given = {}
        for name, value in values.items():
            plain = name.replace("-", "_")
            plain = plain if plain in known else f"{plain}_" if f"{plain}_" in known else plain
            if plain not in known:
                hint = did_you_mean(plain, known).strip() or f"known: {', '.join(known)}"
                raise ParameterError(f"{source}: unknown parameter {name!r}; {hint}")
            given[plain] = value
        return cls(**given)

    @property
    def heeded(self) -> frozenset[str]:
        """Names of the parameters that count, the algorithm, its selection and its steps being what they are."""
        own = RANKERS.get(self.algo, ())
        if self.algo in (*ALGORITHMS, "xcleaver"):
            rule, objective, _ = ALGORITHMS[self.base if self.algo == "xcleaver" else self.algo]
            own = (*own, *of_boosting(rule if self.selection == AUTO else self.selection, objective, self.step))
        return frozenset((*EVERYWHERE, *own)) - ({"step_on"} if self.algo == "xcleaver" else set())

    def with_heeded_alone(self) -> Params:
        """The same training, what does not count set to its default."""
        return Params(**{name: value for name, value in self.as_dict().items() if name in self.heeded})

    def check_heeded(self, names: Iterable[str] | None = None) -> None:
        """Refuse parameters, some or all, that are set to anything but their default and that training ignores.

        In Python boosted forests only warn of them, since one set of options may go through several of them; X-CLEaVER
        and the rankers that are no forest refuse them.
        """
        idle = self.idle(names)
        if idle:
            raise ParameterError(f"{idle}; leave it out, or choose another algorithm")

    def idle(self, names: Iterable[str] | None = None) -> str:
        """What to say of such parameters; nothing where there are none."""
        idle = [item.name for item in dataclasses.fields(self) if (names is None or item.name in names)
                and item.name not in self.heeded and getattr(self, item.name) != item.default]  # fmt: skip
        if not idle:
            return ""
        if self.algo in (*ALGORITHMS, "xcleaver"):  # which heed too many to tell
            others = "; ".join(f"{flag(name)} is for {self._where_heeded(name)}" for name in idle)
        else:
            others = f"which heeds {', '.join(map(flag, RANKERS[self.algo]))}"
        what = f"--algo={self.algo}" + ("" if self.selection == AUTO else f" with --selection={self.selection}")
        return f"{', '.join(map(flag, idle))}: not for {what}, {others}"

    def _where_heeded(self, name: str) -> str:
        """What has to be chosen for a parameter to count."""
        rules = [rule for rule, names in SELECTING.items() if name in names]
        if rules:
            return f"--selection={'|'.join(rules)}"
        other = "shrinkage" if name == "learning_rate" else "optimal"
        if name in (*OPTIMAL, "learning_rate") and self.step != other:
            return f"--step={other}"
        learners = [algo for algo in (*ALGORITHMS, *RANKERS) if name in Params(algo=algo, step=self.step).heeded]
        return f"--algo={'|'.join(learners)}"

    @property
    def takes_newton_gain(self) -> bool:
        """Whether splits are chosen by the gain with second derivatives."""
        algo = self.base if self.algo == "xcleaver" else self.algo
        return self.gain == "newton" or (self.gain == AUTO and algo == "sieve")

    @property
    def learns_gains(self) -> bool:
        """Whether λ-gradients read `gains`."""
        algo = self.base if self.algo == "xcleaver" else self.algo
        follows = algo in ("lambdarank", "lightgbm") or (algo in ALGORITHMS and ALGORITHMS[algo][1] == "lambda")
        return follows and self.objective == "ndcg"

    def as_dict(self) -> dict[str, Any]:
        """All parameters by name."""
        return dataclasses.asdict(self)


def flag(name: str) -> str:
    """The parameter's spelling on the command line: `min_docs` → `--min-docs`, `global_` → `--global`."""
    return "--" + name.rstrip("_").replace("_", "-")
