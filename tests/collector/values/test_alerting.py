"""Alerts as values: what they become from what is wanted, one step after another."""

from collections.abc import Sequence

import pytest

from collector.values import alerting
from collector.values.alerting import Alert, AlertKey, Wanted, next_alerts

KEY = AlertKey("LLMTTFTBudgetBurn", "prod", "chat", "m", "ttft", "fast")


def wanted(state: str) -> list[Wanted]:
    if state == "ok":
        return []
    assert state in ("pending", "firing")
    return [Wanted(KEY, "pending" if state == "pending" else "firing", (("a", "b"),), (("summary", "x"),))]


def history(states: Sequence[str]) -> list[tuple[str, int, int | None, bool]]:
    """(state, since, fired, changed) of the alert after each of some ticks, a second apart."""
    held: dict[AlertKey, Alert] = {}
    told = []
    for now_s, state in enumerate(states, 1):
        everything, changed = next_alerts(wanted(state), held, now_s=now_s)
        told += [(one.state, one.since_s, one.fired_s, one in changed) for one in everything]
        held = {one.key: one for one in everything if one.state != "resolved"}
    return told


HISTORIES = {
    "it fires and ends": (
        ["firing", "firing", "ok", "ok"],
        [("firing", 1, 1, True), ("firing", 1, 1, False), ("resolved", 3, 1, True)],
    ),
    "it pends first": (["pending", "firing"], [("pending", 1, None, True), ("firing", 2, 2, True)]),
    "it pends and goes": (["pending", "ok"], [("pending", 1, None, True), ("resolved", 2, None, True)]),
    "it fires again": (
        ["firing", "ok", "firing"],
        [("firing", 1, 1, True), ("resolved", 2, 1, True), ("firing", 3, 3, True)],
    ),
    "nothing is nothing": (["ok", "ok"], []),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_an_alert_over_some_ticks(name: str) -> None:
    states, expected = HISTORIES[name]
    assert history(states) == expected


def test_an_alert_keeps_its_since_and_takes_new_words() -> None:
    before = Alert(KEY, "firing", 10, 8, (("a", "b"),), (("summary", "old"),))
    ((one,), changed) = next_alerts(wanted("firing"), {KEY: before}, now_s=20)
    assert (one.since_s, one.fired_s, one.annotations, changed) == (10, 8, (("summary", "x"),), ())


def test_one_that_ended_keeps_its_labels_for_those_who_must_hear_of_it() -> None:
    before = Alert(KEY, "firing", 10, 8, (("a", "b"),), (("summary", "old"),))
    ((one,), (changed,)) = next_alerts([], {KEY: before}, now_s=20)
    assert one == changed == Alert(KEY, "resolved", 20, 8, (("a", "b"),), (("summary", "old"),))


def test_one_that_had_ended_before_is_not_told_again() -> None:
    before = Alert(KEY, "resolved", 10, 8, (), ())
    assert next_alerts([], {KEY: before}, now_s=20) == ((), ())
    ((one,), (changed,)) = next_alerts(wanted("firing"), {KEY: before}, now_s=20)
    assert one == changed
    assert (one.since_s, one.fired_s) == (20, 20)


def test_a_cause_is_said_once_among_the_annotations() -> None:
    one = Alert(KEY, "firing", 1, 1, (), (("summary", "x"), ("a", "b")))
    found = alerting.with_cause(alerting.with_cause(one, "unknown"), "requests fail")
    assert found.annotations == (("a", "b"), (alerting.CAUSE, "requests fail"), ("summary", "x"))


def test_labels_are_those_of_the_key_over_any_other_and_none_is_empty() -> None:
    found = alerting.labels(KEY, {"owner": None, "team": "search", "service_name": "theirs", "notify": "page"})
    assert dict(found) == {
        "alertname": "LLMTTFTBudgetBurn",
        "environment": "prod",
        "service_name": "chat",
        "model_name": "m",
        "objective": "ttft",
        "burn_tier": "fast",
        "team": "search",
        "notify": "page",
    }
    assert list(found) == sorted(found)


def test_annotations_name_a_runbook() -> None:
    url = alerting.runbook("LLMEngineStalled")
    assert dict(alerting.annotations(summary="s.", description="d.", runbook_url=url)) == {
        "summary": "s.",
        "description": "d.",
        "runbook_url": "runbooks/LLMEngineStalled.md",
    }
