"""The capacity dashboard, with and without a certified capacity."""

from decimal import Decimal

import pytest

from slo.capacity_result import CapacityResult
from tests.dashboards.support import built, panel, panels, query_of

RESULTS = (CapacityResult("chat", Decimal("12.5"), Decimal(15), Decimal(32)),)


@pytest.mark.parametrize("datasource", ["prometheus", "postgres", "sqlite"])
def test_load_is_drawn_against_what_is_certified_and_what_is_refuted(datasource: str) -> None:
    found = built(datasource, name="capacity", results=RESULTS)
    (limit,) = (target for target in panel(found, "Load")["targets"] if target["refId"] == "limit")
    assert "certified 12.5/s" in query_of(limit)
    assert "refuted 15/s" in query_of(limit)
    assert "12.5" in query_of(panel(found, "Headroom")["targets"][0])
    assert panel(found, "Batch")["fieldConfig"]["defaults"]["thresholds"]["steps"][-1]["value"] == 32
    assert "| chat | certified 12.5/s |" in panel(found, "Certified capacity")["options"]["content"]


@pytest.mark.parametrize("datasource", ["prometheus", "postgres", "sqlite"])
def test_without_one_no_headroom_is_made_up(datasource: str) -> None:
    found = built(datasource, name="capacity")
    assert "Headroom" not in {one["title"] for one in panels(found)}
    assert len(panel(found, "Load")["targets"]) == 1
    assert "firsttoken capacity certify" in panel(found, "Certified capacity")["options"]["content"]
