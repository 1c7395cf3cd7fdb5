"""What certify and batch found, as limits."""

from decimal import Decimal

from dashboards.capacity_result import batch_limits, certified, load_limits
from slo.capacity_result import CapacityResult

FOUND = CapacityResult("chat", Decimal("12.50"), None, Decimal(32), None)


def test_what_is_known_is_a_limit_and_what_is_not_is_left_out() -> None:
    assert [(limit.service, limit.text) for limit in load_limits((FOUND,))] == [("chat", "certified 12.5/s")]
    assert [limit.value for limit in batch_limits((FOUND,))] == [32]


def test_each_service_has_its_own() -> None:
    results = FOUND, CapacityResult("search", Decimal(7), Decimal(9))
    assert [limit.service for limit in certified(results)] == ["chat", "search"]
    assert [limit.text for limit in load_limits(results)] == ["certified 12.5/s", "certified 7/s", "refuted 9/s"]
