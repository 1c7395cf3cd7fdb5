"""The Triton kernels without a GPU: computed by Triton's interpreter, and compiled for three generations of GPUs."""

import importlib.util
import os
import subprocess
import sys

import pytest


@pytest.mark.triton
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("way", "interpret"), [("interpreted", "1"), ("compiled", "0")])
def test_kernels_hold_without_a_gpu(way: str, interpret: str) -> None:
    assert importlib.util.find_spec("triton"), "no Triton is on the path; `make kernels` brings it"
    ran = subprocess.run(
        [sys.executable, "-m", "tests.demo_server.kernel_runs", way],
        env={**os.environ, "TRITON_INTERPRET": interpret},
        capture_output=True,
        text=True,
        timeout=570,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
