"""The alert of a trouble: labels that stay, places in words."""

from dataclasses import replace

from collector.judging.trouble_alert import MAX_NAMED, Said, named, spec_of, subject, trouble_alert
from collector.values.alerting import AlertKey
from collector.windowing.windows import Plan, plan
from slo.objective import parse
from slo.trouble import EMPTY_REPLIES, TROUBLES
from tests.collector import scene

OWNED = scene.TTFT.replace("threshold: 500ms", "threshold: 500ms, owner: serving")


def of(text: str) -> Plan:
    return plan(parse(text), tick_s=10)


def test_its_labels_are_those_of_the_table_and_its_tier_is_none() -> None:
    key = AlertKey(EMPTY_REPLIES, "prod", "chat", tier="90%")
    page = replace(TROUBLES[EMPTY_REPLIES], notify="page")
    one = trouble_alert(parse(OWNED)[0], key, page, Said("why", "how much"))
    assert (one.key, one.state) == (key, "firing")
    assert dict(one.labels) == {
        "alertname": EMPTY_REPLIES,
        "environment": "prod",
        "service_name": "chat",
        "severity": "critical",
        "notify": "page",
        "owner": "serving",
    }
    assert dict(one.annotations) == {
        "summary": "why",
        "description": "how much",
        "runbook_url": "runbooks/LLMEmptyReplies.md",
    }


def test_a_spec_speaks_for_its_service_where_it_says_that_it_runs() -> None:
    anywhere, prod = of(scene.TTFT), of("environment: prod\n" + scene.TTFT)
    assert spec_of(anywhere, ("test", "chat")) is anywhere.specs[0]
    assert spec_of(prod, ("prod", "chat")) is prod.specs[0]
    assert spec_of(prod, ("test", "chat")) is None
    assert spec_of(anywhere, ("", "search")) is None


def test_a_subject_says_where_it_runs_and_places_are_told_up_to_a_few() -> None:
    assert (subject(("prod", "chat")), subject(("", "chat"))) == ("chat in prod", "chat")
    assert named(["b", "a"]) == "a, b"
    assert named(f"i{number}" for number in range(MAX_NAMED + 2)) == "i0, i1, i2, i3, i4 and 2 more"
