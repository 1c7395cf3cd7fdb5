"""The ticket on a drift: on whom, for what, by which eye, and in which words."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from collector.judging import drift_alert
from collector.judging.evaluate import Given, evaluate
from collector.values.alerting import Wanted
from collector.values.verdicts import DriftRow
from slo.signals import SOURCES
from slo.trouble import DRIFT as NAME
from tests.collector import scene
from tests.collector.drift_scene import DRIFT

NOW_S = DRIFT.since_s + 600


def wanted(*rows: DriftRow, text: str = scene.TTFT, now_s: int = NOW_S) -> list[Wanted]:
    return list(drift_alert.wanted(rows, plan=scene.windows(text).plan, now_s=now_s))


def test_a_longer_latency_is_a_ticket_by_service_model_and_signal() -> None:
    (one,) = wanted(DRIFT)
    assert dict(one.labels) == {
        "alertname": NAME,
        "service_name": "chat",
        "model_name": "m",
        "signal": "ttft",
        "severity": "warning",
        "notify": "ticket",
    }
    assert dict(one.annotations) == {
        "summary": "Latency of chat has shifted against its own past.",
        "description": (
            "chat, model m: the p95 time to first token (proxy) is 25 % longer than usual at this time of day, "
            "500 ms instead of 400 ms; the server is slower at every prompt length."
        ),
        "runbook_url": "runbooks/LLMLatencyDrift.md",
    }
    assert one.state == "firing"


def test_its_owner_is_that_of_the_service() -> None:
    owned = scene.TTFT.replace("500ms}", "500ms, owner: serving}")
    (one,) = wanted(DRIFT, text=owned)
    assert dict(one.labels)["owner"] == "serving"


@pytest.mark.parametrize(
    "row",
    [
        replace(DRIFT, effect=-0.25),
        replace(DRIFT, kind="mix"),
        replace(DRIFT, service="search"),
        replace(DRIFT, since_s=NOW_S - drift_alert.TOLD_AFTER_S + 1),
    ],
)
def test_what_is_no_trouble_rings_nowhere(row: DriftRow) -> None:
    assert wanted(row) == []


def test_another_environment_than_the_specs_is_nobodys() -> None:
    staged = "environment: prod\n" + scene.TTFT
    assert wanted(replace(DRIFT, environment="dev"), text=staged) == []
    assert len(wanted(replace(DRIFT, environment="prod"), text=staged)) == 1
    assert len(wanted(replace(DRIFT, environment="dev"))) == 1


def test_of_several_eyes_the_best_speaks() -> None:
    rows = [replace(DRIFT, source=source) for source in reversed(SOURCES)]
    (one,) = wanted(*rows)
    assert "(proxy)" in dict(one.annotations)["description"]
    (one,) = wanted(*rows[:-1])
    assert "(middleware)" in dict(one.annotations)["description"]


def test_an_eye_that_may_not_speak_leaves_the_word_to_another() -> None:
    (one,) = wanted(replace(DRIFT, effect=-0.2), replace(DRIFT, source="engine", kind="unknown"))
    assert "(engine)" in dict(one.annotations)["description"]


def test_two_signals_are_two_alerts() -> None:
    keys = {one.key for one in wanted(DRIFT, replace(DRIFT, signal="tpot"), replace(DRIFT, model="n"))}
    assert len(keys) == 3


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (replace(DRIFT, kind="unknown"), "the cause is not known"),
        (replace(DRIFT, kind="mix", environment="prod"), "chat in prod, model m"),
        (replace(DRIFT, kind="mix"), "another mix of prompt lengths explains it"),
        (replace(DRIFT, effect=-0.25), "25 % shorter"),
    ],
)
def test_a_drift_in_words(row: DriftRow, words: str) -> None:
    assert words in drift_alert.told(row)


def test_an_evaluation_tells_of_it_until_it_is_over() -> None:
    windows = scene.windows(now_s=NOW_S)

    def alerts(rows: Iterable[DriftRow], before: dict[object, object]) -> dict[object, object]:
        found = evaluate(windows, alerts=before, now_s=NOW_S, given=Given(tuple(rows)))  # type: ignore[arg-type]
        assert found.drifts == tuple(rows)
        return {one.key: one.state for one in found.alerts if one.key.name == NAME}

    assert list(alerts([DRIFT], {}).values()) == ["firing"]
    fired = {one.key: one for one in evaluate(windows, alerts={}, now_s=NOW_S, given=Given((DRIFT,))).alerts}
    assert list(alerts([], dict(fired)).values()) == ["resolved"]
