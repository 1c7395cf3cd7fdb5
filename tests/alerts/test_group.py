"""Groups as a rule file writes them."""

from alerts.group import GROUP_LIMIT, Alert, Group, Recording, group_mapping


def test_a_group_names_its_cadence_and_its_limit() -> None:
    assert group_mapping(Group("g", 90, (Recording("r", "up"),))) == {
        "name": "g",
        "interval": "90s",
        "limit": GROUP_LIMIT,
        "rules": [{"record": "r", "expr": "up"}],
    }


def test_query_offset_is_written_only_when_there_is_one() -> None:
    assert "query_offset" not in group_mapping(Group("g", 30, ()))
    assert group_mapping(Group("g", 30, (), query_offset_s=60))["query_offset"] == "1m"


def rule(of: Alert | Recording, version: tuple[int, int] = (2, 42)) -> dict[str, object]:
    (mapping,) = group_mapping(Group("g", 30, (of,)), version)["rules"]  # type: ignore[misc]
    return mapping  # type: ignore[no-any-return]


def test_an_alert_writes_durations_only_when_it_has_them() -> None:
    alert = Alert("A", "up == 0", {"severity": "critical"}, {"summary": "Down."})
    assert rule(alert) == {
        "alert": "A",
        "expr": "up == 0",
        "labels": {"severity": "critical"},
        "annotations": {"summary": "Down."},
    }
    held = rule(Alert("A", "up == 0", {}, {}, for_s=60, keep_firing_for_s=120))
    assert (held["for"], held["keep_firing_for"]) == ("1m", "2m")


def test_a_recording_keeps_its_labels() -> None:
    assert rule(Recording("r", "up", {"a": "b"}))["labels"] == {"a": "b"}


def test_what_all_rules_have_alike_stands_on_the_group_from_prometheus_3_on() -> None:
    rules = (Recording("r", "up", {"a": "1", "b": "1"}), Alert("A", "up", {"b": "1", "a": "2"}, {}))
    old, new = (group_mapping(Group("g", 30, rules), version) for version in ((2, 53), (3, 0)))
    assert "labels" not in old
    assert new["labels"] == {"b": "1"}
    assert [found["labels"] for found in new["rules"]] == [{"a": "1"}, {"a": "2"}]  # type: ignore[attr-defined]
    assert [found["labels"] for found in old["rules"]] == [rule.labels for rule in rules]  # type: ignore[attr-defined]
