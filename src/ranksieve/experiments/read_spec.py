"""Reading an experiment from its TOML file: every mistake is reported with its line before anything trains.

Code of the user, `selection = "file.py:function"`, is run when the experiment runs. Here a file is imported only where
a key may be a parameter of its rule.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranksieve.errors import ParameterError, RanksieveError, did_you_mean, param
from ranksieve.evaluation.metrics import parse_metric
from ranksieve.experiments import run_options
from ranksieve.experiments.data_sets import DataSpec
from ranksieve.experiments.run_options import RunTable, grid_choices
from ranksieve.experiments.spec import FIGURES, Cell, Spec, strategy_names
from ranksieve.parameter_table import COMMON, file_parameters, flag
from ranksieve.parameter_table import table as parameter_table
from ranksieve.params import Params
from ranksieve.rankers.inputs import load_library
from ranksieve.rankers.trials import check_space
from ranksieve.rules import parameter
from ranksieve.toml_file import Place, TomlFile

CHOOSING = ("algo", "base", "selection", "objective", "step", "strategy")  # they decide which others are used
TREES = "a list of integers from 1"
RULES = ("selection", "objective")  # those that may be code of the user


@dataclass(frozen=True)
class SpecTable:
    """The keys of a specification."""

    title: str | None = None
    about: str = ""
    metrics: tuple[str, ...] = parameter(("ndcg@10",), "What is measured", "a list of texts, at least one", bool)
    stages: tuple[int, ...] = parameter((), "Sizes to measure at", TREES, lambda sizes: min(sizes, default=1) >= 1)
    seeds: tuple[int, ...] = parameter((0,), "Seeds of each run", "a list of integers, at least one", bool)
    figures: tuple[str, ...] = ("curves", "table")
    baseline: str | None = None
    compare: tuple[str, ...] | None = parameter(
        None,
        "Runs of the tests",
        "the names of two runs, the second is the baseline",
        lambda v: v is None or len(v) == 2,
    )
    timed: bool = False
    data: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    runs: tuple[dict[str, Any], ...] = ()
    quick: dict[str, Any] = field(default_factory=dict)
    tune: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class QuickTable:
    """What the table `[quick]` changes for `--quick`."""

    data: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    stages: tuple[int, ...] | None = parameter(None, "Sizes", TREES, lambda sizes: min(sizes or (), default=1) >= 1)
    seeds: int | None = parameter(None, "Largest number of seeds", "an integer from 1", lambda v: v is None or v >= 1)
    tune: dict[str, Any] = field(default_factory=dict)


def load_spec(
    path: str | Path, *, quick: bool = False, data: Sequence[DataSpec] = (), params: Mapping[str, Any] | None = None
) -> Spec:
    """Read and check an experiment.

    Parameters
    ----------
    path : file name
        A TOML file; `find_spec` finds those that ship with ranksieve.
    quick : bool
        Whether to read the small size.
    data : sequence
        Data sets in place of those that the file names.
    params : mapping, optional
        Parameters of all runs, in place of those of the file.

    Raises
    ------
    ParameterError
        On the first mistake, with file and line.

    Examples
    --------
    >>> from ranksieve.experiments import find_spec, load_spec
    >>> spec = load_spec(find_spec("fig4"), params={"trees": 50})
    >>> spec.cells[0].params.trees
    50
    """
    file = TomlFile(path, like="the tables [data.NAME] and [[runs]]")
    return _SpecReader(file, quick, _checked_params(params or {})).spec(tuple(data))


def _checked_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters for every run, spelled as in TOML; a list is a grid there, too."""
    for name, value in params.items():
        for one in value if isinstance(value, list) else [value]:
            Params.from_mapping({name: one}, source="set")
    return _dashed(params)


def _dashed(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "-"): value for key, value in values.items()}


class _SpecReader:
    """Reads the tables of one file."""

    def __init__(self, file: TomlFile, quick: bool, replaced: Mapping[str, Any]) -> None:
        self._file, self._is_quick, self._replaced = file, quick, replaced
        self._head = file.read(SpecTable, file.values)
        small = file.read(QuickTable, self._head.quick, ("quick",))
        self._quick = small if quick else QuickTable()
        self._params = _dashed(self._head.params)
        self._names = [*_names(), *self._own_names()]
        file.check_keys(small.params, self._names, ("quick", "params"))
        file.check_keys(self._params, self._names, ("params",))
        self._unused = {*self._params, *replaced}  # until a run uses them
        self._notes: dict[str, None] = {}  # in order, each once
        self._replacing: tuple[DataSpec, ...] = ()  # data in the place of the file's

    def _own_names(self) -> list[str]:
        """The parameters of rules named as file.py:Class; a file is imported only where a key is unknown otherwise."""
        tables = {("params",): self._params} | {("runs", n): run for n, run in enumerate(self._head.runs)}
        known = {*_names(), *(item.name for item in dataclasses.fields(RunTable))}
        if all(key.replace("-", "_") in known for values in tables.values() for key in values):
            return []
        return [name for place, values in tables.items() for name in self._file.check(place, file_parameters, values)]

    def spec(self, replaced: tuple[DataSpec, ...]) -> Spec:
        head, runs, self._replacing = self._head, self._runs(), replaced
        self._check_head()
        stages = head.stages if self._quick.stages is None else self._quick.stages
        stages += tuple(size for size in run_options.pruned_sizes([run for run, _ in runs]) if size not in stages)
        data = replaced or tuple(self._data())
        common: dict[str, Any] = {"metrics": head.metrics, "stages": stages}
        common |= {"follow_training": "phases" in head.figures, "time_scoring": "speed" in head.figures}
        cells = tuple(self._cells(data, runs, common))
        self._check_unused()
        names = list(dict.fromkeys(cell.run for cell in cells))
        baseline = names[0] if head.baseline is None else head.baseline
        for place, name in [("baseline", baseline), *(("compare", name) for name in head.compare or ())]:
            if name not in names:
                hint = did_you_mean(name, names)
                raise self._file.error((place,), f"no run is named {name!r}; {hint}known: {', '.join(names)}")
        return Spec(
            title=Path(self._file.path).stem if head.title is None else head.title,
            about=head.about,
            path=self._file.path,
            text=self._file.text,
            metrics=head.metrics,
            stages=stages,
            figures=head.figures,
            baseline=baseline,
            compare=head.compare,
            timed=head.timed,
            quick=self._is_quick,
            data=data,
            cells=cells,
            tune=self._space(),
            notes=tuple(self._notes),
        )

    def _check_head(self) -> None:
        head, error = self._head, self._file.error
        for metric in head.metrics:
            self._file.check(("metrics",), parse_metric, metric)
        for figure in head.figures:
            if figure not in FIGURES:
                hint = did_you_mean(figure, FIGURES)
                raise error(("figures",), f"unknown figure {figure!r}; {hint}known: {', '.join(FIGURES)}")
        if "speed" in head.figures and not head.timed:
            raise error(("figures",), "speed shows times, so cells must run one at a time; add timed = true")

    def _space(self) -> dict[str, Any]:
        space = {**self._head.tune, **self._quick.tune}
        for name, wanted in space.items():
            self._file.check(("tune", name), check_space, {name: wanted})
        return space

    def _data(self) -> Iterator[DataSpec]:
        if not self._head.data:
            raise self._file.error((), "no data; add a table such as [data.web], or give data files")
        for name, table in self._head.data.items():
            place = ("data", name)
            if not isinstance(table, dict):
                raise self._file.error(place, f"data.{name} is {table!r}; expected a table [data.{name}]")
            values = {**table, **(self._quick.data if "generate" in table else {})}
            data = self._file.read(DataSpec, values, place, without=("name", "fold"))
            data = dataclasses.replace(data, name=name)
            yield from self._file.check(place, data.checked, Path(self._file.path).parent)

    def _runs(self) -> list[tuple[RunTable, dict[str, Any]]]:
        """Each run's own options, and its training parameters."""
        if not self._head.runs:
            raise self._file.error(("runs",), "no runs; add a table [[runs]] with name and algo")
        found = []
        options = [item.name for item in dataclasses.fields(RunTable)]
        for number, values in enumerate(self._head.runs):
            run = self._file.read(RunTable, values, ("runs", number), more=self._names)
            found.append((run, _dashed({k: v for k, v in values.items() if k.replace("-", "_") not in options})))
        return found

    def _cells(
        self, data: Sequence[DataSpec], runs: Sequence[tuple[RunTable, dict[str, Any]]], common: Mapping[str, Any]
    ) -> Iterator[Cell]:
        done: list[Cell] = []
        names: list[str] = []
        for number, (run, own) in enumerate(runs):
            place = ("runs", number)
            name = own.get("algo") if run.name is None else run.name
            if not isinstance(name, str) or name in names:
                message = f"the run's name is {name!r}; expected a name that no other run has"
                raise self._file.error((*place, "name"), message)
            names.append(name)
            for one in data:
                for cell in self._cells_of_run(place, dataclasses.replace(run, name=name), own, one, done):
                    cell = dataclasses.replace(cell, **common)
                    done.append(cell)
                    yield cell

    def _cells_of_run(
        self, place: Place, run: RunTable, own: Mapping[str, Any], data: DataSpec, done: Sequence[Cell]
    ) -> Iterator[Cell]:
        check = self._file.check
        if run.sample is not None:
            check((*place, "sample"), run_options.check_sample_keys, run.sample)
        prune = check((*place, "prune"), run_options.prune_table, run, list(own))
        if prune is not None:
            prune, note = run_options.fitting_sizes(prune, data, done)
            self._notes.update({note: None} if note else {})
        params = self._used(place, self._all_params(run, own), run, own)
        seeds = (run.seeds or self._head.seeds)[: self._quick.seeds]
        choices: list[Any] = check(place, list, grid_choices(params, run.sample, prune))
        for grid, (one_params, one_sample, one_prune) in choices:
            if one_sample is not None:
                check((*place, "sample"), run_options.check_sample, one_sample)
                if run_options.lacks_first_stage(one_sample, data):
                    raise self._no_first_stage(place, run, data)
            for seed in seeds:
                model_cell = None
                if one_prune is not None:
                    model_cell = check((*place, "prune"), run_options.pruned_cell, one_prune, data, seed, done)
                    one_params["algo"] = model_cell.params.algo
                elif one_sample is not None and one_sample["how"] == "by-model":
                    model_cell = check(
                        (*place, "sample"), run_options.earlier_cell, one_sample["model"], data, seed, done
                    )
                settings = self._checked_settings(place, {**one_params, "seed": seed}, own, prunes=prune is not None)
                for key, reason in run_options.check_run(run, settings.algo, data, list(own)):
                    raise self._file.error((*place, key), reason)
                yield Cell(
                    data=data,
                    run=str(run.name),
                    grid=grid,
                    params=settings,
                    seed=seed,
                    sample=one_sample,
                    prune=one_prune,
                    model_cell=model_cell,
                    selections=run.selections,
                    shared_leaves=run.shared_leaves,
                    background=run.background,
                    init=None
                    if run.init is None
                    else check((*place, "init"), run_options.earlier_cell, run.init, data, seed, done),
                    interpolated=tuple(
                        check((*place, "interpolate"), run_options.earlier_cell, one, data, seed, done)
                        for one in run.interpolate
                    ),
                )

    def _no_first_stage(self, place: Place, run: RunTable, data: DataSpec) -> ParameterError:
        """An error about a sample: on the data file where it replaces those of the specification."""
        if data not in self._replacing:
            message = f'data {data.name!r} has no first-stage feature; name it (first-stage = "bm25")'
            return self._file.error((*place, "sample"), message)
        return ParameterError(
            f"{data.file or data.train}: does not say which feature is the first stage's score, by which the run "
            f"{run.name!r} samples; name it: ", param("first_stage", "FEATURE"),
        )  # fmt: skip

    def _all_params(self, run: RunTable, own: Mapping[str, Any]) -> dict[str, Any]:
        """Training parameters of a run: those of every run, its own, and what `--quick` and `--set` replace."""
        params = {**({} if run.interpolate else self._params), **own}
        for key, value in _dashed(self._quick.params).items():
            if not isinstance(value, list) or isinstance(params.get(key), list):
                params[key] = value  # a list makes a grid smaller, never a grid
        params.update(self._replaced)
        params.setdefault("metric", self._head.metrics[0])
        return params

    def _used(self, place: Place, params: dict[str, Any], run: RunTable, own: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that some choice of the run's grid uses; an error if it does not use one of its own."""
        for key, value in params.items():
            if value == []:
                raise self._file.error(self._where(place, key, own), f"{key} is []; expected at least one value")
        try:
            used = _used_keys(params, prunes=run.prune is not None)
            used |= {flag(name)[2:] for name in file_parameters(params)} if len(self._names) > len(_names()) else set()
        except RanksieveError:
            return params  # reported below with its line
        self._unused -= used
        for name in own:
            if name not in used and name not in self._replaced:
                what = ", ".join(f"{key} = {params[key]!r}" for key in CHOOSING if key in params)
                known = ", ".join(key for key in _dashed(dict.fromkeys(self._names)) if key in used)
                what = "prune" if run.prune is not None else what
                raise self._file.error((*place, name), f"{name} is not used with {what}; it uses {known}")
        return {name: value for name, value in params.items() if name in used}

    def _checked_settings(
        self, place: Place, params: dict[str, Any], own: Mapping[str, Any], *, prunes: bool
    ) -> Params:
        try:
            settings = _params(params)
            if not prunes:
                settings = Params(**settings.as_dict())  # the unused ones have their defaults
                load_library(settings.algo)
            check_rules(settings)
        except RanksieveError as error:
            names = [flag(name)[2:] for name in error.parameters]
            key = next((name for name in names if name in params), "algo")
            raise self._file.error(self._where(place, key, own), *error.parts) from None
        return settings

    def _where(self, place: Place, key: str, own: Mapping[str, Any]) -> Place:
        """The place of a parameter: in the run's own table, or in that of every run."""
        return (*place, key) if key in own else ("params", key) if key in self._params else place

    def _check_unused(self) -> None:
        """Refuse parameters meant for every run that none uses."""
        for name in sorted(self._unused):
            if name in self._replaced:
                raise ParameterError(param("set"), f" {name}: no run of {self._file.path} uses it; leave it out")
            raise self._file.error(("params", name), f"{name} is not used by any run; leave it out")


def _names() -> list[str]:
    """The training parameters as TOML spells them, but for dashes."""
    return [name.rstrip("_") for name in parameter_table()]


def _params(values: Mapping[str, Any]) -> Params:
    return Params(**{name.replace("-", "_"): value for name, value in values.items()})


def check_rules(params: Params, *, run_code: bool = False) -> None:
    """Refuse unknown rules; the user's own, `file.py:function`, are only imported with `run_code`."""
    for kind in RULES if params.forest_algorithm.is_forest else ():
        if run_code or ":" not in getattr(params, kind):
            getattr(params, f"{kind}_rule")


def _used_keys(params: Mapping[str, Any], *, prunes: bool) -> set[str]:
    """The parameters that some choice of a run's grid uses, spelled as in TOML."""
    used: set[str] = set()
    for _, (one,) in grid_choices({key: params[key] for key in CHOOSING if key in params}):
        chosen = _params(one)
        check_rules(chosen)
        pruning = (*COMMON, "rate", "strategy", *strategy_names(chosen))
        used.update(flag(name)[2:] for name in (pruning if prunes else chosen.used))
    return used
