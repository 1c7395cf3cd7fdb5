"""The simulated servers of bench/ grade the search here too; tests that ask for `database` run on two of them."""

import socket
import sys
from pathlib import Path

import pytest

from tests.collector.conftest import database, postgresql_server, shared_database

__all__ = ["database", "postgresql_server", "shared_database"]

sys.path.append(str(Path(__file__).parents[3] / "bench"))


@pytest.fixture
def unused_port() -> int:
    """A port that was free a moment ago, for a server that is told its port on the command line."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
