"""torch behaves in tests as the server makes it behave: passive waiting, one thread. Set before anything imports it."""

import os
from collections.abc import Iterator

import pytest

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch

from tests.demo_server.support import Server, running_server

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def healthy() -> Iterator[Server]:
    """One server for all tests that switch no fault and end what they start."""
    with running_server("--model", "demo", "--model", "other") as server:
        yield server
