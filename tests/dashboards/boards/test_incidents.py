"""The dashboard of drift and incidents."""

import pytest

from tests.dashboards.support import built, panel


def test_it_is_marked_with_all_that_may_have_changed() -> None:
    names = [marks["name"] for marks in built(name="incidents")["annotations"]["list"]]
    assert names == ["Firing alerts", "Drift", "Starts", "Contract changed", "Deploys told to Grafana"]


@pytest.mark.parametrize("datasource", ["prometheus", "postgres", "sqlite"])
def test_latency_is_held_against_yesterday_and_a_week_ago(datasource: str) -> None:
    found = panel(built(datasource, name="incidents"), "Time to first token against the past")
    assert [target["refId"] for target in found["targets"]] == ["now", "ago1d", "ago7d"]


def test_both_hashes_of_a_contract_in_change_are_rows() -> None:
    renamed = panel(built(name="incidents"), "Versions of the contract that are judged")["transformations"][-1]
    assert renamed["options"]["renameByName"]["objective_hash"] == "Hash of its terms"
