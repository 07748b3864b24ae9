"""Model files that cannot be read are refused alike by every reader."""

from __future__ import annotations

import pytest

import ranksieve as rs
from ranksieve.errors import ModelError
from ranksieve.forest.formats.model_files import load_forest, read_content


@pytest.mark.parametrize("read", [read_content, load_forest, rs.load])
def test_a_file_that_cannot_be_read_is_named(read, tmp_path):
    with pytest.raises(ModelError, match=r"none\.txt: cannot be read \(No such file or directory\); check the path"):
        read(tmp_path / "none.txt")
    with pytest.raises(ModelError, match=r"cannot be read \(Is a directory\)"):
        read(tmp_path)


def test_the_content_is_the_bytes_of_the_file(tmp_path):
    (tmp_path / "model").write_bytes(b"tree\r\n\xff")
    assert read_content(tmp_path / "model") == b"tree\r\n\xff"
