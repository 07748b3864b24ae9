"""`Forest`: the model. Flat node arrays of all trees, one weight per tree, and how it was trained."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve.data.lists import pieces_of, starts_of
from ranksieve.dtypes import SCORE
from ranksieve.errors import ModelError, param
from ranksieve.forest.model import TrainedModel
from ranksieve.forest.summary import Summary, tree_summary
from ranksieve.text_formats import counted

if TYPE_CHECKING:
    from ranksieve.forest.category_tests import CategoryTests
    from ranksieve.forest.contributions import Contributions
    from ranksieve.forest.gpu import GpuScorer
    from ranksieve.forest.scorer import Scorer


NO_SPLITS, NO_CODES = np.empty(0, np.bool_), np.empty(0, np.int64)


@dataclass(frozen=True, repr=False)
class Forest(TrainedModel):
    """Binary regression trees in flat arrays.

    Tree t owns the splits `split_offsets[t]:split_offsets[t + 1]` and the leaves `leaf_offsets[t]:leaf_offsets[t + 1]`
    (one leaf more than splits). Split 0 of a tree is its root. A child >= 0 is a split of the same tree, a child < 0
    is leaf `~child`. A document goes left when `x[feature] <= threshold`; NaN goes left where `default_left` is set.
    Where `zero_missing` is set, zeros are treated as NaN (LightGBM's `zero_as_missing`).
    Where `categorical` is set, x is the number of a category: a document goes left when its whole part is one of
    `set_codes[set_offsets[split]:set_offsets[split + 1]]`, NaN goes as above, and all other categories go right.
    A document's score is the sum over trees, in order, of `weights[t] * leaf_values[leaf]`, each product rounded once.

    Examples
    --------
    >>> import ranksieve as rs
    >>> data = rs.synth.cubic(20)
    >>> forest = rs.train(data, trees=5, leaves=4)
    >>> forest
    Forest(5 trees of up to 4 leaves, 50 features)
    >>> forest.predict(data).shape, forest.first(3).n_trees
    ((1000,), 3)
    """

    feature: np.ndarray  # int32 per split
    threshold: np.ndarray  # float64 per split
    left: np.ndarray  # int32 per split
    right: np.ndarray  # int32 per split
    default_left: np.ndarray  # bool per split
    zero_missing: np.ndarray  # bool per split
    gain: np.ndarray  # float64 per split
    split_count: np.ndarray  # int64 per split: training documents that passed
    leaf_values: np.ndarray  # float64 per leaf, learning rate included
    leaf_count: np.ndarray  # int64 per leaf
    leaf_weight: np.ndarray  # float64 per leaf: sum of second derivatives
    split_offsets: np.ndarray  # int64, n_trees + 1
    leaf_offsets: np.ndarray  # int64, n_trees + 1
    weights: np.ndarray  # float64 per tree
    feature_names: tuple[str, ...]
    info: Mapping[str, Any] = field(default_factory=dict)  # JSON-able: parameters, history, versions
    categorical: np.ndarray = field(default_factory=lambda: NO_SPLITS)  # bool per split; none where it is left out
    set_offsets: np.ndarray = field(default_factory=lambda: NO_CODES)  # int64, n_splits + 1
    set_codes: np.ndarray = field(default_factory=lambda: NO_CODES)  # int64, ascending in a set: what goes left

    def __post_init__(self) -> None:
        if len(self.set_offsets) != len(self.feature) + 1:  # left out: there are only numerical splits
            object.__setattr__(self, "categorical", np.zeros(len(self.feature), np.bool_))
            object.__setattr__(self, "set_offsets", np.zeros(len(self.feature) + 1, np.int64))

    def __repr__(self) -> str:
        largest = int(self.n_leaves.max(initial=0))
        return f"Forest({counted(tree=self.n_trees)} of up to {counted(leaf=largest, feature=self.n_features)})"

    @property
    def n_trees(self) -> int:
        return len(self.weights)

    @property
    def n_leaves(self) -> np.ndarray:
        """Leaves of each tree."""
        return np.diff(self.leaf_offsets)

    @property
    def size(self) -> str:
        """How large it is, in words."""
        return counted(tree=self.n_trees)

    @cached_property
    def has_categories(self) -> bool:
        """Whether any split is categorical."""
        return bool(self.categorical.any())

    def set_of(self, split: int) -> np.ndarray:
        """The categories that a categorical split sends left, ascending."""
        return self.set_codes[self.set_offsets[split] : self.set_offsets[split + 1]]

    def split_counts(self) -> np.ndarray:
        """The number of splits by each feature."""
        return np.bincount(self.feature, minlength=self.n_features)

    def gain_shares(self) -> np.ndarray:
        """The share of each feature in the gain of all splits."""
        gains = np.bincount(self.feature, weights=self.gain, minlength=self.n_features)
        return np.asarray(gains / (gains.sum() or 1.0))

    def own_summary(self) -> Summary:
        """Its trees and leaves, and the share of each feature in the gain."""
        return tree_summary(self)

    def scaled_leaf_values(self) -> np.ndarray:
        """Leaf values with the tree weights multiplied in: a score is the sum of these."""
        return np.asarray(self.leaf_values * np.repeat(self.weights, self.n_leaves))

    def take(self, trees: Sequence[int] | np.ndarray) -> Forest:
        """The forest of some trees, by number, in the given order."""
        trees = np.asarray(trees, dtype=np.int64)
        if len(trees) and (trees.min() < 0 or trees.max() >= self.n_trees):
            raise ModelError(f"tree {int(trees.max())} does not exist; the forest has {self.n_trees}")
        split_rows, split_offsets = pieces_of(self.split_offsets, trees)
        leaf_rows, leaf_offsets = pieces_of(self.leaf_offsets, trees)
        code_rows, set_offsets = pieces_of(self.set_offsets, split_rows)
        return replace(
            self,
            **{name: getattr(self, name)[split_rows] for name in SPLIT_ARRAYS},
            **{name: getattr(self, name)[leaf_rows] for name in LEAF_ARRAYS},
            split_offsets=split_offsets,
            leaf_offsets=leaf_offsets,
            set_offsets=set_offsets,
            set_codes=self.set_codes[code_rows],
            weights=self.weights[trees],
        )

    def first(self, n_trees: int) -> Forest:
        """The forest of the first `n_trees` trees."""
        return self.take(np.arange(min(n_trees, self.n_trees)))

    def reweighted(self, weights: np.ndarray) -> Forest:
        """The same trees with other weights."""
        weights = np.array(weights, dtype=SCORE)
        if weights.shape != self.weights.shape:
            raise ModelError(f"got {len(weights)} weights for {self.n_trees} trees; give one per tree")
        return replace(self, weights=weights)

    def predict(
        self,
        X: Any,
        *,
        trees: int | None = None,
        threads: int | None = None,
        dtype: Any = SCORE,
        contributions: bool = False,
        device: str = "cpu",
    ) -> np.ndarray:
        """Scores of documents: the sum over trees, in order, in float64, for any batch size and thread count.

        Parameters
        ----------
        X : Dataset, array, sparse matrix or table
            One row per document; a single document may be one-dimensional. float64 is compared as float64. A data set
            is scored by its float32 features, as in training; the scores are in the order in which the rows were given.
        trees : int, optional
            Use only the first trees, this many; all by default.
        threads : int, optional
            All cores by default.
        dtype : float64 or float32
        contributions : bool
            Return the contribution of each feature to each score (exact path-dependent TreeSHAP), and the expected
            score last: an array (n_docs, n_features + 1) whose rows add up to the scores.
        device : str
            `cpu`, `cuda` (an NVIDIA GPU) or `auto` (a GPU where there is one); the scores are the same. Arrays on the
            GPU (CuPy, PyTorch, anything with `__cuda_array_interface__`) are not copied, and their scores stay there.

        Examples
        --------
        >>> import numpy as np
        >>> empty_forest(["a", "b"]).predict(np.ones((3, 2))).tolist()
        [0.0, 0.0, 0.0]
        """
        if contributions:
            forest = self if trees is None else self.first(trees)
            return forest._contributions.predict(X, threads=threads).astype(dtype, copy=False)
        if device != "cpu":
            from ranksieve.cuda.device import is_chosen

            if self.has_categories and device == "cuda":
                raise ModelError(
                    "the model splits by categories, which are not scored on a GPU; use ", param("device", "cpu")
                )
            if not self.has_categories and is_chosen(device):
                scores: np.ndarray = self._gpu_scorer.predict(X, trees=trees, dtype=dtype)
                return scores
        return self._scorer.predict(X, trees=trees, threads=threads, dtype=dtype)

    def staged_predict(self, X: Any, *, every: int = 1, threads: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """Scores by the first `every`, `2 * every`, … trees, and finally by all: pairs (number of trees, scores).

        Examples
        --------
        >>> import numpy as np
        >>> list(empty_forest(["a"]).staged_predict(np.ones((3, 1))))
        []
        """
        return self._scorer.staged_predict(X, every=every, threads=threads)

    def predict_leaves(self, X: Any, *, threads: int | None = None) -> np.ndarray:
        """The leaf of each document in each tree, counted within the tree: an array (n_docs, n_trees).

        Examples
        --------
        >>> import numpy as np
        >>> empty_forest(["a"]).predict_leaves(np.ones((3, 1))).shape
        (3, 0)
        """
        return self._scorer.predict_leaves(X, threads=threads)

    @cached_property
    def category_tests(self) -> CategoryTests:
        """The categorical splits as kernels evaluate them."""
        from ranksieve.forest.category_tests import CategoryTests

        return CategoryTests(self)

    @cached_property
    def as_numerical(self) -> Forest:
        """The same trees with numerical splits only, for documents that `category_tests.expand` makes."""
        return self.category_tests.numerical() if self.has_categories else self

    @cached_property
    def _scorer(self) -> Scorer:
        """Compiled on first use; a forest is immutable."""
        from ranksieve.forest.scorer import Scorer

        return Scorer(self)

    @cached_property
    def _gpu_scorer(self) -> GpuScorer:
        from ranksieve.forest.gpu import GpuScorer

        return GpuScorer(self)

    @cached_property
    def _contributions(self) -> Contributions:
        from ranksieve.forest.contributions import Contributions

        return Contributions(self)

    def save(
        self, path: str | os.PathLike[str], *, format: str | None = None, missing: str = "nan", nearest: bool = False
    ) -> None:
        """Write the model in our own format (LightGBM text) or another library's; the file appears whole or not at all.

        `lightgbm.Booster(model_file=path)` predicts the same bits as the forest. Tree weights are multiplied into the
        leaf values: a forest read back has weights 1 and the same scores. Equal forests give equal bytes.

        Parameters
        ----------
        path : str or path
            Replaced if it exists. Its name without the extension is the model's name in Solr and C.
        format : str, optional
            `lightgbm` (default), `xgboost`, `elasticsearch` (also OpenSearch), `ranklib`, `quickrank`, `solr`, `vespa`,
            `onnx` or `c`. Without it, the extensions of other formats (.json, .xml, .onnx, .c) are refused.
        missing : str
            What missing values of served documents are. `nan`: each split sends them left or right, which RankLib
            and QuickRank cannot express. `zero`: they count as 0. `never`: no value is missing.
        nearest : bool
            Solr adds 1e-6 to thresholds. True writes the nearest possible threshold below where it cannot express one.

        Raises
        ------
        ModelError
            The format cannot express the model, the arrays do not make trees, or a leaf value is not finite.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     empty_forest(["bm25"]).save(f"{folder}/model.json", format="xgboost")
        """
        from ranksieve.forest.formats.model_files import save

        save(self, path, format=format, missing=missing, nearest=nearest)


SPLIT_ARRAYS = {
    "feature": np.int32,
    "threshold": np.float64,
    "left": np.int32,
    "right": np.int32,
    "default_left": np.bool_,
    "zero_missing": np.bool_,
    "categorical": np.bool_,
    "gain": np.float64,
    "split_count": np.int64,
}
LEAF_ARRAYS = {"leaf_values": np.float64, "leaf_count": np.int64, "leaf_weight": np.float64}
DTYPES = {**SPLIT_ARRAYS, **LEAF_ARRAYS}


def check_no_file_name(model: Any) -> None:
    """Refuse the file of a model where the model is expected."""
    if isinstance(model, str | os.PathLike):
        raise ModelError(f"{os.fspath(model)!r} is a file name; give the model, as rs.load returns it")


def forest_of(model: Any) -> Forest:
    """A model, or the model of a fitted estimator, if it is a forest; others are refused."""
    check_no_file_name(model)
    forest = getattr(model, "model_", model)
    if not isinstance(forest, Forest):
        if reason := getattr(forest, "not_a_forest", None):  # it has trees, but not on features alone
            raise ModelError(f"the model {reason()}")
        raise ModelError(f"{type(forest).__name__} is not a forest; only forests have trees and contributions")
    return forest


def empty_forest(feature_names: Sequence[str], info: Mapping[str, Any] | None = None) -> Forest:
    """A forest without trees: every document scores 0."""
    arrays: dict[str, Any] = {name: np.empty(0, dtype) for name, dtype in DTYPES.items()}
    offsets = np.zeros(1, np.int64)
    return Forest(
        **arrays,
        split_offsets=offsets,
        leaf_offsets=offsets,
        weights=np.empty(0),
        feature_names=tuple(feature_names),
        info=dict(info or {}),
    )


def concatenate(forests: Sequence[Forest]) -> Forest:
    """One forest whose score is the sum of the given ones' scores; they must share their features.

    Names and info are those of the last: boosting continues a model by appending trees.
    """
    last = forests[-1]
    for forest in forests:
        if forest.feature_names != last.feature_names:
            raise ModelError("forests with different features cannot be joined")
        if forest.has_categories and forest.categories != last.categories:
            raise ModelError(
                "forests with different categories cannot be joined; train both on data with the same ones"
            )
    arrays: dict[str, Any] = {name: np.concatenate([getattr(f, name) for f in forests]) for name in DTYPES}
    return replace(
        last,
        **arrays,
        split_offsets=_joined([f.split_offsets for f in forests]),
        leaf_offsets=_joined([f.leaf_offsets for f in forests]),
        set_offsets=_joined([f.set_offsets for f in forests]),
        set_codes=np.concatenate([f.set_codes for f in forests]),
        weights=np.concatenate([f.weights for f in forests]),
    )


def _joined(offsets: Sequence[np.ndarray]) -> np.ndarray:
    return starts_of(np.concatenate([np.diff(o) for o in offsets]))
