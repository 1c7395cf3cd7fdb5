"""What every test run keeps to: nothing skips in CI, and tests for an accelerator run only where one is; those with a
whole vLLM, or the engine of ClickHouse, run only when named."""

import logging
import os
import shutil
import signal
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

# Machines are shared and slow at times: no test depends on the time an example takes.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

os.environ.pop("COLUMNS", None)  # how wide the terminal of whoever runs the tests is, which is no matter of theirs

LARGE = ("vllm", "clickhouse", "release", "triton", "tutorial", "victoria")
"""Marks of tests that run only where they are named: `-m vllm`."""
# A run in the background of a shell has SIGINT ignored, and so would have every program that a test interrupts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

IN_CI = os.environ.get("CI") == "true"


@pytest.fixture(autouse=True)
def _logs_as_they_were() -> Iterator[None]:
    """A command that runs within a test says what all loggers log; the next test has its own say."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect (not skip) what needs an accelerator where there is none, and what is large where it was not named."""
    unwanted = set() if shutil.which("nvidia-smi") else {"gpu"}
    unwanted |= {name for name in LARGE if name not in config.getoption("markexpr")}
    without = [item for item in items if any(item.get_closest_marker(name) is not None for name in unwanted)]
    if without:
        config.hook.pytest_deselected(items=without)
        items[:] = [item for item in items if item not in without]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skip is a failure: a missing tool must not look like a passing test."""
    report = yield
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and nothing may skip with CI=true: {report.longrepr}"
    return report
