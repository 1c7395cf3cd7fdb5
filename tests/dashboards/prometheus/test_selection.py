"""The variables of a dashboard as matchers."""

from dashboards.prometheus.selection import Selection
from slo.promql import INSTANCE_LABEL, OBJECTIVE_LABEL, SERVICE_KEY
from slo.signals import GPU_POWER, HEARTBEAT, KV_OCCUPANCY, MODEL_LABEL, REQUESTS, TICKS

ALL = Selection((*SERVICE_KEY, MODEL_LABEL, OBJECTIVE_LABEL, INSTANCE_LABEL, "hw_id"))
BARE = Selection(SERVICE_KEY)


def test_a_variable_that_the_dashboard_lacks_chooses_nothing() -> None:
    assert set(ALL.of_objective) == {"environment=~", "service_name=~", "model_name=~", "objective=~"}
    assert set(BARE.of_objective) == set(BARE.of_service) == {"environment=~", "service_name=~"}
    assert set(BARE.of_alert) == {"alertname=~", "service_name!=", "environment=~", "service_name=~"}


def test_alerts_of_a_whole_service_stay_whatever_model_is_chosen() -> None:
    assert ALL.of_alert["model_name=~"] == "($model_name)?|[*]"
    assert ALL.of_alert["objective=~"] == "($objective)?"


def test_a_metric_is_chosen_by_the_labels_that_it_has() -> None:
    assert ALL.of_metric(REQUESTS)["model_name=~"] == "$model_name"
    assert ALL.of_metric(KV_OCCUPANCY)["model_name=~"] == "($model_name)?"
    assert set(ALL.of_metric(HEARTBEAT)) == {"environment=~", "service_name=~", "instance=~"}
    assert set(ALL.of_metric(GPU_POWER)) == {"environment=~", "service_name=~", "instance=~", "hw_id=~"}
    assert ALL.of_metric(TICKS) == {}
    assert ALL.of_promise == {"service_name=~": "$service_name", "objective=~": "$objective"}
