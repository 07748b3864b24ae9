import time

import numpy as np

import ranksieve as rs
from ranksieve.data.blocks import ROWS_AHEAD, reading_ahead
from ranksieve.data.joined import JoinedSource, Piece


def test_a_block_stays_as_it_is_while_blocks_of_other_queries_are_skipped(tmp_path):
    n = 4 * ROWS_AHEAD
    features = np.stack([np.arange(n), -np.arange(n)], axis=1).astype(np.float32)
    data = rs.Dataset.from_arrays(features, np.zeros(n), qid=np.repeat(np.arange(4), ROWS_AHEAD))
    rs.io.write_parquet(data, tmp_path / "data.parquet")
    source = JoinedSource([Piece(str(tmp_path / "data.parquet"), range(1))])
    with reading_ahead(source) as blocks:
        block = next(blocks)
        time.sleep(0.3)  # the others are read meanwhile
        np.testing.assert_array_equal(block.rows[:], features[:ROWS_AHEAD])
        assert next(blocks, None) is None


def test_data_in_memory_is_not_read_ahead():
    data = rs.synth.cubic(3)
    assert not JoinedSource([Piece(data), Piece(data)]).can_read_ahead
