"""A collector's answers as values."""

import json

from firsttoken.doctor.ask import Answer
from firsttoken.doctor.collector_facts import NO_COLLECTOR, PATHS, collector_facts, unready
from tests.firsttoken.doctor.healthy import COLLECTOR_TEXT, NAMES, status_body

READY = Answer("u", 200, b"ready\n")


def answers(metrics: Answer, status: object, ready: Answer = READY) -> tuple[Answer, ...]:
    described = Answer("u", 200, b'{"info": {"version": "0.1.0"}}')
    return metrics, ready, Answer("u", 200, json.dumps(status).encode()), described


def test_page_status_release_and_services_without_objectives() -> None:
    assert len(answers(READY, {})) == len(PATHS)
    body = status_body() | {"unjudged": [{"service": "batch", "models": ["m"]}]}
    facts = collector_facts("http://c", answers(Answer("u", 200, COLLECTOR_TEXT.encode()), body), 0.1)
    assert (facts.error, facts.unready, facts.version, facts.offset_s) == ("", "", "0.1.0", 0.1)
    assert facts.unjudged == ("batch",)
    assert facts.status is not None
    assert [one.name for one in facts.status.objectives] == list(NAMES)


def test_what_is_no_collector_is_said_so() -> None:
    assert collector_facts("u", answers(Answer("u", 200, b"up 1\n"), []), None).error == NO_COLLECTOR
    away = Answer("u", error="does not answer: refused")
    assert collector_facts("u", (away, away, away, away), None).error == "does not answer: refused"


def test_a_reason_is_that_of_readyz_alone() -> None:
    assert unready(READY) == unready(Answer("u", 401, b"token")) == unready(Answer("u", error="x")) == ""
    assert unready(Answer("u", 503, b"reading the past\n")) == "reading the past"
    assert unready(Answer("u", 503)) == "no reason is given"
