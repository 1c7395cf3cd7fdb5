"""How the objectives stand, as expressions; `test_live` asks them."""

from dashboards.prometheus.objectives import PrometheusObjectives
from dashboards.prometheus.selection import Selection
from slo.promql import OBJECTIVE_LABEL, SERVICE_KEY
from slo.signals import MODEL_LABEL

SELECTION = Selection((*SERVICE_KEY, MODEL_LABEL, OBJECTIVE_LABEL))
OBJECTIVES = PrometheusObjectives(SELECTION, (86400, 3600), ("kv-headroom",))


def test_coverage_is_that_of_the_longest_period_that_an_objective_has() -> None:
    query = OBJECTIVES.coverage()
    assert query.reads == ("firsttoken:coverage:ratio1d", "firsttoken:coverage:ratio1h")
    assert query.text.index("ratio1d") < query.text.index("ratio1h")


def test_all_models_together_come_first_and_each_chosen_one_where_they_are_not_chosen() -> None:
    together, each = OBJECTIVES.budget_left().text.split("or on (environment, service_name, objective)")
    assert 'model_name=~"$model_name",objective=~"$objective",model_name="*"' in together
    assert 'model_name!="*"' in each


def test_only_requests_that_could_be_judged_are_asked_for() -> None:
    text = OBJECTIVES.unjudged().text
    assert 'outcome!~"quota|client_error"' in text
    assert 'class!="synthetic"' in text
    assert 'objective!~"kv-headroom"' in text
    assert "objective!~" not in PrometheusObjectives(SELECTION, (3600,)).unjudged().text
