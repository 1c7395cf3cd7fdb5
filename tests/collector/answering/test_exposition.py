"""The metrics page, read by the reference parser."""

from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families

from collector.answering.exposition import Scene, rendered
from collector.answering.selfmetrics import Work, families
from collector.keeping.tallies import Tallies
from collector.telling.notify import Deliveries
from collector.ticking.ticks import TickTallies
from slo import signals
from tests.collector.answering import test_status as made


def scene(found: Any) -> Scene:
    store = Tallies(bodies=7, repeated=2, dropped={"older than the longest window": 3})
    deliveries = {"http://am:9093": Deliveries(sent=4, failures=1)}
    ticks = TickTallies(ticks=5, last_s=0.01)
    work = Work(now_s=made.AT_S, store=store, ticks=ticks, deliveries=deliveries, refused={400: 2})
    return Scene(found, made.SPECS, True, list(families(work)))


def samples(found: Any) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    content, _ = rendered(scene(found), "text/plain")
    read: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(content.decode()):
        for sample in family.samples:
            read.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return read


ASKED_ELSEWHERE = {signals.INTAKE_LAG, signals.DATABASE_SIZE, signals.DATABASE_WAL, signals.EVALUATION_AGE}
"""Metrics of which this scene knows nothing."""


def test_every_metric_of_the_table_has_its_name() -> None:
    names = {metric.prometheus for metric in signals.COLLECTOR_METRICS if metric not in ASKED_ELSEWHERE}
    content, _ = rendered(scene(made.FULL), "text/plain")
    described = {line.split()[2] for line in content.decode().splitlines() if line.startswith("# HELP")}
    assert names <= described


def test_figures_have_the_labels_of_the_design() -> None:
    read = samples(made.FULL)
    burn = read[signals.BURN_RATE.prometheus]
    assert (
        burn[
            (
                ("environment", ""),
                ("model_name", "m"),
                ("objective", "ttft"),
                ("service_name", "chat"),
                ("window", "1h"),
            )
        ]
        == 2
    )
    remaining = read[signals.BUDGET_REMAINING.prometheus]
    assert set(remaining.values()) == {0.5}
    assert set(read[signals.BUDGET_EXHAUSTED_IN.prometheus].values()) == {600.0}
    latency = {dict(labels)["quantile"]: value for labels, value in read[signals.LATENCY.prometheus].items()}
    assert latency == {"0.5": 0.1, "0.9": 0.3, "0.95": 0.4, "0.99": 0.6, "0.999": 0.7}


def test_what_is_unknown_has_no_sample() -> None:
    burn = made.BurnRow(made.AT_S, "", "chat", "*", "ttft", 300, 0, 0, None, 0.0, "counts", 0)
    ends = made.BudgetRow(made.AT_S, "", "chat", "*", "ttft", 9, 0, 1.0, 1.0, None, 1.0, "counts")
    read = samples(made.evaluation(burns=(burn,), budgets=(ends,), rows=(made.percentile("m", p95=None),)))
    assert signals.BURN_RATE.prometheus not in read
    assert signals.BUDGET_EXHAUSTED_IN.prometheus not in read
    assert {dict(labels)["quantile"] for labels in read[signals.LATENCY.prometheus]} == {"0.5", "0.9", "0.99", "0.999"}


def test_it_says_what_it_did() -> None:
    read = samples(None)
    assert read[signals.INTAKE_BODIES.prometheus] == {(): 7}
    assert read[signals.INTAKE_REPEATED.prometheus] == {(): 2}
    assert read[signals.INTAKE_DROPPED.prometheus] == {(("reason", "older than the longest window"),): 3}
    assert read[signals.INTAKE_REFUSED.prometheus] == {(("reason", "400"),): 2}
    assert read[signals.NOTIFIED.prometheus] == {(("receiver", "http://am:9093"),): 4}
    assert read[signals.CONFIG_RELOAD_OK.prometheus] == {(): 1}
    (labels,) = read[signals.SPEC_INFO.prometheus]
    assert dict(labels)["hash"] == made.SPECS[0].hash


def test_openmetrics_is_spoken_to_who_asks_for_it() -> None:
    content, content_type = rendered(scene(made.FULL), "application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert sum(1 for _ in open_families(content.decode())) > 10
