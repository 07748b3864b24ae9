"""The shipped experiments, run and written up as pages of the documentation.

    python benchmarks/experiments.py quick                     # every spec at its quick size, on generated data
    python benchmarks/experiments.py bugs ../shared/data/ir    # on real bug reports, smaller than in the papers

Each goes to `docs/results/`: a page with all tables and figures, the figures as SVG, and the tables as JSON. Finished
cells are kept in `build/experiments`, so an interrupted run goes on; `--specs fig4 table2` takes some alone.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import matplotlib

matplotlib.use("agg")

from ranksieve.errors import MissingExtraError
from ranksieve.experiments.data import DataSpec
from ranksieve.experiments.read_spec import load_spec
from ranksieve.experiments.results import Results
from ranksieve.experiments.run import run_experiment
from ranksieve.experiments.shipped import SHIPPED, find_spec
from ranksieve.report.tables import Table
from ranksieve.report.write import tables, write_report
from sieve import feature_files, shortened

PAGES = Path(__file__).parent.parent / "docs" / "results"
PROJECT = "eclipse.jdt.debug"
BUGS = {"trees": 100, "leaves": 16, "min-docs": 20, "early-stopping": 30}
SETTINGS = ", ".join(f"{name} {value}" for name, value in BUGS.items())
DEPTH = 300
ON_BUGS = ("table2", "fig2", "fig3", "fig4", "fig5", "fig7", "fig8", "selections", "static")
ABOUT = {
    "quick": "Every shipped experiment at its quick size, on generated data: it shows what each makes, not who wins.",
    "bugs": f"Experiments on real two-stage lists: the bug reports of {PROJECT} with the {DEPTH} files BM25F ranks "
    f"best, 149 features (without `feedback.*`), split by report 60/20/20. Relevant files beyond those {DEPTH} are "
    "dropped, from test lists, too, so NDCG is that of the relevant files retrieved. Trees are fewer and smaller "
    f"than in the papers ({SETTINGS}), so that all of it runs in minutes; `fig6` wants lists of different lengths "
    "and is left out. It is one project and one split: most intervals contain 0.",
}
FEW = (
    "1% of a list's negatives are 3 files here, and SelGB learns nothing from them that helps on validation lists: "
    "its best model is the first tree, which sees everything, the same in all rows with 1 tree."
)
LAST_COLUMN = (
    f"No model has more than {BUGS['trees']} trees, so the column of 150 trees equals that of the full models."
)
NOTES = {  # what a reader of the page would stumble over
    "table2": f"{LAST_COLUMN} Lists have {DEPTH} files, so λ-MART 500 and λ-MART are the same model. {FEW} `static` "
    "fails on validation lists as well; its sample is too small, see `static` below.",
    "fig4": f"{FEW} So it is with shares up to 2.5%, 8 files.",
    "fig5": f"{FEW} Selecting every 50 trees or more rarely is λ-MART: its best trees come before the "
    "second selection.",
    "fig7": f"{FEW} The picture is of all trees grown until early stopping.",
    "fig8": f"{FEW} The picture is of all trees grown until early stopping.",
    "selections": f"{LAST_COLUMN} {FEW}",
    "static": "Small samples fail, on validation lists as well. They have all positives but only the negatives that a "
    "model of the full lists ranks best. A likely reason: negatives like the lower positives are gone, so low values "
    "look relevant, and on full lists files of a kind never seen come out on top. The larger the share, the smaller "
    "the harm.",
}


def run_spec(name: str, kind: str, work: Path, jobs: int, data: list[DataSpec]) -> Results:
    params = BUGS if kind == "bugs" else {}
    spec = load_spec(find_spec(name), quick=kind == "quick", data=data, params=params)
    return run_experiment(spec, work / kind / name, jobs=jobs)


def write_up(results: Results, name: str, folder: Path) -> str:
    """The experiment's section of the page; its figures and tables go to `folder/name`."""
    report = write_report(results, results.folder / "report").parent
    shutil.rmtree(folder / name, ignore_errors=True)
    (folder / name).mkdir(parents=True)
    for figure in sorted((report / "figures").glob("*.svg")):
        shutil.copy(figure, folder / name / figure.name)
    found = [as_json(table) for table in tables(results)]
    (folder / name / "tables.json").write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n")
    text = (report / "report.md").read_text(encoding="utf-8")
    if folder.name == "bugs" and name in NOTES:
        text = text.replace("\n\n**", f"\n\n{NOTES[name]}\n\n**", 1)
    return text.replace("# ", f"## {name}: ", 1).replace("](figures/", f"]({folder.name}/{name}/")


def as_json(table: Table) -> dict:
    rows = [[value.text if value.number is None else value.number for value in row] for row in table.rows]
    return {"title": table.title, "columns": table.columns, "rows": rows, "note": table.note}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=list(ABOUT))
    parser.add_argument("collections", type=Path, nargs="?", help="for bugs: the folder that holds bugs-ecf, …")
    parser.add_argument("--features", type=Path, default=Path("build/bugs"), help="where features of bugs are or go")
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    parser.add_argument("--specs", nargs="+", help="only these; the page holds what has been run")
    parser.add_argument("--jobs", type=int, default=0)
    arguments = parser.parse_args()
    kind, data = arguments.kind, []
    if kind == "bugs":
        file = shortened(*feature_files(arguments.collections, arguments.features, (PROJECT,)), arguments.work, DEPTH)
        data = DataSpec.folded(PROJECT, {"file": str(file)}, Path())
    shipped = sorted(path.stem for path in next(f for f in SHIPPED if f.is_dir()).glob("*.toml"))
    known = shipped if kind == "quick" else [name for name in ON_BUGS if name in shipped]
    folder = PAGES / kind
    folder.mkdir(parents=True, exist_ok=True)
    parts = [f"# Results: {kind}", ABOUT[kind], f"Made by `python benchmarks/experiments.py {kind}`."]
    for name in known:
        out = arguments.work / kind / name
        if arguments.specs is None or name in arguments.specs:
            try:
                run_spec(name, kind, arguments.work, arguments.jobs, data)
            except MissingExtraError as error:
                print(f"{name}: left out, {error}")
        if (out / "experiment.json").exists():
            parts.append(write_up(Results.open(out), name, folder))
            print(name, flush=True)
            (PAGES / f"{kind}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
