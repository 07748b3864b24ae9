"""The shipped experiments, run and reported.

    python benchmarks/experiments.py quick                     # every spec at its quick size, on generated data
    python benchmarks/experiments.py bugs ../shared/data/ir    # on real bug reports, smaller than in the papers

Each is written to `benchmarks/results/experiments/`: a page with all tables and figures, the figures as SVG, and the
tables as JSON. Finished cells are kept in `build/experiments`, so an interrupted run continues. `--specs fig4 table2`
runs only these; on the page the sections of the others stay as they are.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from pathlib import Path

import matplotlib

matplotlib.use("agg")

from bug_lists import SELECT
from bugs import PROJECTS, pooled
from ranksieve.errors import MissingExtraError
from ranksieve.experiments.data_sets import DataSpec
from ranksieve.experiments.read_spec import load_spec
from ranksieve.experiments.results import Results
from ranksieve.experiments.run import run_experiment
from ranksieve.experiments.spec import find_spec, shipped_specs
from ranksieve.report.result_tables import ReportTable
from ranksieve.report.write import tables, write_report

PAGES = Path(__file__).parent / "results" / "experiments"
DEPTH = 5000  # files a report comes with at the most
REPORTS = 120  # of each project
SPLIT = (0.5, 0.2, 0.3)
BUGS = {
    "trees": 200, "early-stopping": 25, "learning-rate": 0.1, "leaves": 16, "min-docs": 50, "l2": 10.0,
    "feature-fraction": 0.3,
}  # fmt: skip
FEWER = {"undersampling": {"trees": 40}}  # an experiment of 97 cells
SETTINGS = ", ".join(f"{name} {value}" for name, value in BUGS.items())
ON_BUGS = ("fig1", "fig2", "fig3", "fig4", "fig5", "table2", "fig6", "fig7", "fig8", "static", "efficiency",
           "undersampling", "selections")  # fmt: skip
ABOUT = {
    "quick": "Every shipped experiment at its quick size, on generated data: it shows what each produces, not which "
    "run is best.",
    "bugs": f"The experiments on real two-stage lists: {REPORTS} bug reports, drawn at random, of each of the projects "
    f"{', '.join(PROJECTS)}, with all files that BM25F finds, at most {DEPTH:,}: 2,700 a report, 3 of them relevant. "
    "149 features (without `feedback.*`). Split by report: 240 for training, 96 for validation, 144 for test; the "
    "number of trees and every choice are made on validation lists. Lists are as long as in the papers, but reports "
    f"and trees are far fewer ({SETTINGS}), so most differences are within their intervals. Times were taken on a "
    "busy machine, several times as long as on a free one, and give rough ratios at best.",
}
NOTES = {  # remarks on the page of bug reports
    "fig1": "Cut at 100 files with the positives beyond them kept, as in the paper, λ-MART learns that a low "
    "first-stage score means relevant, and gets worse on full lists with every tree; at 500 some of that is left. "
    "With those positives dropped, lists of 100 do as well as whole ones, those of 500 to 2,500 are 3 to 6% worse. No "
    "list has more than 5,000 files, so k 5000 is everything.",
    "table2": "No model has more than 150 trees, so that column equals the last. λ-MART 500 keeps positives beyond "
    "500, see `fig1`.",
    "fig6": "Lists are as long as their projects are large, so sizes come in four groups.",
    "undersampling": f"At most {FEWER['undersampling']['trees']} trees, for the sake of its 97 cells.",
}


def bug_reports(collections: Path, features: Path) -> list[DataSpec]:
    """Reports of all projects with their files, to be split by report."""
    file = features / f"reports-{REPORTS}-{DEPTH}.parquet"
    pooled(collections, file, depth=DEPTH, reports=REPORTS, select=SELECT)
    return DataSpec("bug reports", file=str(file), split=SPLIT).checked()


def run_spec(name: str, kind: str, work: Path, jobs: int, data: list[DataSpec]) -> Results:
    params = {**BUGS, **FEWER.get(name, {})} if kind == "bugs" else {}
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
    if folder.name == "bugs":
        text = re.sub(r"\*\*Data\*\*.*?(?=^Started )", "", text, flags=re.DOTALL | re.MULTILINE)  # all the same
        text = text.replace("\n\n**", f"\n\n{NOTES[name]}\n\n**", 1) if name in NOTES else text
    return text.replace("# ", f"## {name}: ", 1).replace("](figures/", f"]({folder.name}/{name}/")


def as_json(table: ReportTable) -> dict:
    rows = [[value.text if value.number is None else value.number for value in row] for row in table.rows]
    return {"title": table.title, "columns": table.columns, "rows": rows, "note": table.note}


def sections_of(page: Path) -> dict[str, str]:
    """The sections of a page that was written before, by specification."""
    if not page.exists():
        return {}
    _, *parts = re.split(r"^(?=## \S+: )", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {part[3 : part.index(": ")]: part.rstrip() for part in parts}


def write_page(kind: str, names: list[str], sections: dict[str, str]) -> None:
    parts = [f"# Results: {kind}", ABOUT[kind], f"Made by `python benchmarks/experiments.py {kind}`."]
    parts += [sections[name] for name in names if name in sections]
    (PAGES / f"{kind}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=list(ABOUT))
    parser.add_argument("collections", type=Path, nargs="?", help="for bugs: the folder that holds bugs-ecf, …")
    parser.add_argument("--features", type=Path, default=Path("build/bugs"), help="where features of bugs are or go")
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    parser.add_argument("--specs", nargs="+", help="only these; sections of others stay as they are")
    parser.add_argument("--jobs", type=int, default=0)
    arguments = parser.parse_args()
    kind = arguments.kind
    data = bug_reports(arguments.collections, arguments.features) if kind == "bugs" else []
    known = list(shipped_specs()) if kind == "quick" else list(ON_BUGS)
    folder = PAGES / kind
    folder.mkdir(parents=True, exist_ok=True)
    sections = sections_of(PAGES / f"{kind}.md")
    for name in arguments.specs or known:
        try:
            results = run_spec(name, kind, arguments.work, arguments.jobs, data)
        except MissingExtraError as error:
            print(f"{name}: left out, {error}")
            continue
        sections[name] = write_up(results, name, folder).rstrip()
        write_page(kind, known, sections)
        print(name, flush=True)


if __name__ == "__main__":
    main()
