"""Checkpoints, and Ctrl-C."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.errors import InterruptedTraining, ModelError, ParameterError
from ranksieve.forest.formats.lightgbm_writer import to_text
from samples import small_dataset

SMALL = {"trees": 12, "leaves": 6, "min_docs": 3, "learning_rate": 0.2}


def stopping(step: int, error: type[BaseException]):
    """A callback that raises after so many trees."""

    def stop(record):
        if record.step == step:
            raise error

    return stop


@pytest.mark.parametrize("stop_after", [4, 7, 10])
@pytest.mark.parametrize(("algo", "gain"), [("selgb", "variance"), ("selgb", "newton"), ("sgb", "newton")])
def test_resuming_gives_the_same_model(tmp_path, data, algo, gain, stop_after):
    selecting = {"negatives": 0.3, "min_negatives": 1, "every": 3}
    options = dict(SMALL, algo=algo, gain=gain, feature_fraction=0.7, valid=small_dataset(seed=4), **selecting)
    whole = rs.train(data, **options)

    with pytest.raises(ZeroDivisionError):
        rs.train(
            data,
            callbacks=[stopping(stop_after, ZeroDivisionError)],
            checkpoint=tmp_path,
            checkpoint_every=2,
            **options,
        )
    resumed = rs.train(data, checkpoint=tmp_path, checkpoint_every=2, resume=True, **options)
    assert to_text(whole) == to_text(resumed)
    again = rs.train(data, checkpoint=tmp_path, checkpoint_every=2, resume=True, **options)
    assert to_text(again) == to_text(whole)


def test_checkpoints_of_other_data_or_parameters_are_refused(tmp_path, data):
    rs.train(data, checkpoint=tmp_path, **SMALL)
    with pytest.raises(ModelError, match="leaves"):
        rs.train(data, checkpoint=tmp_path, resume=True, **dict(SMALL, leaves=7))
    with pytest.raises(ModelError, match="training data"):
        rs.train(small_dataset(seed=1), checkpoint=tmp_path, resume=True, **SMALL)
    fewer = data.take_queries(range(2))  # without some of the selected rows
    with pytest.raises(ModelError, match="made with another training data; resume with the same data"):
        rs.train(fewer, checkpoint=tmp_path, resume=True, **SMALL)
    (tmp_path / "checkpoint.npz").write_bytes(b"PK")
    with pytest.raises(ModelError, match="delete it"):
        rs.train(data, checkpoint=tmp_path, resume=True, **SMALL)


def _with_flag(content: bytes, place: int, value: int) -> bytes:
    """A zip file with two bytes of the first entry changed, in its own header and in the directory."""
    directory = content.index(b"PK\x01\x02")
    changed = bytearray(content)
    changed[place : place + 2] = changed[directory + place + 2 : directory + place + 4] = value.to_bytes(2, "little")
    return bytes(changed)


def _with_meta(content: bytes, **changes) -> bytes:
    """A checkpoint with other facts in it."""
    with np.load(io.BytesIO(content)) as archive:
        arrays = dict(archive)
    meta = json.loads(arrays["meta"].tobytes()) | changes
    arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _plain_array() -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: _with_flag(content, 6, 1),  # encrypted: a RuntimeError of zipfile
        lambda content: _with_flag(content, 8, 99),  # unknown compression: a NotImplementedError
        lambda content: _plain_array(),  # an array in the place of an archive
        lambda content: _with_meta(content, fingerprint=[]),
        lambda content: _with_meta(content, history=[]),
        lambda content: _with_meta(content, history={"train": {"ndcg@10": 3}}),
        lambda content: _with_meta(content, history={"train": {"ndcg@10": [0.5]}}),
        lambda content: _with_meta(content, seconds={"a": 1}),
    ],
    ids=range(8),
)
def test_damaged_checkpoints_are_refused(tmp_path, data, damage):
    rs.train(data, checkpoint=tmp_path, **SMALL)
    path = tmp_path / "checkpoint.npz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ModelError, match=r"checkpoint\.npz: .*delete it to start anew"):
        rs.train(data, checkpoint=tmp_path, resume=True, **SMALL)


def test_checkpoints_depend_on_weights_validation_and_size(tmp_path, data):
    rs.train(data, checkpoint=tmp_path, **SMALL)
    with pytest.raises(ModelError, match="validation data"):
        rs.train(data, valid=data, checkpoint=tmp_path, resume=True, **SMALL)
    sizes = np.diff(data.offsets)
    weighted = rs.Dataset.from_arrays(data.features, data.labels, group=sizes, weights=np.full(data.n_docs, 2.0))
    with pytest.raises(ModelError, match="training data"):
        rs.train(weighted, checkpoint=tmp_path, resume=True, **SMALL)
    with pytest.raises(ModelError, match="12 trees already"):
        rs.train(data, checkpoint=tmp_path, resume=True, **dict(SMALL, trees=5))
    (tmp_path / "checkpoint.npz").write_bytes(b"")
    with pytest.raises(ModelError, match="delete it"):
        rs.train(data, checkpoint=tmp_path, resume=True, **SMALL)


@pytest.mark.parametrize("options", [{"checkpoint_every": 0}, {"checkpoint_every": 0.5}, {"checkpoint_minutes": -1.0}])
def test_times_between_checkpoints_are_checked_first(tmp_path, data, options):
    with pytest.raises(ParameterError, match=f"{next(iter(options))} is"):
        rs.train(data, checkpoint=tmp_path / "state", **options, **SMALL)
    assert not (tmp_path / "state").exists()


def test_ctrl_c_keeps_the_finished_trees(tmp_path, data):
    options = dict(SMALL, algo="selgb", negatives=0.3, min_negatives=1, valid=small_dataset(seed=4), early_stopping=0)
    with pytest.raises(InterruptedTraining) as stopped:
        rs.train(data, callbacks=[stopping(5, KeyboardInterrupt)], checkpoint=tmp_path, **options)
    assert isinstance(stopped.value, KeyboardInterrupt)
    whole = rs.train(data, **options)
    np.testing.assert_array_equal(stopped.value.model.predict(data), whole.predict(data, trees=5))
    assert len(stopped.value.model.info["history"]["valid"]["ndcg@10"]) == 5
    resumed = rs.train(data, checkpoint=tmp_path, resume=True, **options)  # from the fifth tree, not from none
    assert to_text(resumed) == to_text(whole)


def test_ctrl_c_in_the_middle_of_a_tree(data):
    def select(view):
        if view.step == 3:
            raise KeyboardInterrupt
        return np.arange(50)

    with pytest.raises(InterruptedTraining) as stopped:
        rs.train(replace(data, features=np.nan_to_num(data.features)), selection=select, init="f1", **SMALL)
    model = stopped.value.model
    assert model.models[1].n_trees == 3 and len(model.predict(data)) == data.n_docs


def test_ctrl_c_before_the_first_tree(data):
    def objective(labels, scores, offsets):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        rs.train(data, objective=objective, algo="lambdamart", **SMALL)
    assert not isinstance(stopped.value, InterruptedTraining)
