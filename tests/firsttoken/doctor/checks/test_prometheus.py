"""What is said of a Prometheus."""

from dataclasses import replace

import pytest

from firsttoken.doctor.facts import Facts, ScrapeTarget
from slo.objective import parse
from tests.firsttoken.doctor.healthy import (
    INSTANCE,
    JOB,
    SIDECAR_URL,
    SPEC,
    Plant,
    Planted,
    healthy,
    of_code,
    prometheus,
    rules_of,
    says,
    wrong,
)

RECEIVER = 'firsttoken_collector_receiver_up{receiver="alertmanager"} 1\n'


def target(**changes: object) -> ScrapeTarget:
    usual = ScrapeTarget(JOB, INSTANCE, f"{SIDECAR_URL}/metrics", "up", "", 15.0)
    return replace(usual, **changes)  # type: ignore[arg-type]


def scraped_twice(facts: Facts) -> Facts:
    jobs = frozenset({(JOB, INSTANCE), ("pods", INSTANCE)})
    return prometheus(facts, targets=(target(), target(job="pods")), sidecars=jobs)


def watched_twice(facts: Facts) -> Facts:
    only_scrapes = {"job": JOB, "instance": "scraper:9464", "service_name": "chat", "objective": "ttft"}
    return prometheus(
        facts, events=(*facts.prometheuses[0].events, only_scrapes | {"objective_hash": SPEC.objectives[0].hash})
    )


PLANTED: Planted = {
    "a Prometheus of 2021": ("prometheus-too-old", lambda f: prometheus(f, version="2.30.1")),
    "a broken prometheus.yml": ("reload-failed", lambda f: prometheus(f, is_reloaded=False)),
    "a datasource without our metrics": (
        "not-scraped",
        lambda f: prometheus(f, events=(), in_flight=(), sidecars=frozenset()),
    ),
    "a sidecar that cannot be scraped any more": (
        "target-down",
        lambda f: prometheus(f, targets=(target(health="down", error="connection refused"),)),
    ),
    "a scrape every two minutes": ("scrape-too-slow", lambda f: prometheus(f, targets=(target(interval_s=120.0),))),
    "a sidecar under two jobs": ("double-counting", scraped_twice),
    "a proxy and a scrape of one server": ("double-counting", watched_twice),
    "no Alertmanager": ("no-alertmanager", lambda f: prometheus(f, alertmanagers=())),
    "Alertmanagers that relabelling drops": (
        "alertmanager-dropped",
        lambda f: prometheus(f, alertmanagers=(), dropped_alertmanagers=("http://a:9093/api/v2/alerts",)),
    ),
    "two who notify": ("two-notifiers", lambda f: says(f, collector_says=RECEIVER)),
    "the usual retention of 15 days": ("retention-short", lambda f: prometheus(f, retention_s=15 * 86400.0)),
}


@pytest.mark.parametrize(("code", "plant"), PLANTED.values(), ids=PLANTED.keys())
def test_each_is_found(code: str, plant: Plant) -> None:
    assert [one for one in of_code(plant(healthy()), code) if one.is_wrong]


def test_the_interval_that_would_do_is_told() -> None:
    assert wrong(prometheus(healthy(), targets=(target(interval_s=75.0),))) == set()  # a quarter of 5m
    (finding,) = of_code(prometheus(healthy(), targets=(target(interval_s=76.0),)), "scrape-too-slow")
    assert finding.fix == f"scrape_interval: 75s for job {JOB}"


def test_where_the_collector_notifies_prometheus_needs_neither_rules_nor_alertmanager() -> None:
    facts = prometheus(says(healthy(), collector_says=RECEIVER), groups=(), alertmanagers=())
    assert wrong(facts) == set()
    facts = prometheus(says(healthy(), collector_says=RECEIVER), alertmanagers=())
    assert wrong(facts) == set()


def test_of_others_that_speak_its_api_no_release_rules_or_alertmanagers_are_asked() -> None:
    facts = prometheus(healthy(), is_itself=False, version="2.24.0", groups=(), alertmanagers=())
    assert wrong(facts) == set()


def test_a_retention_of_the_longest_window_is_enough() -> None:
    assert wrong(prometheus(healthy(), retention_s=28 * 86400.0)) == set()
    assert wrong(prometheus(healthy(), retention_s=None)) == set()


def test_a_target_that_was_never_ours_may_be_down() -> None:
    other = target(job="node", instance="node:9100", health="down")
    assert wrong(prometheus(healthy(), targets=(target(), other))) == set()


def test_two_services_each_in_its_own_way_are_no_double_counting() -> None:
    other = parse("service: batch\nobjectives: [{name: ttft, signal: ttft, percentile: 95, threshold: 500ms}]\n")[0]
    scraped = {"job": JOB, "instance": "scraper:9464", "service_name": "batch", "objective": "ttft"}
    facts = healthy()
    events = (*facts.prometheuses[0].events, scraped | {"objective_hash": other.objectives[0].hash})
    assert wrong(prometheus(facts, events=events, groups=(*rules_of(SPEC),))) == set()
