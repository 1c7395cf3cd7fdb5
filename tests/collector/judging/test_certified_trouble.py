"""A service above the load that it is certified for."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

import pytest

from collector.judging import certified_trouble
from collector.judging.certified_trouble import Certified
from collector.values.alerting import Alert, AlertKey, Wanted
from collector.values.deltas import CounterRow, Deltas
from collector.windowing.fleet import Service
from slo import signals
from slo.promised import Promise, Promised
from slo.signals import LABELS, SYNTHETIC_CLASS
from slo.trouble import ABOVE_CERTIFIED, CERTIFIED_WINDOW_S, TROUBLES
from tests.collector import scene
from tests.collector.scene import NOW_S, TICK_S

CHAT = ("", "chat")
KEY = AlertKey(ABOVE_CERTIFIED, *CHAT)
LONG_S = CERTIFIED_WINDOW_S + TROUBLES[ABOVE_CERTIFIED].for_s


def requests(a_second: float, *, outcome: str = "ok", of_class: str = "", since_s: int = LONG_S) -> list[CounterRow]:
    said = ((LABELS[signals.OUTCOME], outcome), *(((LABELS[signals.CLASS], of_class),) if of_class else ()))
    at_s = range(NOW_S - since_s + TICK_S, NOW_S + TICK_S, TICK_S)
    return [
        CounterRow(*CHAT, "m", "i1", "proxy", signals.REQUESTS.sql, tuple(sorted(said)), one_s, a_second * TICK_S)
        for one_s in at_s
    ]


def told(
    *rows: Iterable[CounterRow],
    certified_rps: Mapping[Service, float] | None = None,
    promised: Promised | None = None,
    alerts: Mapping[AlertKey, Alert] | None = None,
    text: str = scene.TTFT,
) -> list[Wanted]:
    windows = scene.windows(text)
    windows.add(Deltas(counters=tuple(row for some in rows for row in some)))
    rates = {CHAT: 1.5} if certified_rps is None else certified_rps
    of = {service: Certified(rps, promised) for service, rps in rates.items()}
    return list(certified_trouble.wanted(windows, certified_rps=of, alerts=alerts or {}, now_s=NOW_S))


def test_more_than_it_is_certified_for_is_a_ticket() -> None:
    (one,) = told(requests(1.8))
    assert (one.key, one.state) == (KEY, "firing")
    assert dict(one.labels)["notify"] == "ticket"
    expected = "chat: 1.8 requests a second over the last 10m, certified are 1.5."
    assert dict(one.annotations)["description"] == expected


def test_one_certified_for_other_promises_says_so() -> None:
    promise = Promise("ttft", "ttft {} None", Decimal("0.99"), Decimal("0.05"))
    (one,) = told(requests(1.8), promised=Promised("other", "m", "synthetic", (promise,)))
    said = dict(one.annotations)["description"]
    assert said.startswith("chat: 1.8 requests a second over the last 10m, certified are 1.5, for other promises than")
    assert "(ttft was 99% within 50ms and is " in said
    assert said.endswith(" now): certify it again.")


def test_one_that_began_lately_is_pending() -> None:
    (one,) = told(requests(3, since_s=400))
    assert one.state == "pending"


@pytest.mark.parametrize(
    ("why", "rows"),
    [
        ("as many as it is certified for", [requests(1.5)]),
        ("some are synthetic", [requests(1), requests(9, of_class=SYNTHETIC_CLASS)]),
        ("some were refused", [requests(1), requests(1, outcome="quota"), requests(1, outcome="client_error")]),
        ("a minute's rush", [requests(0.1), requests(10, since_s=60)]),
        ("none came", []),
    ],
)
def test_what_is_no_trouble(why: str, rows: list[list[CounterRow]]) -> None:
    assert told(*rows) == [], why


def test_what_the_server_sheds_counts() -> None:
    assert told(requests(1), requests(1, outcome="rejected"))


def test_it_outlives_the_peak_by_a_while() -> None:
    alert = Alert(KEY, "firing", NOW_S - 600, NOW_S - 600, (), ())
    ended = requests(1.6, since_s=900)[:-6]
    assert told(ended) == []
    assert [one.state for one in told(ended, alerts={KEY: alert})] == ["firing"]


def test_a_certificate_of_no_environment_is_one_of_any_and_others_are_nobodys() -> None:
    busy = requests(1.8)
    assert told(busy, certified_rps={("prod", "chat"): 1.0, ("", "search"): 1.0}) == []
    assert told(busy, certified_rps={}) == []
    assert told(busy, text=scene.TTFT.replace("chat", "search")) == []
    prod = [CounterRow("prod", *(getattr(row, name) for name in CounterRow.__slots__[1:])) for row in busy]
    assert told(prod)
    assert told(prod, certified_rps={("", "chat"): 1.0, ("prod", "chat"): 2.0}) == []


def test_where_more_moves_than_is_kept_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.windowing.recent.MAX_TRAILS", 0)
    assert told(requests(9.0)) == []
