"""Grouping: one incident is one page."""

from collector.notice import Notice
from collector.webhook import Status, due, groups, payload


def notice(
    objective: str = "ttft", *, notify: str = "page", model: str = "*", tier: str = "fast", ended: bool = False
) -> Notice:
    labels = {
        "alertname": "LLMTTFTBudgetBurn",
        "burn_tier": tier,
        "environment": "prod",
        "model_name": model,
        "notify": notify,
        "objective": objective,
        "service_name": "chat",
    }
    return Notice(tuple(sorted(labels.items())), (("summary", "Burns."),), 100, 200 if ended else None, "http://c/")


def test_pages_of_a_service_are_one_group_whatever_burns() -> None:
    found = groups([notice("ttft"), notice("tpot"), notice("ttft", tier="medium"), notice("ttft", model="m")])
    assert [group.key for group in found] == ["page:environment=prod,service_name=chat"]
    assert len(found[0].notices) == 4


def test_tickets_are_grouped_by_objective_and_silence_by_nobody() -> None:
    found = groups([notice("ttft", notify="ticket"), notice("tpot", notify="ticket"), notice(notify="none")])
    assert [dict(group.labels)["objective"] for group in found] == ["tpot", "ttft"]


def test_a_ticket_stays_quiet_while_a_page_of_the_same_trouble_fires() -> None:
    ticket = notice(notify="ticket", tier="slow")
    assert [group.notify for group in groups([notice(), ticket])] == ["page"]
    assert [group.notify for group in groups([notice(model="m"), ticket])] == ["page", "ticket"]
    assert [group.notify for group in groups([notice(ended=True), ticket])] == ["page", "ticket"]


def test_a_group_is_told_at_its_first_fire_and_at_its_last_end() -> None:
    story: list[tuple[list[Notice], Status | None, bool]] = [
        ([notice()], None, True),
        ([notice(), notice("tpot")], "firing", False),
        ([notice(ended=True), notice("tpot")], "firing", False),
        ([notice(ended=True), notice("tpot", ended=True)], "firing", True),
        ([notice(ended=True), notice("tpot", ended=True)], "resolved", False),
        ([notice()], "resolved", True),
        ([notice(ended=True)], None, False),
    ]
    for notices, told, expected in story:
        assert due(groups(notices)[0], told) is expected


def test_the_payload_has_alertmanagers_form() -> None:
    (group,) = groups([notice("ttft"), notice("tpot", ended=True)])
    body = payload(group, receiver="r", external_url="http://c")
    assert set(body) == {
        *("version", "groupKey", "truncatedAlerts", "status", "receiver", "groupLabels", "commonLabels"),
        *("commonAnnotations", "externalURL", "alerts"),
    }
    assert (body["version"], body["status"]) == ("4", "firing")
    assert body["groupLabels"] == {"environment": "prod", "service_name": "chat"}
    alerts = body["alerts"]
    assert isinstance(alerts, list)
    assert [alert["status"] for alert in alerts] == ["firing", "resolved"]
    assert alerts[0]["endsAt"] == "0001-01-01T00:00:00Z"
    assert "objective" not in dict(body["commonLabels"])  # type: ignore[call-overload]
    assert body["commonAnnotations"] == {"summary": "Burns."}
