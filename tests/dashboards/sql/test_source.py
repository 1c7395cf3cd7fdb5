"""The tables' answers, put together for a dashboard; `test_database` asks them."""

import pytest

from dashboards.model import DATASOURCES
from dashboards.sql.source import sql_source
from slo.promql import SERVICE_KEY
from tests.dashboards.support import specs


@pytest.mark.parametrize("name", ["postgres", "sqlite"])
def test_a_source_has_the_variables_that_it_was_made_for_and_no_dcgm(name: str) -> None:
    source = sql_source(DATASOURCES[name], specs(), SERVICE_KEY)
    assert [variable.name for variable in source.frame.variables()] == list(SERVICE_KEY)
    assert source.datasource is DATASOURCES[name]
    assert source.dcgm is None
