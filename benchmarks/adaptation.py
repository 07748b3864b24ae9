"""Adapting a background model to a small domain (Wu et al. 2010, tables 2-4), with paired t-tests.

The background domain is `cubic` data. In the adaptation domain the features keep their places, but a share of them is
drawn anew, so that they mean nothing there. Rows: the background model, a model of the small domain alone, the two
interpolated (Powell) and combined (exactly) on its validation lists, and LambdaSMART with all and with 70% of the rows.

    python benchmarks/adaptation.py
    python benchmarks/adaptation.py --bugs build/bugs --project ecf    # files of benchmarks/bugs.py
    python benchmarks/adaptation.py --two-stage 400

The latter are the shipped experiment `adaptation`. With `--bugs` the small domain is one project, 30% of its reports
train, 20% validate and 50% test; the background are the others. With `--two-stage` it is generated search data of
another seed than the background's. Cells that are finished in `--work` are kept.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import ranksieve as rs
from bugs import PROJECTS
from ranksieve.experiments.data_sets import DataSpec
from ranksieve.experiments.read_spec import load_spec
from ranksieve.experiments.run import run_experiment
from ranksieve.experiments.spec import find_spec
from ranksieve.report.result_tables import mutual_tests
from ranksieve.report.write import write_report
from results import save

METRICS = ("ndcg@10", "ndcg@3", "ndcg@1")


def shifted(n_queries: int, start: int, every: int) -> rs.Dataset:
    """Lists of the small domain: every so many-th feature is noise."""
    data = rs.synth.cubic(n_queries, start=start)
    features = data.features.copy()
    features[:, ::every] = np.random.default_rng(start).uniform(-1, 1, features[:, ::every].shape)
    return rs.Dataset.from_arrays(features, data.labels, group=data.lists.sizes)


def bug_project(folder: Path, project: str) -> list[DataSpec]:
    """One project as the small domain, the others as its background."""
    others = sorted(path.name for path in folder.glob("*.parquet") if path.stem in PROJECTS and path.stem != project)
    table = {"file": f"{project}.parquet", "background": others, "split": [0.3, 0.2, 0.5]}
    return DataSpec(project, **table).checked(folder)


def two_regions(queries: int) -> list[DataSpec]:
    """Generated search data in which features show what they measure better or worse than in the background."""
    table = {"generate": "two-stage", "queries": queries, "features": 60, "split": [0.2, 0.1, 0.7], "seed": 1}
    return DataSpec("two-stage", **table, background_queries=queries, background_seed=0).checked()


def experiment(data: list[DataSpec], work: Path) -> list[dict]:
    """Every run of the experiment `adaptation` with its intervals and its p-values against the others."""
    (small,) = data
    spec = load_spec(find_spec("adaptation"), data=data)
    results = run_experiment(spec, work, jobs=1, on_cell=lambda cell, done, n: print(done, n, cell.label, flush=True))
    write_report(results)
    rows = []
    for group in results.best(small.name):
        facts = group.cells[0].facts
        row = {"small domain": small.name, "run": group.label, "trees": group.n_trees,
               "training queries": facts["trained_on"]["queries"],
               "training documents": facts["trained_on"]["documents"],
               "test queries": len(results.lists(small.name, "test")["query"]),
               "training s": round(group.seconds("training"), 1)}  # fmt: skip
        for table in (mutual_tests(results, small.name, metric) for metric in METRICS):
            mine = next(one for one in table.rows if one[0].text == group.label)
            row |= {
                f"{table.columns[1]} {name}".removesuffix(f" {table.columns[1]}"): round(value.number, 5)
                for name, value in zip(table.columns[1:], mine[1:], strict=True)
                if value.number is not None
            }
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bugs", type=Path, help="folder of feature files of bug reports")
    parser.add_argument("--two-stage", type=int, default=0, help="generated queries of each domain")
    parser.add_argument("--project", default="ecf", help="the small domain among them")
    parser.add_argument("--work", type=Path, help="results of the experiment; by default build/adaptation_DOMAIN")
    parser.add_argument("--background", type=int, default=2000, help="queries of the background domain")
    parser.add_argument("--train", type=int, default=200, help="queries of the small domain; half as many validate")
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--every", type=int, default=3, help="every so many-th feature is noise in the small domain")
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    if args.bugs is not None or args.two_stage:
        data = bug_project(args.bugs, args.project) if args.bugs is not None else two_regions(args.two_stage)
        name = f"adaptation_{data[0].name}"
        rows = experiment(data, args.work or Path("build", name))
        for row in rows:
            print(row)
        save(name, rows)
        return
    growing = {"gain": "variance", "leaves": 20, "min_docs": 5, "learning_rate": 0.1}
    options = {"algo": "lambdamart", "trees": args.trees, "threads": args.threads, **growing}
    sizes = (args.train, args.train // 2, args.test)
    starts = np.cumsum([args.background, *sizes[:-1]]).tolist()
    train, valid, test = (shifted(n, start, args.every) for n, start in zip(sizes, starts, strict=True))
    background = rs.train(rs.synth.cubic(args.background), **options)
    in_domain = rs.train(train, valid=valid, **options)
    both = [background, in_domain]
    models = {
        "background": background,
        "in-domain": in_domain,
        "interpolated": rs.interpolate(both, valid).model(both),
        "combined": rs.combine(*both, valid).model(*both),
        "LambdaSMART": rs.train(train, valid=valid, init=background, **options),
        "LambdaSMART, 70% of rows": rs.train(train, valid=valid, init=background, row_fraction=0.7, **options),
    }
    result = rs.evaluate(models, test, METRICS)
    rows = []
    for name in models:
        row = {"run": name, "trees": models[name].n_trees, **{m: result.mean(name, m) for m in METRICS}}
        for other in ("background", "in-domain"):
            if name != other:
                row[f"p against {other}"] = result.compare(name, other, test="t").p_value
        rows.append({**row, **{key: value for key, value in vars(args).items() if isinstance(value, int)}})
        tests = ", ".join(f"{key} {row[key]:.4f}" for key in row if key.startswith("p against"))
        print(f"{name:26}", *(f"{metric} {row[metric]:.4f}" for metric in METRICS), tests)
    save("adaptation", rows)


if __name__ == "__main__":
    main()
