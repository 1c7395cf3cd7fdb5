"""Prometheus's API as values: answers as a 2.42 gives them."""

import json

import pytest

from firsttoken.doctor.ask import Answer
from firsttoken.doctor.facts import LoadedRule, ScrapeTarget
from firsttoken.doctor.prometheus_facts import paths, prometheus_facts, seconds

TARGET = {
    "labels": {"instance": "h:1", "job": "j"},
    "scrapeUrl": "http://h:1/metrics",
    "lastError": 'Get "http://me:pw@h:1/metrics": refused',
    "health": "down",
    "scrapeInterval": "1m30s",
}
RULE = {"name": "A", "query": "up == 0", "labels": {"a": "b"}, "health": "err", "lastError": "bad"} | {
    "type": "alerting",
    "alerts": [{"state": "firing", "activeAt": "2026-11-30T22:54:21.758191493Z"}],
}
GROUP = {"name": "firsttoken:x:y", "interval": 30, "evaluationTime": 0.5, "rules": [RULE]}
AT_S = 1796079261.758191
DATA: dict[str, object] = {
    "version": {"version": "2.42.0+ds", "goVersion": "go1.19.8"},
    "runtime": {
        "storageRetention": "15d or 512MiB",
        "reloadConfigSuccess": False,
        "lastConfigTime": "2026-11-30T22:54:00Z",
    },
    "targets": {"activeTargets": [TARGET]},
    "rules": {"groups": [GROUP]},
    "alertmanagers": {"activeAlertmanagers": [{"url": "http://a/api/v2/alerts"}], "droppedAlertmanagers": []},
    "names": ["up", "firsttoken_heartbeat_total"],
    "events": {"result": [{"metric": {"service_name": "chat", "objective": "ttft"}, "value": [1, "2"]}]},
    "in_flight": {"result": []},
    "sidecars": {"result": [{"metric": {"job": "j", "instance": "h:1"}, "value": [1, "1"]}]},
    "collectors": {"result": []},
    "time": {"resultType": "scalar", "result": [1010.5, "1010.5"]},
}


def answers(**other: Answer) -> dict[str, Answer]:
    def answer(data: object) -> Answer:
        body = json.dumps({"status": "success", "data": data}).encode()
        return Answer("u", 200, body, sent_s=1000, received_s=1001)

    return {what: answer(data) for what, data in DATA.items()} | other


def test_everything_that_is_asked_is_read() -> None:
    assert set(paths(5000.0)) == set(DATA)
    assert "start=4400" in paths(5000.0)["names"]
    facts = prometheus_facts("http://p", answers())
    assert (facts.error, facts.version, facts.retention_s, facts.is_reloaded) == ("", "2.42.0+ds", 15 * 86400, False)
    assert facts.targets == (
        ScrapeTarget("j", "h:1", "http://h:1/metrics", "down", 'Get "http://h:1/metrics": refused', 90.0),
    )
    assert facts.groups[0].rules == (
        LoadedRule("firsttoken:x:y", "A", True, "up == 0", {"a": "b"}, "err", "bad", AT_S),
    )
    assert facts.loaded_s == 1796079240
    assert facts.alertmanagers == ("http://a/api/v2/alerts",)
    assert (facts.names, facts.events) == (
        {"up", "firsttoken_heartbeat_total"},
        ({"service_name": "chat", "objective": "ttft"},),
    )
    assert (facts.sidecars, facts.collectors) == ({("j", "h:1")}, frozenset())
    assert facts.offset_s == pytest.approx(10.0)


OTHERS: dict[str, dict[str, object]] = {
    "Mimir": {"application": "Grafana Mimir", "version": "2.14.0", "goVersion": "go1.23"},
    "VictoriaMetrics": {"version": "2.24.0"},
    "Thanos": {"version": "0.36.1", "goVersion": "go1.22"},
}


@pytest.mark.parametrize("build", OTHERS.values(), ids=OTHERS.keys())
def test_others_that_speak_its_api_are_known(build: dict[str, object]) -> None:
    answer = Answer("u", 200, json.dumps({"status": "success", "data": build}).encode())
    assert not prometheus_facts("u", answers(version=answer)).is_itself
    assert prometheus_facts("u", answers()).is_itself


def test_an_answer_that_is_missing_leaves_its_part_unknown() -> None:
    facts = prometheus_facts("http://p", {what: Answer("u", 404) for what in DATA} | {"version": answers()["version"]})
    assert (facts.error, facts.version) == ("", "2.42.0+ds")
    assert (facts.targets, facts.groups, facts.events, facts.retention_s, facts.offset_s) == ((), (), (), None, None)


def test_who_is_no_prometheus_is_told_why() -> None:
    assert "is no Prometheus" in prometheus_facts("u", answers(version=Answer("u", 200, b"<html>"))).error
    assert prometheus_facts("u", answers(version=Answer("u", 503, b"x"))).error == "answers 503: x"


DURATIONS = {
    "15d": 1296000.0,
    "1m30s": 90.0,
    "250ms": 0.25,
    "1y": 31536000.0,
    "0s": 0.0,
    "": None,
    "512MiB": None,
    "5": None,
    f"{'9' * 400}d": None,
}


@pytest.mark.parametrize(("text", "found"), DURATIONS.items())
def test_durations_are_those_of_prometheus(text: str, found: float | None) -> None:
    assert seconds(text) == found
