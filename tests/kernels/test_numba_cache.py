"""A first use of kernels is logged."""

from ranksieve.kernels import numba_cache
from ranksieve.kernels.numba_cache import log_first_use


def test_compiling_is_logged_where_nothing_is_kept(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(numba_cache, "CACHE", tmp_path)
    for name in ("NUMBA_DISABLE_JIT", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    log_first_use("growing")
    assert [(one.name, one.levelname, one.message[:17]) for one in caplog.records] == [
        ("ranksieve", "WARNING", "compiling kernels")
    ]
    (tmp_path / "growing.grow_tree-1.py311.nbi").touch()
    log_first_use("growing")
    assert len(caplog.records) == 1
