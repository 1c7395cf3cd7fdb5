"""Notices: stable labels, and moments as receivers read them."""

from collector.telling.notice import Notice, notice, objective_path, rfc3339
from collector.values.alerting import Alert, AlertKey, with_cause

KEY = AlertKey("LLMTTFTBudgetBurn", "prod", "chat", "*", "ttft", "fast")
LABELS = (("alertname", KEY.name), ("notify", "page"), ("owner", ""), ("service_name", "chat"))


def alert(state: str, *, since_s: int = 200, fired_s: int | None = 100) -> Alert:
    return Alert(KEY, state, since_s, fired_s, LABELS, (("summary", "Budget burns."),))  # type: ignore[arg-type]


def told(one: Alert) -> Notice:
    found = notice(one, external_url="http://c:1/")
    assert found is not None
    return found


def test_a_firing_alert_has_no_end() -> None:
    found = told(alert("firing"))
    assert (found.starts_at_s, found.ends_at_s, found.fires) == (100, None, True)
    assert found.url == "http://c:1/objectives/chat/ttft?environment=prod"
    assert dict(found.annotations) == {"summary": "Budget burns.", "dashboard_url": found.url}


def test_a_cause_that_is_known_is_told() -> None:
    one = with_cause(alert("firing"), "requests fail, 100 % sure")
    assert dict(told(one).annotations)["cause"] == "requests fail, 100 % sure"
    assert told(one).fingerprint == told(alert("firing")).fingerprint


def test_an_ended_alert_ends_when_it_was_resolved() -> None:
    found = told(alert("resolved"))
    assert (found.starts_at_s, found.ends_at_s, found.fires) == (100, 200, False)


def test_nobody_hears_of_an_alert_that_never_fired() -> None:
    assert notice(alert("pending", fired_s=None), external_url="http://c") is None
    assert notice(alert("resolved", fired_s=None), external_url="http://c") is None
    assert notice(alert("pending"), external_url="http://c") is None


def test_empty_labels_are_left_out_and_the_fingerprint_is_that_of_the_labels() -> None:
    firing, ended = told(alert("firing")), told(alert("resolved"))
    assert "owner" not in dict(firing.labels)
    assert firing.fingerprint == ended.fingerprint
    assert firing.label("notify") == "page"
    assert firing.label("nothing") == ""


def test_an_alert_of_no_objective_leads_to_the_front_page() -> None:
    silent = Alert(AlertKey("LLMTelemetryAbsent", "prod", "chat"), "firing", 200, 100, LABELS, ())
    assert told(silent).url == "http://c:1/"


def test_paths_are_safe() -> None:
    assert objective_path("a/b", "x y", "") == "/objectives/a%2Fb/x%20y"
    assert objective_path("chat", "ttft", "a&b") == "/objectives/chat/ttft?environment=a%26b"


def test_moments_are_utc() -> None:
    assert rfc3339(0) == "1970-01-01T00:00:00Z"
    assert rfc3339(1_800_000_000) == "2027-01-15T08:00:00Z"
