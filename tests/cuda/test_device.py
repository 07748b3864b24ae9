"""Choosing a device."""

from __future__ import annotations

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.cuda import device
from ranksieve.errors import DeviceError, ParameterError


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "missing", lambda: "no NVIDIA GPU or no driver for it was found; check nvidia-smi")


def test_without_a_gpu_cuda_fails_in_one_line(no_gpu: None) -> None:
    with pytest.raises(DeviceError) as error:
        rs.train(rs.synth.cubic(4), trees=1, device="cuda")
    assert str(error.value) == (
        "device='cuda' cannot be used: no NVIDIA GPU or no driver for it was found; check nvidia-smi; or use "
        "device='auto' or cpu"
    )


def test_without_a_gpu_auto_uses_the_cpu(no_gpu: None) -> None:
    data = rs.synth.cubic(4)
    a, b = (rs.train(data, trees=2, leaves=4, device=name) for name in ("cpu", "auto"))
    assert np.array_equal(a.predict(data), b.predict(data, device="auto"))
    assert "device" not in a.info["params"]


def test_an_unknown_device_is_refused() -> None:
    data = rs.synth.cubic(4)
    with pytest.raises(ParameterError, match=r"device is 'tpu'.* expected one of cpu, cuda, auto"):
        rs.train(data, trees=1, device="tpu")
    with pytest.raises(ParameterError, match="device is 'tpu'; expected cpu, cuda or auto"):
        rs.train(data, trees=1, leaves=4).predict(data, device="tpu")
