"""Panels that several dashboards have."""

from decimal import Decimal

from dashboards.boards import parts
from dashboards.boards.catalogue import source_of
from dashboards.boards.plan import Given
from dashboards.boards.slo_overview import PLAN
from dashboards.model import PROMETHEUS, About
from dashboards.promise import Limit
from tests.dashboards.support import many, specs

GIVEN = Given(specs())
SOURCE = source_of(PLAN, GIVEN, PROMETHEUS)
ABOUT = About("t", "d", "s")


def refs(limits: tuple[Limit, ...]) -> list[object]:
    panel = parts.limited(ABOUT, SOURCE, (SOURCE.load.offered(),), limits)
    return [target["refId"] for target in panel.body["targets"]]  # type: ignore[union-attr,index,call-overload]


def test_one_limit_is_drawn_and_several_are_asked_for_what_is_chosen() -> None:
    one, other = Limit("chat", "a", Decimal(1), "x"), Limit("chat", "b", Decimal(2), "y")
    assert refs(()) == refs((one,)) == ["A"]
    assert refs((one, other)) == ["A", "limit"]


def test_a_chart_of_nothing_is_none() -> None:
    assert parts.chart(ABOUT, ()) == ()
    assert len(parts.chart(ABOUT, (SOURCE.load.offered(),))) == 1


def test_a_latency_is_drawn_against_the_thresholds_of_its_signal() -> None:
    signal, title, metric = parts.LATENCIES[0]
    panel = parts.latency(SOURCE, Given(many(2)), signal, title, metric)
    targets = panel.body["targets"]
    assert [target["refId"] for target in targets] == ["p50", "p90", "p95", "p99", "limit"]  # type: ignore[union-attr,index,call-overload]


def test_alerts_have_the_column_that_they_are_sorted_by() -> None:
    panel = parts.alerts_now(SOURCE, height=9)
    assert (panel.width, panel.height) == (24, 9)
    assert panel.body["options"]["sortBy"] == [{"desc": False, "displayName": "Since"}]  # type: ignore[index,call-overload]
