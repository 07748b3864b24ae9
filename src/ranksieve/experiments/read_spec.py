"""Reading an experiment from its TOML file; every mistake is told with its line before anything trains."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ranksieve.errors import ParameterError, RanksieveError, check_key, did_you_mean
from ranksieve.evaluation.metrics import parse_metric
from ranksieve.experiments import relations
from ranksieve.experiments.data import DataSpec
from ranksieve.experiments.grids import choices
from ranksieve.experiments.heeded import CHOOSING, check_selection, heeded_keys
from ranksieve.experiments.samples import check_sample, sample_table
from ranksieve.experiments.spec import Cell, Spec
from ranksieve.experiments.toml_lines import key_lines, line_of
from ranksieve.experiments.tune import check_space
from ranksieve.params import RANKERS, Params, flag
from ranksieve.rankers.train import check_extra

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOP = ("title", "about", "metrics", "stages", "seeds", "figures", "baseline", "compare", "timed", "data", "params",
       "runs", "quick", "tune")  # fmt: skip
QUICK = ("data", "params", "stages", "seeds", "tune")
RUN = ("name", "seeds", "sample", "prune", "selections", "shared-leaves", *relations.RELATIONS)  # not of training
FIGURES = ("curves", "steps", "table", "tests", "sizes", "heat", "cumulative", "shared-leaves", "shares", "efficiency",
           "by-size", "speed", "removed", "weights", "phases", "costs")  # fmt: skip


def load_spec(
    path: str | Path,
    *,
    quick: bool = False,
    data: Sequence[DataSpec] = (),
    params: Mapping[str, Any] | None = None,
) -> Spec:
    """Read and check an experiment; `data` replaces the data sets it names, `params` parameters of all its runs.

    Raises
    ------
    ParameterError
        On the first mistake, with file and line.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except OSError as error:
        raise ParameterError(f"{path}: cannot be read ({error.strerror}); give the experiment's TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path}: not a TOML file ({error}); see docs/experiments.md") from error
    return _Reader(str(path), text, values, quick, _checked_params(params or {})).spec(tuple(data))


def _checked_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters for every run, spelled as in TOML; a list is a grid there, too."""
    for name, value in params.items():
        for one in value if isinstance(value, list) else [value]:
            Params.from_mapping({name: one}, source="--set")
    return {name.replace("_", "-"): value for name, value in params.items()}


class _Reader:
    """Reads the tables of one file; complaints name its lines."""

    def __init__(self, path: str, text: str, values: dict[str, Any], quick: bool, replaced: Mapping[str, Any]) -> None:
        self._path, self._text, self._values, self._replaced = path, text, values, replaced
        self._lines = key_lines(text)
        self._is_quick = quick
        self._check_names(values, TOP, ())
        self._check_names(self._table("quick"), QUICK, ("quick",))
        self._quick = self._table("quick") if quick else {}
        self._idle = {key.replace("_", "-") for key in (*self._table("params"), *replaced)}  # until a run heeds them

    def complain(self, place: Sequence[str | int], message: str) -> ParameterError:
        return ParameterError(f"{self._path}:{line_of(self._lines, tuple(place))}: {message}")

    def spec(self, replaced: tuple[DataSpec, ...]) -> Spec:
        metrics = tuple(self._list("metrics", str, ["ndcg@10"]))
        for metric in metrics:
            self._checked(("metrics",), parse_metric, metric)
        stages = tuple(self._quick.get("stages", self._list("stages", int, [])))
        stages += tuple(size for size in relations.pruned_sizes(self._runs()) if size not in stages)
        figures = tuple(self._list("figures", str, ["curves", "table"]))
        for figure in figures:
            if figure not in FIGURES:
                raise self.complain(
                    ("figures",),
                    f"unknown figure {figure!r}; {did_you_mean(figure, FIGURES)}known: {', '.join(FIGURES)}",
                )
        timed = bool(self._values.get("timed", False))
        if "speed" in figures and not timed:
            raise self.complain(("figures",), "speed shows times, which mean nothing side by side; add timed = true")
        data = replaced or tuple(self._data())
        common: dict[str, Any] = {"metrics": metrics, "stages": stages}
        common |= {"follow_training": "phases" in figures, "time_scoring": "speed" in figures}
        cells = tuple(self._cells(data, common))
        self._check_idle()
        names = list(dict.fromkeys(cell.run for cell in cells))
        baseline = self._values.get("baseline", names[0])
        compare = tuple(self._list("compare", str, [])) or None
        for place, name in [("baseline", baseline), *(("compare", name) for name in compare or ())]:
            if name not in names:
                hint = did_you_mean(name, names)
                raise self.complain((place,), f"no run is named {name!r}; {hint}known: {', '.join(names)}")
        if compare is not None and len(compare) != 2:
            raise self.complain(
                ("compare",), f"got {len(compare)} names; expected two runs, the second is the baseline"
            )
        return Spec(
            title=str(self._values.get("title", Path(self._path).stem)),
            about=str(self._values.get("about", "")),
            path=self._path,
            text=self._text,
            metrics=metrics,
            stages=stages,
            figures=figures,
            baseline=baseline,
            compare=compare,
            timed=timed,
            quick=self._is_quick,
            data=data,
            cells=cells,
            tune=self._space(),
        )

    def _space(self) -> dict[str, Any]:
        space = {**self._table("tune"), **self._quick.get("tune", {})}
        for name, wanted in space.items():
            self._checked(("tune", name), check_space, {name: wanted})
        return space

    def _data(self) -> Iterator[DataSpec]:
        tables = self._table("data")
        if not tables:
            raise self.complain((), "no data; add a table such as [data.web], or give files with --train, --test")
        for name, table in tables.items():
            place = ("data", name)
            if not isinstance(table, dict):
                raise self.complain(place, f"data.{name} is {table!r}; expected a table [data.{name}]")
            generated = self._quick.get("data", {}) if "generate" in table else {}
            given = {key.replace("-", "_"): value for key, value in {**table, **generated}.items()}
            known = [
                item.name.replace("_", "-")
                for item in dataclasses.fields(DataSpec)
                if item.name not in ("name", "fold")
            ]
            self._check_names({key.replace("_", "-"): None for key in given}, known, place)
            yield from self._checked(place, DataSpec.folded, name, given, Path(self._path).parent)

    def _cells(self, data: Sequence[DataSpec], common: dict[str, Any]) -> Iterator[Cell]:
        runs = self._runs()
        done: list[Cell] = []
        names: list[str] = []
        for number, run in enumerate(runs):
            place = ("runs", number)
            name = run.get("name", run.get("algo"))
            if not isinstance(name, str) or name in names:
                raise self.complain((*place, "name"), f"the run's name is {name!r}; expected one no other run has")
            names.append(name)
            for one in data:
                for cell in self._cells_of_run(place, name, run, one, done):
                    cell = dataclasses.replace(cell, **common)
                    done.append(cell)
                    yield cell

    def _cells_of_run(
        self, place: tuple[str | int, ...], name: str, run: Mapping[str, Any], data: DataSpec, done: Sequence[Cell]
    ) -> Iterator[Cell]:
        known = [flag(item.name)[2:] for item in dataclasses.fields(Params)]
        own = {key.replace("_", "-"): value for key, value in run.items()}
        self._check_names(own, [*RUN, *known], place)
        common = {key.replace("_", "-"): value for key, value in self._table("params").items()}
        self._check_names(common, known, ("params",))
        params = {**({} if "interpolate" in own else common), **{k: v for k, v in own.items() if k not in RUN}}
        for key, value in self._quick.get("params", {}).items():
            if not isinstance(value, list) or isinstance(params.get(key.replace("_", "-")), list):
                params[key.replace("_", "-")] = value  # a list makes a grid smaller, never a grid
        params.update(self._replaced)
        params.setdefault("metric", self._values.get("metrics", ["ndcg@10"])[0])
        sample = self._checked((*place, "sample"), sample_table, own.get("sample"))
        prune = self._checked((*place, "prune"), relations.pruning_table, own)
        params = self._heeded(place, params, own)
        seeds = own.get("seeds") or self._list("seeds", int, [0])
        seeds = seeds[: self._quick.get("seeds", len(seeds))]
        for grid, (one_params, one_sample, one_prune) in choices(params, sample, prune):
            if one_sample is not None:
                self._checked((*place, "sample"), check_sample, one_sample, data)
            for seed in seeds:
                using = (*place, "sample" if prune is None else "prune")
                teacher = self._checked(using, relations.find_teacher, one_sample, one_prune, data, seed, done)
                if prune is not None:
                    one_params["algo"] = teacher.params.algo
                try:
                    settings = Params.from_mapping({**one_params, "seed": seed}, source=f"run {name!r}")
                    if prune is None:
                        settings = settings.with_heeded_alone()
                        check_extra(settings.algo)
                    check_selection(settings)
                except RanksieveError as error:
                    key = next((key for key in one_params if f"--{key} " in error.by_flags), "algo")
                    where = (*place, key) if key in own else ("params", key) if key in common else place
                    raise self.complain(where, error.by_flags) from None
                self._check_extras(place, settings.algo, own)
                cell = Cell(
                    data=data,
                    run=name,
                    grid=grid,
                    params=settings,
                    seed=seed,
                    sample=one_sample,
                    prune=one_prune,
                    teacher=teacher,
                    selections=bool(own.get("selections", False)),
                    shared_leaves=bool(own.get("shared-leaves", False)),
                )
                yield self._related(place, own, settings.algo, cell, done)

    def _heeded(self, place: tuple[str | int, ...], params: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
        """What some choice of the run's grid heeds; parameters meant for every run are left to those that heed them."""
        try:
            heeded = heeded_keys(params, prunes="prune" in own)
        except RanksieveError:
            return params  # to be told with its line
        self._idle -= heeded
        for name in params:
            if name in own and name not in heeded and name not in self._replaced:
                what = "prune" if "prune" in own else ", ".join(f"{k}={params[k]}" for k in CHOOSING if k in params)
                known = [key for key in (flag(item.name)[2:] for item in dataclasses.fields(Params)) if key in heeded]
                raise self.complain((*place, name), f"{name} is not for {what}, which heeds {', '.join(known)}")
        return {name: value for name, value in params.items() if name in heeded}

    def _check_idle(self) -> None:
        """Refuse parameters meant for every run that none heeds."""
        for key in self._table("params"):
            if key.replace("_", "-") in self._idle:
                raise self.complain(("params", key), f"{key} counts for none of the runs; leave it out")
        for key in sorted(self._idle):
            raise ParameterError(f"--set {key}: it counts for none of the runs of {self._path}; leave it out")

    def _check_extras(self, place: tuple[str | int, ...], algo: str, own: Mapping[str, Any]) -> None:
        """Refuse to record of a model what it does not have."""
        if own.get("selections") and algo in RANKERS:
            raise self.complain(
                (*place, "selections"), f"algo={algo} keeps no tally of selections; leave selections out"
            )
        if own.get("shared-leaves") and algo in RANKERS and algo not in ("xcleaver", "lightgbm"):
            raise self.complain((*place, "shared-leaves"), f"algo={algo} makes no forest; leave shared-leaves out")

    def _related(
        self, place: tuple[str | int, ...], own: Mapping[str, Any], algo: str, cell: Cell, done: Sequence[Cell]
    ) -> Cell:
        """The cell with the cells it builds on."""
        for key in relations.RELATIONS:
            if key in own:
                self._checked((*place, key), relations.check_relation, key, own, algo, cell.data)
        where = next((key for key in ("init", "interpolate") if key in own), "name")
        return dataclasses.replace(
            cell, **self._checked((*place, where), relations.related, own, cell.data, cell.seed, done)
        )

    def _checked(self, place: tuple[str | int, ...], function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except RanksieveError as error:
            raise self.complain(place, error.by_flags) from None

    def _check_names(self, given: Mapping[str, Any], known: Sequence[str], place: tuple[str | int, ...]) -> None:
        for name in given:
            self._checked((*place, name), check_key, name, known)

    def _table(self, name: str) -> dict[str, Any]:
        table = self._values.get(name, {})
        if not isinstance(table, dict):
            raise self.complain((name,), f"{name} is {table!r}; expected a table [{name}]")
        return table

    def _runs(self) -> list[dict[str, Any]]:
        runs = self._values.get("runs", [])
        if not isinstance(runs, list) or not runs or not all(isinstance(run, dict) for run in runs):
            raise self.complain(("runs",), "no runs; add a table [[runs]] with name and algo")
        return runs

    def _list(self, name: str, kind: type, default: list[Any]) -> list[Any]:
        values = self._values.get(name, default)
        if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
            raise self.complain((name,), f"{name} is {values!r}; expected a list")
        return values
