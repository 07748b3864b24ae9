"""The rankers that are not one boosted forest, and their parameters.

Modules that train them are imported when they are used: help texts and checks of parameters need the parameters alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ranksieve.parameter_table import FORESTS, GROWING
from ranksieve.rules import RANKERS, Traits, choice, integer, parameter, switch

if TYPE_CHECKING:
    from ranksieve.boosting.job import TrainingJob
    from ranksieve.forest.forest import Forest
    from ranksieve.models.grades import Grades
    from ranksieve.models.linear import Linear
    from ranksieve.models.net import Net


@RANKERS.register("feature")
@dataclass(frozen=True)
class FeatureRanker:
    """One feature alone, such as the first stage's score."""

    feature: str = parameter("first-stage", "Feature to rank by", "a feature's name, or first-stage", bool)

    shared: ClassVar[tuple[str, ...]] = ()
    file: ClassVar[str] = "JSON"
    traits: ClassVar[Traits] = Traits(uses_categories=True)

    def __call__(self, job: TrainingJob) -> Linear:
        from ranksieve.rankers.feature import rank_by_feature

        return rank_by_feature(job, self.feature)


@RANKERS.register("lambdarank")
@dataclass(frozen=True)
class LambdaRank:
    """A neural net of two layers that fits λ-gradients; `early_stopping` counts epochs."""

    hidden: int = integer(10, "Hidden units of the net", 1)
    epochs: int = integer(100, "Largest number of passes over the queries", 1)

    shared: ClassVar[tuple[str, ...]] = ("learning_rate", "truncation", "normalize", "early_stopping", "valid_fraction")
    file: ClassVar[str] = "JSON"
    traits: ClassVar[Traits] = Traits(uses_gains=True)

    def __call__(self, job: TrainingJob) -> Net:
        from ranksieve.rankers.lambdarank import train_net

        return train_net(job, self)


@RANKERS.register("lightgbm")
@dataclass(frozen=True)
class LightgbmRanker:
    """LightGBM's λ-MART (extra `lightgbm`)."""

    shared: ClassVar[tuple[str, ...]] = (
        "trees", "leaves", "learning_rate", "early_stopping", "valid_fraction", "min_docs", "min_hessian", "l2",
        "max_depth", "feature_fraction", "row_fraction", "max_bins", "truncation", "normalize", "position_l2",
        "max_cat_threshold", "max_cat_to_onehot", "cat_smooth", "cat_l2", "min_docs_per_group",
    )  # fmt: skip
    file: ClassVar[str] = "LightGBM text"
    traits: ClassVar[Traits] = Traits(uses_gains=True, uses_categories=True, learns_biases=True, library="LightGBM")

    def __call__(self, job: TrainingJob) -> Forest:
        from ranksieve.rankers.lightgbm import train_lightgbm

        return train_lightgbm(job)


@RANKERS.register("mcrank")
@dataclass(frozen=True)
class McRank:
    """One forest per grade; `trees` counts rounds."""

    shared: ClassVar[tuple[str, ...]] = (*GROWING, "learning_rate")
    file: ClassVar[str] = "LightGBM text, `multiclass`"
    link: ClassVar[str] = "multinomial"

    def __call__(self, job: TrainingJob) -> Grades:
        from ranksieve.rankers.mcrank import train_grades

        return train_grades(job, self.link)


@RANKERS.register("mcrank-ordinal")
@dataclass(frozen=True)
class OrdinalMcRank(McRank):
    """One forest per grade but the highest; `trees` counts rounds."""

    file: ClassVar[str] = "LightGBM text, `multiclassova`"
    link: ClassVar[str] = "cumulative"


@RANKERS.register("ranksvm")
@dataclass(frozen=True)
class RankSvm:
    """A linear model with a squared hinge loss on every pair of different grades within a query."""

    c: float = parameter(
        1.0, "Weight of the loss, C of scikit-learn's LinearSVC", "a number above 0", lambda value: 0 < value < np.inf
    )

    shared: ClassVar[tuple[str, ...]] = ()
    file: ClassVar[str] = "JSON"

    def __call__(self, job: TrainingJob) -> Linear:
        from ranksieve.rankers.ranksvm import train_ranksvm

        return train_ranksvm(job, self.c)


@RANKERS.register("xcleaver")
@dataclass(frozen=True)
class XCleaver:
    """A forest that is grown, pruned and re-weighted in rounds; it also uses the parameters of its `base`."""

    base: str = choice("lambdamart", "Algorithm that grows the trees", tuple(FORESTS))
    grow: int = integer(400, "Trees grown per round", 1)
    rate: float = parameter(0.75, "Share of the trees removed per round", "a number in [0, 1)", lambda v: 0 <= v < 1)
    global_: bool = switch(False, "Prune and re-weight all trees each round, not only the new ones")

    shared: ClassVar[tuple[str, ...]] = ("strategy",)
    file: ClassVar[str] = "LightGBM text"
    traits: ClassVar[Traits] = Traits(has_base=True)

    def __call__(self, job: TrainingJob) -> Forest:
        from ranksieve.pruning.xcleaver import train_in_rounds

        return train_in_rounds(job)
