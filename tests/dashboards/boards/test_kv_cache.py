"""The dashboard of KV cache and batching."""

from decimal import Decimal

from slo.capacity_result import CapacityResult
from tests.dashboards.support import built, panel


def test_occupancy_and_queue_are_drawn_against_the_contract() -> None:
    found = built(name="kv-cache")
    for title, limit in (("Occupancy by instance", 0.9), ("Waiting by instance", 10)):
        steps = panel(found, title)["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert [step["value"] for step in steps] == [0, limit]


def test_occupancy_of_several_is_the_fullest_never_a_sum() -> None:
    for title in ("Occupancy by instance", "Occupancy by rank"):
        (target,) = panel(built(name="kv-cache"), title)["targets"]
        assert target["expr"].startswith("max by (")


def test_the_batch_is_drawn_against_what_was_found_of_it() -> None:
    results = (CapacityResult("chat", chosen_batch=Decimal(32), feasible_max=Decimal(48)),)
    found = panel(built(name="kv-cache", results=results), "Running by instance")
    assert '"chosen batch 32"' in found["targets"][1]["expr"]
    assert len(panel(built(name="kv-cache"), "Running by instance")["targets"]) == 1
