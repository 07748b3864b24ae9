"""Files to read."""

import pytest

from ranksieve.data.read import read


@pytest.fixture
def read_bytes(tmp_path):
    def go(content, **options):
        path = tmp_path / "data.txt"
        path.write_bytes(content)
        return read(path, **options)

    return go


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("letor")
