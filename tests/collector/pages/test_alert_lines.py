"""Alerts as lines: one trouble is one line, the most urgent first."""

from dataclasses import asdict, replace

from collector.pages.alert_lines import active, clock, drifts, ended, unheard
from collector.pages.history import Ended
from collector.telling.notify import Deliveries
from collector.values.alerting import Alert, AlertKey, with_cause
from tests.collector.drift_scene import DRIFT

NOW_S = 1_800_000_000


def alert(
    state: str, notify: str, *, objective: str = "ttft", model: str = "*", tier: str = "fast", since_s: int = NOW_S - 90
) -> Alert:
    key = AlertKey("LLMTTFTBudgetBurn", "", "chat", model, objective, tier)
    said = (("description", f"{model} burns."), ("runbook_url", "https://r/"), ("summary", "Burns."))
    return Alert(key, state, since_s, since_s, (("notify", notify),), said)  # type: ignore[arg-type]


def test_pages_come_before_tickets_and_what_only_looms() -> None:
    lines = active(
        [
            alert("pending", "page", objective="a"),
            alert("firing", "ticket", objective="b"),
            alert("firing", "none", objective="c"),
            alert("firing", "page", objective="d"),
        ],
        now_s=NOW_S,
    )
    assert [(line.state, line.tone) for line in lines] == [
        *(("page", "bad"), ("ticket", "warn"), ("notice", "none"), ("pending", "none"))
    ]
    assert lines[0].when == "for 1 min 30 s"
    assert (lines[0].text, lines[0].url) == ("* burns.", "https://r/")


def test_tiers_and_models_of_one_trouble_are_one_line() -> None:
    (line,) = active(
        [
            alert("firing", "page", model="m"),
            alert("firing", "ticket", tier="slow"),
            alert("firing", "page", since_s=NOW_S - 300),
            alert("firing", "page", tier="medium", model="n"),
        ],
        now_s=NOW_S,
    )
    assert (line.of, line.who, line.state) == ("chat · ttft", "fast, medium · m, n", "page")
    assert (line.text, line.when) == ("* burns.", "for 5 min")


def test_the_cause_is_told_of_the_first_that_knows_it() -> None:
    first, other = alert("firing", "page"), with_cause(alert("firing", "page", model="m"), "requests fail")
    assert active([first, other], now_s=NOW_S)[0].cause == "requests fail"
    assert active([first], now_s=NOW_S)[0].cause == ""


def past(fired_s: int, ended_s: int, *, model: str = "*", objective: str = "ttft", tier: str = "fast") -> Ended:
    said = '{"summary": "S."}'
    return Ended("LLMTTFTBudgetBurn", "chat", model, objective, tier, fired_s, ended_s, said)


def test_what_is_over_says_when_and_how_long() -> None:
    (line,) = ended([past(NOW_S, NOW_S + 90)])
    assert (line.of, line.who, line.state, line.tone) == ("chat · ttft", "fast", "ended", "none")
    assert line.when == "2027-01-15 08:00:00 UTC, lasted 1 min 30 s"
    assert line.text == "S."


def test_what_is_over_still_says_what_it_was() -> None:
    one = replace(past(40, 60, model="m"), annotations='{"summary": "S.", "cause": "requests fail"}')
    assert [line.cause for line in ended([past(40, 60), one])] == ["requests fail"]


def test_alerts_of_one_trouble_that_overlapped_are_one() -> None:
    lines = ended([past(50, 90, tier="medium"), past(40, 60, model="m"), past(10, 20), past(40, 60, objective="tpot")])
    assert [(line.of, line.who) for line in lines] == [
        ("chat · ttft", "medium, fast · m"),
        ("chat · ttft", "fast"),
        ("chat · tpot", "fast"),
    ]


def test_who_cannot_be_told_is_named_with_what_would_help_the_worst_first() -> None:
    lines = unheard(
        {
            "http://a": Deliveries(3, 1, "it does not answer", "away"),
            "http://b": Deliveries(9),
            "http://c": Deliveries(0, 2, "it answered 401", "refuses"),
        }
    )
    assert [(line.title, line.state, line.tone, line.text) for line in lines] == [
        (
            "http://c",
            "refuses",
            "bad",
            "cannot be told of alerts: it answered 401: look at its address and credentials",
        ),
        ("http://a", "away", "warn", "cannot be told of alerts: it does not answer: it is tried again"),
    ]


def test_only_what_is_a_link_is_linked() -> None:
    key = AlertKey("LLMTelemetryAbsent", "", "chat")
    for url in ("runbooks/LLMTelemetryAbsent.md", "javascript:alert(1)", ""):
        one = Alert(key, "firing", NOW_S, NOW_S, (), (("runbook_url", url),))
        assert active([one], now_s=NOW_S)[0].url == ""


def test_moments_are_utc() -> None:
    assert clock(0) == "1970-01-01 00:00:00 UTC"


def test_drifts_are_told_those_that_shifted_most_first() -> None:
    found = [DRIFT, replace(DRIFT, effect=-0.5, environment="prod"), replace(DRIFT, effect=0.3, kind="mix")]
    lines = drifts(map(asdict, found))
    assert [(line.state, line.tone, line.of) for line in lines] == [
        ("shorter", "none", "chat prod"),
        ("longer", "none", "chat"),
        ("longer", "warn", "chat"),
    ]
    assert lines[2].title == "time to first token"
    assert lines[2].when == f"since {clock(DRIFT.since_s)}"
    assert "500 ms instead of 400 ms" in lines[2].text
