"""The variables of a dashboard as conditions on rows."""

from dashboards.sql.selection import ALWAYS, Selection
from slo.promql import INSTANCE_LABEL, OBJECTIVE_LABEL, SERVICE_KEY
from slo.signals import GPU_POWER, HEARTBEAT, KV_OCCUPANCY, MODEL_LABEL, REQUESTS, TICKS

ALL = Selection((*SERVICE_KEY, MODEL_LABEL, OBJECTIVE_LABEL, INSTANCE_LABEL, "hw_id"))
NONE = Selection(())
ONE = "('*' IN (${model_name:sqlstring}) OR model IN (${model_name:sqlstring}))"


def test_a_variable_that_the_dashboard_lacks_chooses_nothing() -> None:
    assert NONE.of_service == NONE.of_objective == NONE.of_promise == NONE.of_metric(REQUESTS) == ALWAYS
    assert ALL.chosen(MODEL_LABEL) == ONE
    assert Selection((MODEL_LABEL,)).of_model == ONE


def test_objectives_are_told_together_unless_a_model_is_chosen() -> None:
    assert ALL.together.endswith("model IN (${model_name:sqlstring})")
    assert NONE.together == "model = '*'"


def test_a_metric_is_chosen_by_the_columns_that_it_has() -> None:
    assert ALL.of_metric(TICKS) == ALWAYS
    assert "model" not in ALL.of_metric(HEARTBEAT)
    assert "OR model = 'unknown')" in ALL.of_metric(KV_OCCUPANCY)
    assert "unknown" not in ALL.of_metric(REQUESTS)
    assert "x IN (${hw_id:sqlstring})" in ALL.of_metric(GPU_POWER, "x")
