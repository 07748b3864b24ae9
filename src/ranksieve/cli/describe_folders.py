"""What `ranksieve describe` says of folders: indexes, checkpoints, results of experiments, bin files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ranksieve.cli.console import show_facts
from ranksieve.cli.corpus_options import vector_facts
from ranksieve.errors import DataError, ParameterError
from ranksieve.text_formats import counted, duration, file_size, some_of

INDEX_USES = "ranksieve retrieve, features, rerank and serve"
BINS_USES = "the next training on the same data; a file that is removed is made again"


def describe_folder(path: str, *, verify: bool) -> None:
    """Describe a folder by the files in it."""
    from ranksieve.boosting.checkpoint import FILE as CHECKPOINT
    from ranksieve.data.bin_store import ENDING
    from ranksieve.experiments.results import EXPERIMENT
    from ranksieve.retrieval.index_header import HEADER

    names = sorted(os.listdir(path))
    bins = [Path(path, name) for name in names if name.endswith(ENDING)]
    if HEADER in names:
        _describe_index(path, verify=verify)
    elif verify:
        raise ParameterError(f"--verify is for index folders, and {path} is not one; leave it out")
    elif CHECKPOINT in names:
        _describe_checkpoint(path)
    elif EXPERIMENT in names:
        _describe_results(path)
    elif bins:
        describe_bins(bins)
    else:
        holds = f"holds {some_of(names, 3)}" if names else "is empty"
        raise DataError(
            f"{path}: is a folder that {holds}; expected an index, a checkpoint, results of ranksieve experiment or "
            "bin files, or give one file; a folder of texts is for ranksieve index"
        )


def _describe_index(path: str, *, verify: bool) -> None:
    from ranksieve.retrieval.first_stage import FirstStage
    from ranksieve.retrieval.index import Index

    index = Index(path)
    if verify:
        index.verify()
    facts = index.describe()
    fields = ", ".join(f"{name} ({length:,.1f})" for name, length in facts["fields"].items())
    rows = [
        ("documents", f"{facts['documents']:,}"),
        ("terms", f"{facts['terms']:,}"),
        ("fields, mean length", fields),
        ("numeric fields", ", ".join(facts["numbers"]) or "none"),
        ("first stage", facts["stage"] or f"{FirstStage()}, the default"),
        *([] if facts["vectors"] is None else [("vectors", vector_facts(facts["vectors"]))]),
        ("size", file_size(facts["bytes"])),
        *(("note", note) for note in facts["notes"]),
        *([("checksums", "match")] if verify else []),
        ("used by", INDEX_USES),
    ]
    show_facts(rows)


def _describe_checkpoint(path: str) -> None:
    from ranksieve.boosting.checkpoint import read_checkpoint_progress

    found = read_checkpoint_progress(path)
    last = [f"{name} {metric} {values[-1]:.4f}" for name, curves in found["history"].items()
            for metric, values in curves.items() if values]  # fmt: skip
    show_facts(
        [
            ("checkpoint of", f"training with --algo {found['fingerprint'].get('algo')}"),
            ("finished", f"{counted(tree=len(found['seconds']))} in {duration(sum(found['seconds']))}"),
            *([("validation", ", ".join(last))] if last else []),
            ("used by", f"the same ranksieve train command with --checkpoint {path} --resume"),
        ]
    )


def _describe_results(path: str) -> None:
    from ranksieve.experiments.results import Results

    results = Results.open(path)
    n_cells = len(results.facts["cells"])
    show_facts(
        [
            ("results of", f"the experiment {results.facts['title']}"),
            ("cells", f"{len(results.cells):,} of {n_cells:,} are finished"),
            ("data", ", ".join(results.data)),
            ("runs", some_of(list(dict.fromkeys(cell.label for cell in results.cells)))),
            ("used by", f"ranksieve report {path}"),
        ]
    )


def describe_bins(files: Sequence[Path]) -> None:
    """Describe bin files."""
    from ranksieve.data.bin_file import BinFileError, open_bins

    facts = []
    for path in files:
        try:
            file, note = open_bins(path)
            info, size = note["info"], file_size(path.stat().st_size)
            sizes = counted(document=file.n_rows, feature=len(info["feature_names"]))
            facts.append((path.name, f"bins of {info['source']}, {sizes}, {size}"))
        except (BinFileError, KeyError, TypeError) as error:
            raise DataError(f"{path}: the bin file is damaged ({error}); remove it") from error
    show_facts([*facts, ("used by", BINS_USES)])
