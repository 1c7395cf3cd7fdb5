"""A real llama.cpp for the tests of this folder: its model is made in the session's own temporary folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import llamacpp_server
from tests.engines.llamacpp_model import write_model


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("llamacpp") / "tiny.gguf")


@pytest.fixture(scope="module")
def engine(model: Path) -> Iterator[llamacpp_server.Engine]:
    with llamacpp_server.running(model) as running:
        yield running
