"""`FirstStage`: how candidates are scored. BM25F, BM25, query likelihood and DFR are parameters of one kernel.

`dense` compares vectors instead; `hybrid` fuses the lists of BM25F and `dense`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ranksieve.errors import DataError, ParameterError, ParamName, check_choice, param
from ranksieve.files import atomic_path

if TYPE_CHECKING:
    from ranksieve.retrieval.index import Index
    from ranksieve.retrieval.queries import Prepared


DENSE, HYBRID = "dense", "hybrid"


class Setting(ParamName):
    """A parameter of `FirstStage` in a message; the command line sets all but the weights with `--set`."""

    @property
    def flag(self) -> str:
        return super().flag if self.name == "weights" else f"--set {self}"


class Scoring(NamedTuple):
    """What the retrieval kernel needs of a model, apart from the terms of queries."""

    factors: np.ndarray  # (fields, documents): what one occurrence counts
    steps: np.ndarray  # per document
    bases: np.ndarray  # per document, added once per query term
    logarithmic: bool


@dataclass(frozen=True)
class FirstStage:
    """A first-stage model and its parameters; those that the model does not have are not used.

    Parameters
    ----------
    model
        "bm25f"; or, on the fields put together as one text, "bm25", "dirichlet" and "jelinek-mercer" (query
        likelihood), and "dfr" (InL2); or by vectors, "dense", and "hybrid", which fuses the best documents of "bm25f"
        and of "dense".
    weights
        How much an occurrence in each field counts; 1 for fields not named. Document frequencies are those of all
        fields together, or of the field if only one has a weight above 0.
    k1, b
        Saturation and length normalisation of BM25(F); b may be given per field.
    k3
        Saturation of repeated query terms in BM25(F).
    mu
        Prior of Dirichlet smoothing.
    mix
        Share of the collection in Jelinek–Mercer smoothing.
    c
        Length normalisation of DFR.
    ef
        For "dense" and "hybrid": 0 compares a query with all documents. Above 0 the index's HNSW graph is searched with
        this size of the candidate list: faster, and some of the nearest documents may be missed.
    dense_share
        For "hybrid": the weight of "dense" in a convex combination of scores, each scaled from 0 to 1 within its list.
        Reciprocal rank fusion if None.
    rrf_k
        For "hybrid": the constant of reciprocal rank fusion.
    pool
        For "hybrid": how many documents of each list are fused; more where more candidates are wanted.

    Examples
    --------
    >>> FirstStage(model="bm25f", weights={"title": 3.0}, k1=0.9).k1
    0.9
    """

    model: str = "bm25f"
    weights: Mapping[str, float] = field(default_factory=dict)
    k1: float = 1.2
    b: float | Mapping[str, float] = 0.75
    k3: float = 8.0
    mu: float = 1000.0
    mix: float = 0.5
    c: float = 1.0
    ef: int = 0
    dense_share: float | None = None
    rrf_k: float = 60.0
    pool: int = 1000

    def __post_init__(self) -> None:
        check_choice("model", self.model, MODELS)
        if not isinstance(self.weights, Mapping):
            raise ParameterError(param("weights"), f" is {self.weights!r}; expected numbers by the names of fields")
        for name, (good, expected) in RANGES.items():
            given = getattr(self, name)
            for value in given.values() if isinstance(given, Mapping) else [given]:
                if value is None and name == "dense_share":
                    continue
                if not (isinstance(value, int | float) and good(value)):
                    raise ParameterError(Setting(name), f" is {repr(value)[:40]}; expected {expected}")

    def as_dict(self) -> dict[str, Any]:
        """All parameters."""
        return {
            item.name: dict(value) if isinstance(value := getattr(self, item.name), Mapping) else value
            for item in fields(self)
        }

    def used(self) -> dict[str, Any]:
        """The model, the weights of fields, and the parameters that the model has."""
        names = ("model", "weights", *MODELS[self.model].parameters)
        return {name: value for name, value in self.as_dict().items() if name in names}

    def __str__(self) -> str:
        """Such as `bm25f (weights title=2; k1=1.2,b=0.75,k3=8)`."""
        parts = [f"weights {_assignments(self.weights)}"] if self.weights and self.uses_words else []
        parts += filter(None, [_assignments(self._settings())])
        return f"{self.model} ({'; '.join(parts)})" if parts else self.model

    def flags(self) -> str:
        """The same on the command line: `--model bm25f --weights title=2 --set k1=1.2,b=0.75,k3=8`."""
        weights = f" --weights {_assignments(self.weights)}" if self.weights and self.uses_words else ""
        settings = _assignments(self._settings())
        return f"--model {self.model}{weights}{f' --set {settings}' if settings else ''}"

    @property
    def uses_words(self) -> bool:
        return self.model != DENSE

    @property
    def uses_vectors(self) -> bool:
        return self.model in (DENSE, HYBRID)

    def _settings(self) -> dict[str, float]:
        """The model's parameters, without those that are off; `b.title` is the one of a field."""
        settings: dict[str, float] = {}
        for name in MODELS[self.model].parameters:
            value = getattr(self, name)
            if value is None or (name == "ef" and not value) or (name == "rrf_k" and self.dense_share is not None):
                continue
            settings |= (
                {f"{name}.{key}": v for key, v in value.items()} if isinstance(value, Mapping) else {name: value}
            )
        return settings

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the parameters to a JSON file, which `load` and the option `--stage` read."""
        with atomic_path(path) as temporary:
            temporary.write_text(json.dumps({"first_stage": self.used()}, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FirstStage:
        """The first stage that `save` or `retrieve --tune QRELS --save-stage FILE` has written."""
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))["first_stage"]
            return cls(**values)
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror or error}); give the name of a file") from error
        except ParameterError as error:
            raise error.with_prefix(f"{path}: ") from error
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise DataError(
                f"{path}: is not a first stage ({type(error).__name__}: {error}); write one with: ranksieve retrieve "
                "INDEX QUERIES --tune QRELS --save-stage FILE --out RUN"
            ) from error

    def field_values(self, fields: Sequence[str], name: str) -> np.ndarray:
        """`weights` or `b` for every field of an index."""
        value, default = getattr(self, name), DEFAULTS[name]
        given: Mapping[str, float] = value if isinstance(value, Mapping) else {}
        if not isinstance(value, Mapping):
            default = float(value)
        unknown = [key for key in given if key not in fields]
        if unknown:
            raise ParameterError(
                Setting(name),
                f" has the field {unknown[0]!r}, which the index does not have; its fields: {', '.join(fields)}",
            )
        values = np.array([given.get(key, default) for key in fields], dtype=np.float64)
        if name == "weights" and not values.any():
            raise ParameterError("all fields have weight 0; give at least one a weight above 0")
        return values

    def scoring(self, index: Index) -> Scoring:
        """The model on an index."""
        return MODELS[self.model].scoring(self, index)

    def term_values(self, index: Index, prepared: Prepared) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which fields count for each query term, and its scale and rate."""
        weights = self.field_values(index.field_names, "weights")
        masks = (prepared.weights > 0) & (weights > 0)
        repeats = np.where(masks, prepared.weights, 0.0).max(axis=1, initial=0.0)
        column = int(np.argmax(weights)) if np.count_nonzero(weights) == 1 else -1
        frequency = index.document_frequency[prepared.terms, column]
        share = index.collection_frequency[prepared.terms, :-1] @ weights / max(1.0, index.total_lengths[:-1] @ weights)
        scales, rates = MODELS[self.model].terms(self, index.n_docs, frequency, np.maximum(share, 1e-12), repeats)
        return masks, np.ascontiguousarray(scales, dtype=np.float64), np.ascontiguousarray(rates, dtype=np.float64)


def _lengths(stage: FirstStage, index: Index) -> tuple[np.ndarray, np.ndarray]:
    """Weights as a factor per field and document, and the weighted lengths of documents relative to their mean."""
    weights = stage.field_values(index.field_names, "weights")
    lengths = weights @ index.lengths[:-1]
    return np.repeat(weights[:, None], index.n_docs, axis=1), lengths / max(lengths.mean(), 1e-12)


def _bm25f(stage: FirstStage, index: Index) -> Scoring:
    weights, b = stage.field_values(index.field_names, "weights"), stage.field_values(index.field_names, "b")
    lengths = index.lengths[:-1]
    means = np.maximum(lengths.mean(axis=1), 1e-12)
    factors = weights[:, None] / (1 - b[:, None] + b[:, None] * lengths / means[:, None] + 1e-12)
    return _scoring(factors, np.full(index.n_docs, stage.k1))


def _bm25(stage: FirstStage, index: Index) -> Scoring:
    if isinstance(stage.b, Mapping):
        raise ParameterError("bm25 has one b for the whole text; give one number, or use the model bm25f")
    factors, relative = _lengths(stage, index)
    return _scoring(factors, stage.k1 * (1 - stage.b + stage.b * relative))


def _dfr(stage: FirstStage, index: Index) -> Scoring:
    factors, relative = _lengths(stage, index)
    return _scoring(factors, 1 / np.log2(1 + stage.c / np.maximum(relative, 1e-12)))


def _dirichlet(stage: FirstStage, index: Index) -> Scoring:
    factors, _ = _lengths(stage, index)
    lengths = stage.field_values(index.field_names, "weights") @ index.lengths[:-1]
    return _scoring(factors, np.ones(index.n_docs), np.log(stage.mu / (stage.mu + lengths)), logarithmic=True)


def _jelinek_mercer(stage: FirstStage, index: Index) -> Scoring:
    factors, _ = _lengths(stage, index)
    lengths = stage.field_values(index.field_names, "weights") @ index.lengths[:-1]
    return _scoring(factors, 1 / np.maximum(lengths, 1), logarithmic=True)


def _scoring(
    factors: np.ndarray, steps: np.ndarray, bases: np.ndarray | None = None, *, logarithmic: bool = False
) -> Scoring:
    bases = np.zeros(len(steps)) if bases is None else bases
    factors, steps, bases = (np.ascontiguousarray(array, dtype=np.float32) for array in (factors, steps, bases))
    return Scoring(factors, steps, bases, logarithmic)


def _bm25_terms(stage: FirstStage, n_docs: int, frequency: Any, share: Any, repeats: Any) -> tuple[Any, Any]:
    saturated = repeats * (stage.k3 + 1) / np.maximum(stage.k3 + repeats, 1e-12)
    return saturated * idf(n_docs, frequency) * (stage.k1 + 1), np.zeros(len(repeats))


def _dfr_terms(stage: FirstStage, n_docs: int, frequency: Any, share: Any, repeats: Any) -> tuple[Any, Any]:
    return repeats * np.log2((n_docs + 1) / (frequency + 0.5)), np.zeros(len(repeats))


def _dirichlet_terms(stage: FirstStage, n_docs: int, frequency: Any, share: Any, repeats: Any) -> tuple[Any, Any]:
    return repeats, 1 / (stage.mu * share)


def _jelinek_mercer_terms(stage: FirstStage, n_docs: int, frequency: Any, share: Any, repeats: Any) -> tuple[Any, Any]:
    return repeats, (1 - stage.mix) / (stage.mix * share)


class _RetrievalModel(NamedTuple):
    scoring: Callable[[FirstStage, Any], Scoring]
    terms: Callable[..., tuple[Any, Any]]
    parameters: tuple[str, ...]


MODELS = {  # the words of `hybrid` are scored by BM25F; `dense` has none
    "bm25f": _RetrievalModel(_bm25f, _bm25_terms, ("k1", "b", "k3")),
    "bm25": _RetrievalModel(_bm25, _bm25_terms, ("k1", "b", "k3")),
    "dirichlet": _RetrievalModel(_dirichlet, _dirichlet_terms, ("mu",)),
    "jelinek-mercer": _RetrievalModel(_jelinek_mercer, _jelinek_mercer_terms, ("mix",)),
    "dfr": _RetrievalModel(_dfr, _dfr_terms, ("c",)),
    DENSE: _RetrievalModel(_bm25f, _bm25_terms, ("ef",)),
    HYBRID: _RetrievalModel(_bm25f, _bm25_terms, ("k1", "b", "k3", "ef", "dense_share", "rrf_k", "pool")),
}

LARGEST = sys.float_info.max  # an integer may be larger
DEFAULTS = {"weights": 1.0, "b": 0.75}  # values for fields that are not named
RANGES: dict[str, tuple[Callable[[float], bool], str]] = {
    "weights": (lambda value: 0 <= value <= LARGEST, "numbers from 0"),
    "k1": (lambda value: 0 <= value <= LARGEST, "a number from 0"),
    "b": (lambda value: 0 <= value <= 1, "a number from 0 to 1"),
    "k3": (lambda value: 0 <= value <= LARGEST, "a number from 0"),
    "mu": (lambda value: 0 < value <= LARGEST, "a number above 0"),
    "mix": (lambda value: 0 < value < 1, "a number between 0 and 1"),
    "c": (lambda value: 0 < value <= LARGEST, "a number above 0"),
    "ef": (lambda value: 0 <= value < 1 << 31 and value == int(value), "an integer from 0"),
    "dense_share": (lambda value: 0 <= value <= 1, "a number from 0 to 1, or None"),
    "rrf_k": (lambda value: 0 <= value <= LARGEST, "a number from 0"),
    "pool": (lambda value: 1 <= value < 1 << 31 and value == int(value), "an integer from 1"),
}


def _assignments(values: Mapping[str, float]) -> str:
    return ",".join(f"{name}={value:g}" for name, value in values.items())


def as_first_stage(stage: FirstStage | str | os.PathLike[str] | None) -> FirstStage | None:
    """A first stage given as such, as the name of a model, or as a file that `FirstStage.save` has written."""
    if stage is None or isinstance(stage, FirstStage):
        return stage
    is_file = isinstance(stage, os.PathLike) or (stage not in MODELS and os.path.isfile(stage))
    return FirstStage.load(stage) if is_file else FirstStage(str(stage))


def idf(n_docs: int, document_frequency: np.ndarray) -> np.ndarray:
    """Robertson's inverse document frequency, kept positive: `log(1 + (N - df + 0.5) / (df + 0.5))`."""
    return np.log1p((n_docs - document_frequency + 0.5) / (document_frequency + 0.5))
