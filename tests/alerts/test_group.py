"""Groups as a rule file writes them."""

from alerts.group import GROUP_LIMIT, Alert, Group, Recording, group_mapping, rule_mapping


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


def test_an_alert_writes_durations_only_when_it_has_them() -> None:
    alert = Alert("A", "up == 0", {"severity": "critical"}, {"summary": "Down."})
    assert rule_mapping(alert) == {
        "alert": "A",
        "expr": "up == 0",
        "labels": {"severity": "critical"},
        "annotations": {"summary": "Down."},
    }
    held = rule_mapping(Alert("A", "up == 0", {}, {}, for_s=60, keep_firing_for_s=120))
    assert (held["for"], held["keep_firing_for"]) == ("1m", "2m")


def test_a_recording_keeps_its_labels() -> None:
    assert rule_mapping(Recording("r", "up", {"a": "b"}))["labels"] == {"a": "b"}
