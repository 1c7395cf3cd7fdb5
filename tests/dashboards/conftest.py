"""What is dear to set up, once for all tests: a Prometheus that has seen every metric, and the two databases."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.collector import support as collector_support
from tests.dashboards import live as scene
from tests.dashboards import tables
from tests.dashboards.database import Database
from tests.dashboards.live import Live
from tests.dashboards.support import everything


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A Prometheus that has seen the pages of sidecars and a collector, and fires for the objective `answered`."""
    with scene.running(Path(tmp_path_factory.mktemp("prometheus"))) as found:
        yield found


@pytest.fixture(scope="session", params=["sqlite", pytest.param("postgres", marks=pytest.mark.tools)])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """An hour of the collector's tables."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            ask = stack.enter_context(tables.sqlite(Path(tmp_path_factory.mktemp("sqlite"))))
        else:
            if collector_support.initdb() is None:
                pytest.skip("postgresql is missing: tests/install_tools.sh installs it")
            ask = stack.enter_context(tables.postgresql(stack.enter_context(collector_support.postgresql())))
        yield Database(ask, everything(request.param))
