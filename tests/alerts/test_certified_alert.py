"""A service above its certified load: put to the real rule engine by promtool."""

from decimal import Decimal
from pathlib import Path

import pytest

from alerts.annotations import Links
from alerts.certified_alert import certified_alert
from alerts.group import Group
from tests.alerts.support import firing, promtool_test, spec

pytestmark = pytest.mark.tools

ALERT = certified_alert(spec(), Decimal("1.5"), Links())
FIRES = firing("LLMAboveCertifiedCapacity", by="service_name")


def requests(outcome: str = "ok", instance: str = "a", request_class: str = "") -> str:
    labels = f'service_name="chat",instance="{instance}",outcome="{outcome}",class="{request_class}"'
    return f"firsttoken_requests_total{{{labels}}}"


CHAT = {'{service_name="chat"}': 1.0}
LOADS = {
    "more than it is certified for": ({requests(): "0+50x80"}, CHAT),
    "instances are added": ({requests(): "0+25x80", requests(instance="b"): "0+25x80"}, CHAT),
    "as many as it is certified for": ({requests(): "0+44x80"}, {}),
    "of which some are synthetic": ({requests(): "0+40x80", requests(request_class="synthetic"): "0+90x80"}, {}),
    "of which some were refused": (
        {requests(): "0+40x80", requests("quota"): "0+9x80", requests("client_error"): "0+9x80"},
        {},
    ),
    "what the server sheds counts": ({requests(): "0+40x80", requests("rejected"): "0+9x80"}, CHAT),
    "a minute's rush": ({requests(): "0+10x60 780+180x2 1140+10x17"}, {}),
}


@pytest.mark.parametrize("case", LOADS)
def test_a_load_above_the_certified_one_is_a_ticket(tmp_path: Path, case: str) -> None:
    series, expected = LOADS[case]
    promtool_test(
        tmp_path, groups=[Group("g", 30, (ALERT,))], series=series, checks=[("35m", FIRES, expected)], step="30s"
    )


def test_it_says_both_rates() -> None:
    assert ALERT.labels["notify"] == "ticket"
    assert (
        "{{ $value | humanize }} requests a second over the last 10m, certified are 1.5."
        in ALERT.annotations["description"]
    )
