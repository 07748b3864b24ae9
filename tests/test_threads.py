"""Compiled loops in forked processes, and how their threads wait."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from ranksieve import threads

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="GNU OpenMP is Linux's")

PARENT = """
    import logging, os, sys, threading
    import numpy as np
    import ranksieve as rs

    logging.disable()
    data = rs.synth.cubic(100)
    X = np.random.default_rng(0).random((20_000, data.n_features), np.float32)
    model = rs.train(data, trees=5, leaves=4)
    corpus = [{"id": f"d{i}", "text": " ".join(f"w{i * j % 97}" for j in range(9))} for i in range(300)]
    index = rs.Index.build(corpus, sys.argv[1])
    queries = {"1": "w1 w2 w3", "2": "w5 w8"}
    from ranksieve.retrieval.labelling import extract_features
    ranked = extract_features(index, queries, judgements={"1": {"d1": 1}, "2": {"d5": 1, "d4": 1}}, depth=50)
    pipeline = rs.Pipeline(index, rs.train(ranked, trees=3, leaves=3, min_docs=1), depth=50)

    def answers():
        trained = rs.train(data, trees=5, leaves=4)
        return model.predict(X), trained.predict(X), [(h.docno, h.score) for h in pipeline.search("w1 w7", k=5)]

    def same(first, second):
        return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))

    expected = answers()

    def in_child(work):
        child = os.fork()
        if child == 0:
            os._exit(0 if work() else 1)
        status = os.waitpid(child, 0)[1]
        return os.waitstatus_to_exitcode(status)
"""


def run(code: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    script = textwrap.dedent(PARENT) + textwrap.dedent(code)
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=900
    )


FORKS = """
    import numba
    assert numba.threading_layer() == os.environ["NUMBA_THREADING_LAYER"] and numba.get_num_threads() == 2
    assert in_child(lambda: same(answers(), expected)) == 0, "a child"
    assert in_child(lambda: in_child(lambda: same(answers(), expected)) == 0) == 0, "a child of a child"
    assert same(answers(), expected), "the parent afterwards"
"""
THREADS = """
    def work():
        results = []
        threads = [threading.Thread(target=lambda: results.append(same(answers(), expected))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results == [True] * 3

    assert work() and in_child(work) == 0, "threads at once"
"""


@ON_LINUX
@pytest.mark.parametrize(("layer", "code"), [("omp", FORKS + THREADS), ("workqueue", FORKS)], ids=["omp", "workqueue"])
def test_forked_children_and_their_threads_predict_search_and_train(tmp_path, layer, code):
    result = run(code, tmp_path / "index", NUMBA_THREADING_LAYER=layer, NUMBA_NUM_THREADS="2")
    assert result.returncode == 0, result.stderr


@ON_LINUX
def test_a_child_forked_before_any_loop_has_its_own_threads(tmp_path):
    code = """
    import os, sys
    import numba, ranksieve.kernels
    from ranksieve import threads

    if os.fork():
        sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
    import ranksieve as rs
    rs.train(rs.synth.cubic(100), trees=2, leaves=4)
    sys.exit(0 if numba.threading_layer() == "omp" and not threads._is_forked.value else 1)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    environment = {**os.environ, "NUMBA_THREADING_LAYER": "omp"}
    assert subprocess.run(command, env=environment, check=False, timeout=900).returncode == 0


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> str:
    """The folder of a library with a compiled loop, which is kept on disk."""
    folder = tmp_path_factory.mktemp("library")
    code = """
    import numba, numpy as np

    @numba.njit(parallel=True, cache=True)
    def double(values):
        out = np.empty_like(values)
        for i in numba.prange(values.size):
            out[i] = 2 * values[i]
        return out
    """
    (folder / "another_library.py").write_text(textwrap.dedent(code))
    return str(folder)


@ON_LINUX
@pytest.mark.parametrize("imported", ["ranksieve", "ranksieve.threads", "sys"])
def test_a_child_runs_loops_though_another_library_has_started_the_threads_of_its_parent(imported, library):
    code = """
    import os, sys
    sys.path.append(sys.argv[2])
    import numpy as np
    from another_library import double

    double(np.ones(10))
    __import__(sys.argv[1])
    if os.fork():
        sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
    import ranksieve as rs
    rs.train(rs.synth.cubic(100), trees=2, leaves=4)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), imported, library]
    environment = {**os.environ, "NUMBA_THREADING_LAYER": "omp", "NUMBA_NUM_THREADS": "2"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert result.returncode == 0, result.stderr


def test_a_failed_preparation_is_logged_and_loops_go_on(monkeypatch, caplog):
    def fail() -> None:
        raise RuntimeError("LLVM IR parsing error")

    monkeypatch.setattr(threads, "_is_prepared", False)
    monkeypatch.setattr(threads, "_prepare_openmp", fail)
    with caplog.at_level(logging.DEBUG, "ranksieve"), threads.using_threads(1) as used:
        assert used == 1
    assert [(one.levelname, one.message[:9]) for one in caplog.records] == [("DEBUG", "preparing")]


@ON_LINUX
def test_threads_that_start_at_once_prepare_once(monkeypatch):
    calls = []

    def load_slowly() -> None:
        calls.append(os.environ["GOMP_SPINCOUNT"])
        time.sleep(0.1)
        raise ImportError

    for name in threads.SPIN_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "_is_prepared", False)
    monkeypatch.setattr(threads, "_numba_openmp", load_slowly)
    started = [threading.Thread(target=threads.prepare_threads) for _ in range(4)]
    for one in started:
        one.start()
    for one in started:
        one.join()
    assert calls == [threads.SPIN_COUNT] and not threads.SPIN_VARIABLES & os.environ.keys()


@ON_LINUX
@pytest.mark.parametrize(("given", "spins"), [({}, "2000"), ({"GOMP_SPINCOUNT": "7"}, "7")])
def test_threads_wait_shortly_and_the_environment_is_left_alone(given, spins):
    code = """
    import os
    before = dict(os.environ)
    from ranksieve.threads import using_threads
    with using_threads(1):
        assert dict(os.environ) == before
    """
    others = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    environment = {**others, "OMP_DISPLAY_ENV": "verbose", **given}
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert f"GOMP_SPINCOUNT = '{spins}'" in result.stderr


@ON_LINUX
def test_waits_are_short_though_another_library_has_loaded_openmp():
    pytest.importorskip("lightgbm")
    code = """
    import os, sys, threading
    import lightgbm
    from ranksieve import threads

    threads.prepare_threads()
    assert threads._has_default_waits
    n_before = len(os.listdir("/proc/self/task"))
    for _ in range(2):
        with threads.using_threads(2):
            pass
    assert [thread.name for thread in threading.enumerate()].count("ranksieve-openmp") == 1
    assert len(os.listdir("/proc/self/task")) >= n_before + len(os.sched_getaffinity(0))
    """
    environment = {
        name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    }
    command = [sys.executable, "-c", textwrap.dedent(code)]
    environment["NUMBA_THREADING_LAYER"] = "omp"
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert result.returncode == 0, result.stderr
