"""`Spec`: an experiment, data sets × runs × grids × seeds."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranksieve import __version__
from ranksieve.errors import ParameterError, did_you_mean
from ranksieve.parameter_table import FORESTS, RESOURCES
from ranksieve.params import Params
from ranksieve.rules import RANKERS, parameters_of, traits_of

if TYPE_CHECKING:
    from ranksieve.experiments.data_sets import DataSpec

SHIPPED = (Path(__file__).parent / "specs", Path(__file__).parents[3] / "experiments")  # installed, or a checkout
# Figures and tables by name, with captions; tables have none, as their columns explain them.
FIGURES = {
    "curves": "All trees that were grown, also those after the number that validation lists chose. Means over seeds "
    "and folds.",
    "steps": "The step size that is best for the metric on the lists on which steps are chosen.",
    "table": "",
    "tests": "",
    "sizes": "Above: the mean difference over the queries with lists of this size, with its standard error; above 0 "
    "{first} is better. Pale bars are of fewer than 5 queries. Below: the number of test queries.",
    "heat": "A row is a training query, short lists first; a column is a range of first-stage ranks. Bright: negatives "
    "there were selected for many trees.",
    "cumulative": "The share of all selections of a negative for a tree on first-stage ranks up to each rank.",
    "shared-leaves": "All pairs of negatives of one training query, under each model. Further right, a model "
    "distinguishes negatives less.",
    "shares": "Points are means over samples; the dashed line is the full training set.",
    "efficiency": "The upper left is best: higher quality in less time. Points are choices of the grid.",
    "by-size": "Points are forests of a size: the first trees of a forest, or what is left of a pruned one. Means over "
    "seeds and folds.",
    "speed": "",
    "removed": "The forest from its first tree to its last, in groups of consecutive trees: the share removed of each.",
    "weights": "Mean weight of the remaining trees; 1 is the mean before pruning. In the bars: the share removed.",
    "phases": "Rounds are numbered: a circle after a round has grown its trees, a square after it has pruned and "
    "re-weighted them.",
    "costs": "Percentages are of the time of all rounds.",
}


@dataclass(frozen=True)
class Cell:
    """One training: a data set (and fold), a run with one choice of its grid, and a seed."""

    data: DataSpec
    run: str
    grid: dict[str, Any]  # the values this cell has on the run's grid
    params: Params
    seed: int
    sample: dict[str, Any] | None = None  # train on a part of the rows
    prune: dict[str, Any] | None = None  # train nothing: remove and re-weight trees of `model_cell`'s forest
    model_cell: Cell | None = None  # whose model chooses the sample, or is pruned
    selections: bool = False  # record how often each negative is selected
    shared_leaves: bool = False  # count the leaves that negatives share
    follow_training: bool = False  # the metric on training lists too, tree by tree
    time_scoring: bool = False  # microseconds to score a document
    background: bool = False  # train on the data set's background lists
    init: Cell | None = None  # whose model boosting starts from
    interpolated: tuple[Cell, ...] = ()  # cells whose models are interpolated; nothing is trained
    metrics: tuple[str, ...] = ("ndcg@10",)
    stages: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        """The run with its place on the grid, as `SelGB, negatives 0.01`."""
        return ", ".join([self.run, *(f"{name} {value}" for name, value in self.grid.items())])

    @property
    def place(self) -> tuple[str, str]:
        """The data set, with its fold, and the run: what cells that differ by grid and seed have in common."""
        return self.data.title, self.run

    @property
    def in_rounds(self) -> bool:
        """Whether the forest is grown and pruned in rounds."""
        return traits_of(RANKERS.get(self.params.algo)).has_base and self.prune is None

    @property
    def has_no_history(self) -> bool:
        """Whether training records no metric after each tree: forests that are pruned, or made in rounds."""
        return self.prune is not None or self.in_rounds

    @property
    def grows_trees(self) -> bool:
        """Whether our boosting grows the forest tree by tree, and can count the rows of each tree."""
        return self.params.algo in FORESTS and not (self.has_no_history or self.interpolated)

    @property
    def on_bins(self) -> bool:
        """Whether the model is a forest of ours, grown and measured on bins; all others use feature values.

        So do forests of several domains, which share no bins.
        """
        alone = not (self.background or self.init or self.interpolated)
        return alone and (self.params.algo in FORESTS or self.has_no_history)

    @property
    def needs(self) -> tuple[Cell, ...]:
        """The cells whose models this one reads."""
        return tuple(cell for cell in (self.model_cell, self.init, *self.interpolated) if cell is not None)

    @property
    def strategy_params(self) -> dict[str, Any]:
        """The parameters of the pruning strategy."""
        return {name: getattr(self.params, name) for name in strategy_names(self.params)}

    def settings(self) -> dict[str, Any]:
        """Everything the result depends on, for the record and for the key."""
        params = self.params.as_dict()
        if self.prune is not None:
            params |= {"rate": self.params.rate, "strategy": self.params.strategy, **self.strategy_params}
        return {
            **{item.name: getattr(self, item.name) for item in fields(self)},
            "data": self.data.identity(),
            "params": {name: value for name, value in params.items() if name not in RESOURCES},
            "model_cell": None if self.model_cell is None else self.model_cell.key,
            "init": None if self.init is None else self.init.key,
            "interpolated": [cell.key for cell in self.interpolated],
            "metrics": list(self.metrics),
            "stages": list(self.stages),
            "ranksieve": __version__,
        }

    @property
    def key(self) -> str:
        """A name that changes with any setting; the folder of the result."""
        digest = hashlib.sha256(json.dumps(self.settings(), sort_keys=True, default=str).encode()).hexdigest()[:12]
        text = f"{self.data.title} {self.label}".replace("λ", "lambda")
        words = "".join(c if c.isalnum() and c.isascii() else "-" for c in text)
        return f"{'-'.join(filter(None, words.split('-')))[:60]}-s{self.seed}-{digest}"


def strategy_names(params: Params) -> list[str]:
    """The names of the parameters of the pruning strategy."""
    kind: Any = type(params.strategy_rule)
    return list(parameters_of(kind))


@dataclass(frozen=True)
class Spec:
    """An experiment, as `load_spec` reads it.

    Attributes
    ----------
    title, about
        The title, and a text on what the experiment shows.
    path, text
        The file and its content.
    metrics
        The metrics. The first is used for early stopping.
    stages
        Numbers of trees after which models are also measured.
    figures
        The figures of the report.
    baseline
        The run that tables compare with.
    compare
        The runs that are compared with each other.
    timed
        Whether cells run one at a time, so that times can be compared.
    quick
        Whether this is the small size.
    data
        The data sets.
    cells
        The cells: one for each data set, run, choice of its grid, and seed.
    tune
        The search space.
    notes
        What was read otherwise than it was written.

    Examples
    --------
    >>> from ranksieve.experiments import find_spec, load_spec
    >>> spec = load_spec(find_spec("fig4"), quick=True)
    >>> spec.metrics[0], spec.cells[0].label
    ('ndcg@10', 'SelGB, negatives 0.0025')
    """

    title: str
    about: str
    path: str
    text: str
    metrics: tuple[str, ...]
    stages: tuple[int, ...]
    figures: tuple[str, ...]
    baseline: str
    compare: tuple[str, ...] | None
    timed: bool
    quick: bool
    data: tuple[DataSpec, ...]
    cells: tuple[Cell, ...]
    tune: dict[str, Any]
    notes: tuple[str, ...] = ()


def shipped_specs() -> dict[str, Path]:
    """Files of the specifications that ship with ranksieve, by name.

    Examples
    --------
    >>> from ranksieve.experiments import shipped_specs
    >>> shipped_specs()["fig4"].name
    'fig4.toml'
    """
    folder = next(folder for folder in SHIPPED if folder.is_dir())
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def find_spec(name: str | Path) -> Path:
    """A specification file, or one that ships with ranksieve by its name: `fig4`.

    Examples
    --------
    >>> from ranksieve.experiments import find_spec
    >>> find_spec("fig4").name
    'fig4.toml'
    """
    if Path(name).is_file():
        return Path(name)
    known = shipped_specs()
    if str(name) in known:
        return known[str(name)]
    hint = did_you_mean(name, known)
    raise ParameterError(f"{name}: no such file; {hint}give a TOML file, or one of {', '.join(known)}")
