"""Counters of trouble: what grows is wrong, what stands is a note, what is by design is nothing."""

import pytest

from collector.decoding.otlp import OWN_SPAN
from collector.folding import rollup
from firsttoken.doctor.checks.counters import BY_DESIGN, FUTURE, is_troubled
from firsttoken.doctor.facts import Facts
from tests.firsttoken.doctor.healthy import (
    COLLECTOR_TEXT,
    Plant,
    Planted,
    collector,
    healthy,
    of_code,
    page,
    says,
    sidecar,
    sidecar_text,
    wrong,
)

DROPPED = 'firsttoken_export_dropped_total{reason="http_401",service_name="chat",signal="metrics"} '


def sidecar_says(line: str) -> Plant:
    return lambda facts: says(facts, sidecar_says=f"{line}\n")


def collector_says(line: str) -> Plant:
    return lambda facts: says(facts, collector_says=f"{line}\n")


PLANTED: Planted = {
    "a collector that refuses the sidecar's token": ("export-failing", sidecar_says(DROPPED + "80")),
    "a collector that is away": (
        "export-delayed",
        sidecar_says('firsttoken_export_failed_total{reason="connection",service_name="chat",signal="metrics"} 4'),
    ),
    "faults of the telemetry": (
        "telemetry-faults",
        sidecar_says('firsttoken_telemetry_faults_total{reason="judge"} 2'),
    ),
    "a wrong --scrape": ("engine-unread", sidecar_says('firsttoken_scrape_failed_total{reason="http_404"} 30')),
    "a dialect that nobody knows": ("answers-unread", sidecar_says('firsttoken_unparsed_total{dialect="openai"} 9')),
    "workers that are killed": ("workers-dying", sidecar_says("firsttoken_worker_deaths_total 3")),
    "late data": ("collector-drops", collector_says('firsttoken_collector_dropped_total{reason="older than"} 7')),
    "a sender's clock ten minutes ahead": (
        "clock-skew",
        collector_says(f'firsttoken_collector_dropped_total{{reason="{rollup.TOO_NEW}"}} 7'),
    ),
    "senders without the token": (
        "collector-refuses",
        collector_says('firsttoken_collector_refused_total{reason="401"} 7'),
    ),
    "a full disk": ("database-failing", collector_says("firsttoken_collector_commit_failures_total 2")),
    "evaluations that fail": ("evaluation-failing", collector_says("firsttoken_collector_tick_failures_total 2")),
    "a webhook that answers 500": (
        "notify-failing",
        collector_says('firsttoken_collector_notify_failures_total{receiver="webhook"} 2'),
    ),
}


@pytest.mark.parametrize(("code", "plant"), PLANTED.values(), ids=PLANTED.keys())
def test_each_is_found(code: str, plant: Plant) -> None:
    facts = plant(healthy())
    assert [one for one in of_code(facts, code) if one.is_wrong]
    assert any(is_troubled(one) for _, _, one in facts.pages)


def seen_twice(first: int, then: int) -> Facts:
    before, after = (page(sidecar_text() + f"{DROPPED}{count}\n") for count in (first, then))
    return sidecar(healthy(), page=before, later=after)


def test_what_still_grows_is_wrong_and_what_stands_is_a_note() -> None:
    (grows,) = of_code(seen_twice(80, 95), "export-failing")
    assert (grows.severity, "95 spans" in grows.what, "15 of them just now" in grows.what) == ("error", True, True)
    (stands,) = of_code(seen_twice(80, 80), "export-failing")
    assert (stands.severity, "none of them just now" in stands.what) == ("note", True)


def test_a_counter_that_first_counts_at_the_second_look_is_found() -> None:
    facts = sidecar(healthy(), later=page(sidecar_text() + f"{DROPPED}5\n"))
    assert wrong(facts) == {"export-failing"}


def test_a_healthy_page_needs_no_second_look() -> None:
    assert not any(is_troubled(one) for _, _, one in healthy().pages)


def test_what_a_collector_leaves_out_by_design_is_nothing() -> None:
    reasons = (
        OWN_SPAN,
        rollup.SPAN_IN_HISTOGRAM,
        rollup.HISTOGRAM_IN_SPANS,
        rollup.REPEATED,
        rollup.REPEATED_DELTA,
        rollup.BASELINE,
    )
    assert all(reason.startswith(BY_DESIGN) for reason in reasons)
    lines = "".join(f'firsttoken_collector_dropped_total{{reason="{reason}"}} 5\n' for reason in reasons)
    assert wrong(collector(healthy(), page=page(COLLECTOR_TEXT + lines))) == set()
    assert FUTURE in rollup.TOO_NEW
    assert FUTURE not in rollup.TOO_OLD
