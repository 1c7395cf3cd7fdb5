"""torch behaves in tests as the server makes it behave: passive waiting, one thread. Set before anything imports it."""

import os
from collections.abc import Iterator
from pathlib import Path

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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A GPU without a torch that knows it is none: these tests are deselected then, as they are without a GPU."""
    here = Path(__file__).parent
    if torch.cuda.is_available():
        return
    without = [item for item in items if here in item.path.parents and item.get_closest_marker("gpu") is not None]
    config.hook.pytest_deselected(items=without)
    items[:] = [item for item in items if item not in without]
