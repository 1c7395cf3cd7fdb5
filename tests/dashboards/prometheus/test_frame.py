"""Variables, marks and limits over Prometheus."""

from decimal import Decimal

from dashboards.prometheus.frame import PrometheusFrame
from dashboards.prometheus.selection import Selection
from dashboards.promise import Limit
from slo.promql import OBJECTIVE_LABEL, SERVICE_KEY

FRAME = PrometheusFrame(Selection((*SERVICE_KEY, OBJECTIVE_LABEL)))


def test_a_dashboard_has_the_variables_that_it_names_in_their_order() -> None:
    assert [variable.name for variable in FRAME.variables()] == ["environment", "service_name", "objective"]


def test_objectives_of_one_limit_share_a_line_and_a_service_has_its_own() -> None:
    limits = (
        Limit("chat", "a.b", Decimal(2), "at most 2"),
        Limit("batch", "c", Decimal(2), "at most 2"),
        Limit("chat", "", Decimal(1), "certified 1/s"),
    )
    of_service, shared = FRAME.limits(limits).text.split("\nor\n")
    assert of_service == (
        'label_replace(1 * group (firsttoken:objective_target:ratio{service_name=~"$service_name",'
        'objective=~"$objective",service_name="chat"}), "limit", "certified 1/s", "", "")'
    )
    assert 'objective=~"a\\\\.b"' in shared
    assert 'service_name="batch",objective=~"c"' in shared


def test_a_mark_stands_for_each_kind_of_event() -> None:
    marks = FRAME.marks("alerts", "drift", "starts", "contracts")
    assert [one.name for one in marks] == ["Firing alerts", "Drift", "Starts", "Contract changed"]
    assert len({one.color for one in marks}) == 4
