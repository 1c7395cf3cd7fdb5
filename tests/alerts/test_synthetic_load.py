"""The share of synthetic requests, put to the real rule engine by promtool."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from alerts.group import Group
from alerts.synthetic_load import less_synthetic, synthetic_rule
from slo.promql import SYNTHETIC_SHARE
from tests.alerts.support import heartbeat, promtool_test, spec

pytestmark = pytest.mark.tools

GROUP = Group("g", 30, (synthetic_rule(spec()),))
SHARE = f"sum by (instance) ({SYNTHETIC_SHARE})"


def requests(instance: str = "a", request_class: str = "") -> str:
    of_class = f',class="{request_class}"' if request_class else ""
    return f'firsttoken_requests_total{{service_name="chat",instance="{instance}",outcome="ok"{of_class}}}'


def synthetic(instance: str = "a") -> str:
    return requests(instance, "synthetic")


NOBODY: Mapping[str, float] = {}
A_HALF, A_AND_B = {'{instance="a"}': 0.5}, {'{instance="a"}': 0.5, '{instance="b"}': 0.5}
SHARES = {
    "half of what ends": ({requests(): "0+5x20", synthetic(): "0+5x20"}, A_HALF),
    "classes of users count among the users": (
        {requests(request_class="batch"): "0+5x20", synthetic(): "0+5x20"},
        A_HALF,
    ),
    "a service that has none": ({requests(): "0+5x20"}, NOBODY),
    "nothing ends": ({requests(): "7x20", synthetic(): "9x20"}, NOBODY),
    "another instance's are its own": (
        {requests(): "0+5x20", synthetic(): "0+5x20", requests("b"): "0+5x20", heartbeat(instance="b"): "0+15x20"},
        A_HALF,
    ),
    "an instance that counts none goes by its service": (
        {requests(): "0+5x20", synthetic(): "0+5x20", heartbeat(instance="b"): "0+15x20"},
        A_AND_B,
    ),
}


@pytest.mark.parametrize("case", SHARES)
def test_the_share_of_an_instance(tmp_path: Path, case: str) -> None:
    series, expected = SHARES[case]
    promtool_test(tmp_path, groups=[GROUP], series=series, checks=[("4m30s", SHARE, expected)])


def test_a_run_is_left_out_as_long_as_the_window_holds_it(tmp_path: Path) -> None:
    """The run takes the sixth minute; two minutes of it are looked at, and ten remembered."""
    left = f"count by (instance) (firsttoken_engine_waiting\n{less_synthetic(spec(), 600)})"
    series = {
        'firsttoken_engine_waiting{service_name="chat",instance="a"}': "1x100",
        requests(): "0+5x100",
        synthetic(): "0x20 50+50x3 200x76",
    }
    a = {'{instance="a"}': 1.0}
    checks = [("5m", left, a), ("6m", left, NOBODY), ("16m", left, NOBODY), ("19m", left, a)]
    promtool_test(tmp_path, groups=[GROUP], series=series, checks=checks)
