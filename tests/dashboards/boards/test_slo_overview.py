"""The SLO overview: what is on it, and what slo.yaml changes."""

import json
import re

import pytest

from slo.promql import OVERVIEW_UID
from slo.signals import SIGNALS
from tests.dashboards.support import CHAT, Found, built, figures, many, panel, panels, query_of, specs


def test_it_has_the_uid_that_alerts_link_to() -> None:
    assert built()["uid"] == OVERVIEW_UID


def test_uids_and_titles_differ_between_datasources() -> None:
    found = [built(name) for name in ("prometheus", "postgres", "sqlite")]
    assert len({one["uid"] for one in found}) == len({one["title"] for one in found}) == 3


def test_it_grows_neither_in_panels_nor_in_queries_with_its_services() -> None:
    few, lots = built(of=many(1)), built(of=many(10))
    assert [one["title"] for one in panels(few)] == [one["title"] for one in panels(lots)]
    drawn = [sum(t["refId"] != "limit" for one in figures(of) for t in one["targets"]) for of in (few, lots)]
    assert drawn[0] == drawn[1]
    assert panel(lots, "Objectives")["gridPos"]["h"] == 14


def steps(found: Found, title: str) -> list[float]:
    return [step["value"] for step in panel(found, title)["fieldConfig"]["defaults"]["thresholds"]["steps"][1:]]


def test_thresholds_are_those_of_the_spec_in_its_own_units() -> None:
    found = built()
    assert steps(found, "Time to first token") == [0.5]
    assert steps(found, "Time per output token") == [0.05]
    assert steps(found, "Request duration") == [20]
    assert steps(found, "KV-cache occupancy") == [0.9]
    assert steps(found, "Running and waiting in the engine") == [10]
    changed = built(of=specs(CHAT.replace("500ms", "700ms")))
    assert steps(changed, "Time to first token") == [0.7]


def test_burn_is_drawn_against_the_factors_of_its_tier() -> None:
    found = built()
    assert steps(found, "Burn over 1h and 5m: fast") == [2.5, 5, 13.44]
    assert steps(found, "Burn over 6h and 30m: medium") == [1.5, 3, 5.6]
    limit = next(t for t in panel(found, "Burn over 1h and 5m: fast")["targets"] if t["refId"] == "limit")
    assert 'objective=~"ttft"' in limit["expr"]
    assert '"page above 13.44"' in limit["expr"]


def test_a_chart_with_one_limit_asks_no_query_for_it() -> None:
    targets = panel(built(), "Time to first token")["targets"]
    assert [target["refId"] for target in targets] == ["p50", "p95", "p99"]


def test_every_threshold_of_ten_services_is_a_line_of_its_own() -> None:
    (limit,) = (t for t in panel(built(of=many(10)), "Time to first token")["targets"] if t["refId"] == "limit")
    assert len(re.findall(r'"at most [^"]*"', limit["expr"])) == 10


def test_a_spec_without_latency_or_tiers_still_has_its_overview() -> None:
    short = "service: s\nobjectives: [{name: a, signal: availability, target: 99%, window: 30m}]\n"
    found = built(of=specs(short))
    assert steps(found, "Time to first token") == []
    assert [target["refId"] for target in panel(found, "Burn over 30m")["targets"]] == ["long"]


def test_rates_span_four_scrapes_whatever_the_interval() -> None:
    """F04: `$__rate_interval` is at least four times the step, so a step of the scrape interval gives 4 m at 60 s."""
    for interval_s in (15, 60):
        found = built(scrape_interval_s=interval_s)
        assert {one["interval"] for one in figures(found)} == {f"{interval_s}s"}
        assert not re.search(r"rate\([^\[]*\[[0-9]", json.dumps(found))


def test_the_contract_in_words_stands_in_a_closed_section() -> None:
    found = built()
    (closed,) = (one for one in found["panels"] if one.get("collapsed"))
    (words,) = closed["panels"]
    assert "| chat | answered | 99.9% of requests answered, over 28d |" in words["options"]["content"]


@pytest.mark.parametrize("datasource", ["prometheus", "postgres", "sqlite"])
def test_no_query_names_a_service_that_is_not_in_the_spec(datasource: str) -> None:
    found = built(datasource, specs(CHAT.replace("service: chat", "service: writer")))
    assert all("chat" not in query_of(target) for one in figures(found) for target in one["targets"])


def test_every_signal_that_can_be_promised_has_a_chart() -> None:
    with_threshold = {name for name, signal in SIGNALS.items() if signal.threshold != "none"}
    drawn = ("Time to first token", "Time per output token", "Request duration", "KV-cache occupancy")
    assert len(with_threshold) == len([*drawn, "Running and waiting in the engine"])
    assert all(steps(built(), title) for title in drawn)


def test_what_no_objective_sees_is_asked_without_objectives_that_judge_time() -> None:
    for title in ("Requests that each objective judges", "Requests that no objective judges"):
        (target,) = panel(built(), title)["targets"]
        assert 'objective!~"kv-headroom|short-queue"' in target["expr"]
        (target,) = panel(built("sqlite"), title)["targets"]
        assert "NOT IN ('kv-headroom', 'short-queue')" in target["queryText"]
