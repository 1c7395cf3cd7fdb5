"""Grouping: one incident is one page."""

from dataclasses import replace
from typing import Any

from collector.telling.notice import Notice
from collector.telling.webhook import MAX_ALERTS, Told, due, groups, now_told, payload


def notice(
    objective: str = "ttft",
    *,
    notify: str = "page",
    model: str = "*",
    tier: str = "fast",
    ended: bool = False,
    name: str = "LLMTTFTBudgetBurn",
) -> Notice:
    labels = {
        "alertname": name,
        "burn_tier": tier,
        "environment": "prod",
        "model_name": model,
        "notify": notify,
        "objective": objective,
        "service_name": "chat",
    }
    return Notice(tuple(sorted(labels.items())), (("summary", "Burns."),), 100, 200 if ended else None, "http://c/")


def told_alerts(body: dict[str, object]) -> list[dict[str, Any]]:
    alerts = body["alerts"]
    assert isinstance(alerts, list)
    return alerts


def test_pages_of_a_service_are_one_group_whatever_burns() -> None:
    found = groups([notice("ttft"), notice("tpot"), notice("ttft", tier="medium"), notice("ttft", model="m")])
    assert [group.key for group in found] == ["page:environment=prod,service_name=chat"]
    assert len(found[0].notices) == 4


def test_tickets_are_grouped_by_objective_and_silence_by_nobody() -> None:
    found = groups([notice("ttft", notify="ticket"), notice("tpot", notify="ticket"), notice(notify="none")])
    assert [dict(group.labels)["objective"] for group in found] == ["tpot", "ttft"]


def test_tickets_of_one_objective_are_one_group_and_those_of_none_are_by_the_alert() -> None:
    causes = [notice("", notify="ticket", tier="", name=name) for name in ("LLMGPUFaulty", "LLMKVCachePressure")]
    spent = notice(notify="ticket", tier="", name="LLMBudgetExhausted")
    found = groups([notice(notify="ticket", tier="slow"), spent, *causes])
    assert [group.key for group in found] == [
        "ticket:alertname=LLMGPUFaulty,environment=prod,service_name=chat",
        "ticket:alertname=LLMKVCachePressure,environment=prod,service_name=chat",
        "ticket:environment=prod,service_name=chat,objective=ttft",
    ]
    assert dict(found[0].labels) == {"alertname": "LLMGPUFaulty", "environment": "prod", "service_name": "chat"}


def test_a_ticket_that_joins_is_told_and_a_page_that_joins_is_not() -> None:
    before = Told("firing", 150)
    for notify, expected in (("ticket", True), ("page", False)):
        later = replace(notice(notify=notify, name="LLMBudgetExhausted"), starts_at_s=151)
        (group,) = groups([notice(notify=notify), later])
        assert due(group, before) is expected
        assert not due(group, now_told(group, now_s=151))


def test_a_ticket_stays_quiet_while_a_page_of_the_same_objective_fires() -> None:
    ticket = notice(notify="ticket", tier="slow")
    assert [group.notify for group in groups([notice(), ticket])] == ["page"]
    assert [group.notify for group in groups([notice(model="m"), ticket])] == ["page"]
    assert [group.notify for group in groups([notice("tpot"), ticket])] == ["page", "ticket"]
    assert [group.notify for group in groups([notice(ended=True), ticket])] == ["page", "ticket"]


def test_a_ticket_of_the_whole_service_stays_quiet_while_any_page_of_it_fires() -> None:
    ticket = notice("", notify="ticket", tier="")
    assert [group.notify for group in groups([notice("tpot"), ticket])] == ["page"]
    assert [group.notify for group in groups([notice("tpot", ended=True), ticket])] == ["page", "ticket"]


def test_tickets_of_burns_stay_quiet_while_telemetry_is_absent() -> None:
    absent = notice("", tier="", name="LLMTelemetryAbsent")
    burn, exhausted = notice(notify="ticket", tier="slow"), notice("tpot", notify="ticket", tier="")
    assert [group.notify for group in groups([absent, burn])] == ["page"]
    assert [group.notify for group in groups([absent, exhausted])] == ["page", "ticket"]


FIRING, RESOLVED = Told("firing", 150), Told("resolved", 200)


def test_a_group_is_told_at_its_first_fire_and_at_its_last_end() -> None:
    story: list[tuple[list[Notice], Told, bool]] = [
        ([notice()], RESOLVED, True),
        ([notice(), notice("tpot")], FIRING, False),
        ([notice(ended=True), notice("tpot")], FIRING, False),
        ([notice(ended=True), notice("tpot", ended=True)], FIRING, True),
        ([notice(ended=True), notice("tpot", ended=True)], RESOLVED, False),
    ]
    for notices, told, expected in story:
        assert due(groups(notices)[0], told) is expected


def test_what_is_told_of_a_group_is_known_until_its_last_end() -> None:
    (firing,), (over,) = groups([notice(ended=True), notice("tpot")]), groups([notice(ended=True)])
    assert now_told(firing, now_s=400) == Told("firing", 400)
    assert now_told(over, now_s=400) == Told("resolved", 200)


def test_a_page_that_ended_untold_is_told_as_over_with_its_span() -> None:
    (group,) = groups([notice(ended=True)])
    before = Told("resolved", 199)
    assert due(group, before)
    (alert,) = told_alerts(payload(group, before, receiver="r", external_url="http://c"))
    assert (alert["status"], alert["startsAt"], alert["endsAt"]) == (
        *("resolved", "1970-01-01T00:01:40Z", "1970-01-01T00:03:20Z"),
    )
    span = "from 1970-01-01T00:01:40Z to 1970-01-01T00:03:20Z"
    assert alert["annotations"]["was_firing"] == f"{span}, while this receiver could not be told"


def test_a_ticket_that_ended_untold_asks_nothing_of_anybody() -> None:
    (group,) = groups([notice(notify="ticket", ended=True)])
    assert not due(group, Told("resolved", 0))


def test_an_end_that_was_expected_has_no_words_of_being_late() -> None:
    (group,) = groups([notice(ended=True)])
    (alert,) = told_alerts(payload(group, FIRING, receiver="r", external_url="http://c"))
    assert alert["annotations"] == {"summary": "Burns."}


def test_a_payload_is_bounded_and_says_how_much_it_leaves_out() -> None:
    (group,) = groups([notice(f"o{number}", ended=number > 0) for number in range(MAX_ALERTS + 3)])
    body = payload(group, RESOLVED, receiver="r", external_url="http://c")
    alerts = told_alerts(body)
    assert (len(alerts), body["truncatedAlerts"], alerts[0]["status"]) == (MAX_ALERTS, 3, "firing")


def test_the_payload_has_alertmanagers_form() -> None:
    (group,) = groups([notice("ttft"), notice("tpot", ended=True)])
    body = payload(group, RESOLVED, receiver="r", external_url="http://c")
    assert set(body) == {
        *("version", "groupKey", "truncatedAlerts", "status", "receiver", "groupLabels", "commonLabels"),
        *("commonAnnotations", "externalURL", "alerts"),
    }
    assert (body["version"], body["status"]) == ("4", "firing")
    assert body["groupLabels"] == {"environment": "prod", "service_name": "chat"}
    alerts = told_alerts(body)
    assert [alert["status"] for alert in alerts] == ["firing", "resolved"]
    assert alerts[0]["endsAt"] == "0001-01-01T00:00:00Z"
    assert "objective" not in dict(body["commonLabels"])  # type: ignore[call-overload]
    assert body["commonAnnotations"] == {"summary": "Burns."}
