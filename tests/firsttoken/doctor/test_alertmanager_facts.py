"""Alertmanager's API as values: answers as a 0.25 gives them."""

import json

import pytest

from firsttoken.doctor.alertmanager_facts import NO_ALERTMANAGER, PATHS, alertmanager_facts
from firsttoken.doctor.ask import Answer

ALERTS = Answer("u", 200, b'[{"labels": {"alertname": "LLMWatchdog"}}, {"labels": {}}]')


def status(original: str) -> Answer:
    told = {"config": {"original": original}, "cluster": {"status": "ready"}, "uptime": "2026-11-30T22:54:00.262Z"}
    return Answer("u", 200, json.dumps(told).encode())


def test_its_configuration_and_its_alerts_are_read() -> None:
    answers = (status("route: {receiver: a}\nreceivers: [{name: a}]\n"), ALERTS)
    assert len(answers) == len(PATHS)
    facts = alertmanager_facts("http://a", answers, 0.5)
    assert (facts.error, facts.offset_s, facts.since_s) == ("", 0.5, 1796079240.262)
    assert facts.config == {"route": {"receiver": "a"}, "receivers": [{"name": "a"}]}
    assert "LLMWatchdog" in facts.alerts


def test_a_configuration_that_cannot_be_read_is_unknown() -> None:
    for text in ("", "route: [", "just text", "at: 2026-13-45", "[" * 10_000):
        assert alertmanager_facts("u", (status(text), ALERTS), None).config is None


@pytest.mark.parametrize("body", [b"<html>It works!</html>", b"{}", b"[]"])
def test_another_server_that_answers_is_no_alertmanager(body: bytes) -> None:
    assert alertmanager_facts("u", (Answer("u", 200, body), ALERTS), None).error == NO_ALERTMANAGER


def test_who_does_not_answer_is_told_why() -> None:
    facts = alertmanager_facts("u", (Answer("u", error="does not answer: x"), Answer("u", error="x")), None)
    assert (facts.error, facts.config, facts.alerts) == ("does not answer: x", None, frozenset())
