"""How the objectives stand, as queries; `test_database` asks them."""

import pytest

from dashboards.model import DATASOURCES
from dashboards.sql.dialect import Dialect
from dashboards.sql.objectives import SqlObjectives
from dashboards.sql.selection import Selection
from slo.promql import OBJECTIVE_LABEL, SERVICE_KEY
from slo.signals import MODEL_LABEL
from tests.dashboards.support import specs

SELECTION = Selection((*SERVICE_KEY, MODEL_LABEL, OBJECTIVE_LABEL))


@pytest.mark.parametrize("datasource", ["postgres", "sqlite"])
def test_targets_come_from_the_contract_and_the_rest_from_the_tables(datasource: str) -> None:
    (query,) = SqlObjectives(Dialect(DATASOURCES[datasource]), SELECTION, specs()).standing((3600, 60))
    assert "SELECT 'chat' AS service, 'answered' AS objective, 0.999 AS target" in query.text
    assert '"burn1h"' in query.text
    assert '"burn1m"' in query.text
    assert query.reads == ("budget", "burn_rate", "alert")


def test_only_requests_that_could_be_judged_are_asked_for() -> None:
    text = SqlObjectives(Dialect(DATASOURCES["sqlite"]), SELECTION, specs()).unjudged().text
    assert "NOT IN ('quota', 'client_error')" in text
    assert "objective NOT IN ('kv-headroom', 'short-queue')" in text
    assert "<> 'synthetic'" in text
