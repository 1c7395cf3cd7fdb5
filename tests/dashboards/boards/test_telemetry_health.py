"""The dashboard of telemetry health: every word of sidecars and collectors on themselves."""

from dashboards.boards.telemetry_health import COLLECTORS, SIDECARS
from slo.signals import COLLECTOR_METRICS, SIDECAR_METRICS
from tests.dashboards.support import built, figures, panel, query_of

NOT_OF_ITSELF = 6
"""The first of the collector's metrics speak of services."""


def test_everything_that_they_say_of_themselves_is_on_it() -> None:
    text = " ".join(query_of(target) for one in figures(built(name="telemetry-health")) for target in one["targets"])
    own = (*SIDECAR_METRICS, *COLLECTOR_METRICS[NOT_OF_ITSELF:])
    assert [m.prometheus for m in own if m.prometheus not in text] == ["firsttoken_collector_tick_time_seconds_total"]


def test_a_counter_without_a_fault_is_0_while_its_teller_lives() -> None:
    found = built(name="telemetry-health")
    (faults,) = panel(found, "Telemetry faults")["targets"]
    assert "or on (environment, service_name) 0 * group" in faults["expr"]
    (dropped,) = panel(found, "Points and spans not counted")["targets"]
    assert "or on (job, instance) 0 * group by (job, instance) (firsttoken_collector_ticks_total)" in dropped["expr"]
    (told,) = panel(found, "Alerts delivered")["targets"]
    assert "or on (job, instance) 0 *" in told["expr"]
    (listens,) = panel(found, "Receivers that listen")["targets"]
    assert "0 *" not in listens["expr"]


def test_the_tables_show_what_they_know_of_it() -> None:
    titles = {one["title"] for one in figures(built("sqlite", name="telemetry-health"))}
    assert titles == {
        "Age of the last evaluation", "Time that is known", "Instances", "Error of percentiles",
        "OTLP bodies kept in mind", "Seconds lived per second",
    }  # fmt: skip


def test_no_title_is_there_twice() -> None:
    titles = [figure.title for figure in (*SIDECARS, *COLLECTORS)]
    assert len(set(titles)) == len(titles)
