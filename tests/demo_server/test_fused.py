"""Where the fused operators are chosen, and what is said where they cannot be; `test_kernels` runs them."""

import logging
import sys

import pytest
import torch
from torch import Tensor

from bench.engine_parts.fake_gpu import DEVICE, fake_gpu
from demo_server import fused
from demo_server.fused import FUSED, operators_on
from demo_server.operators import PLAIN


def test_a_cpu_has_the_plain_ones() -> None:
    assert operators_on(torch.device("cpu"), 64) is PLAIN


def test_a_gpu_that_can_compile_has_the_fused_ones_for_heads_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Tensor] = []
    monkeypatch.setattr(fused, "gate", tried.append)
    with fake_gpu():
        assert operators_on(DEVICE, 64) is FUSED
        assert [x.device for x in tried] == [DEVICE]
        assert operators_on(DEVICE, 80) is PLAIN, "a row of the matrix unit is a power of two"
        assert len(tried) == 1


def test_without_a_compiler_it_is_said_and_all_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def gate(_x: Tensor) -> Tensor:
        raise RuntimeError("Failed to find C compiler")

    monkeypatch.setattr(fused, "gate", gate)
    with fake_gpu(), caplog.at_level(logging.WARNING):
        assert operators_on(DEVICE, 64) is PLAIN
    assert caplog.messages == [
        "Triton cannot be used here, so attention copies what it reads: Failed to find C compiler"
    ]


def test_triton_is_not_imported_where_nothing_is_launched() -> None:
    assert FUSED.gate is fused.gate
    assert "demo_server.kernels" not in sys.modules
