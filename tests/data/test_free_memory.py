"""The memory that is free, of machines and of containers with a limit."""

from __future__ import annotations

import pytest

from ranksieve.data.free_memory import available_memory, resident_memory
from ranksieve.text_formats import is_size, read_size, size_text


def write(root, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


MACHINE = {"proc/meminfo": "MemTotal:  16000000 kB\nMemAvailable:  8000000 kB\n"}
NO_LIMIT = 8_000_000 << 10


def test_a_machine_without_limits(tmp_path):
    write(tmp_path, MACHINE)
    assert available_memory(tmp_path) == NO_LIMIT
    write(tmp_path, {"proc/self/cgroup": "0::/user\n", "sys/fs/cgroup/user/memory.max": "max\n"})
    assert available_memory(tmp_path) == NO_LIMIT


@pytest.mark.parametrize("folder", ["user/job", "user", ""], ids=["own", "around it", "container"])
def test_cgroups_of_version_2(tmp_path, folder):
    here = f"sys/fs/cgroup/{folder}".rstrip("/")
    limits = {
        "proc/self/cgroup": "0::/user/job\n",
        f"{here}/memory.max": "4000000000\n",
        f"{here}/memory.current": "3000000000\n",
        f"{here}/memory.stat": "anon 1\ninactive_file 500000000\n",
    }
    write(tmp_path, {**MACHINE, **limits})
    assert available_memory(tmp_path) == 1_500_000_000


def test_cgroups_of_version_1(tmp_path):
    limits = {
        "proc/self/cgroup": "7:cpu:/\n4:memory:/job\n0::/\n",
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "4000000000\n",
        "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "1000000000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "1000000000\n",
    }
    write(tmp_path, {**MACHINE, **limits})
    assert available_memory(tmp_path) == 3_000_000_000


def test_a_process_has_a_size():
    assert resident_memory() > 1 << 20


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4G", 4 << 30), ("800M", 800 << 20), ("1.5 GiB", 3 << 29), ("64kb", 64 << 10), ("1000", 1000), ("1T", 1 << 40)],
)
def test_sizes(text, expected):
    assert read_size(text) == expected and is_size(text)


@pytest.mark.parametrize("text", ["", "G", "-4G", "four", "0", "4X", "nan", "inf"])
def test_texts_that_are_no_sizes(text):
    assert not is_size(text)


def test_sizes_as_texts():
    assert (size_text(4096), size_text("4G")) == ("4096", "4G")
