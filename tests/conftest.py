"""What every test run keeps to: nothing skips in CI, and tests for an accelerator run only where one is; those with a
whole vLLM run only when named."""

import os
import shutil
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# Machines are shared and slow at times: no test depends on the time an example takes.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

IN_CI = os.environ.get("CI") == "true"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect (not skip) what needs an accelerator where there is none, and a whole vLLM where it was not named."""
    unwanted = set() if shutil.which("nvidia-smi") else {"gpu"}
    if "vllm" not in config.getoption("markexpr"):
        unwanted.add("vllm")
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
