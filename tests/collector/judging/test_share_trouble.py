"""Shares of a service's requests: what is a ticket, what a page, and what is none. Against the rules they are held in
`tests/test_trouble_paths.py`."""

from collections.abc import Sequence

import pytest

from collector.judging import share_trouble
from collector.values.alerting import Wanted
from collector.values.deltas import CounterRow, Deltas
from collector.windowing.windows import Windows
from slo import signals
from slo.signals import LABELS, Metric
from slo.trouble import ABANDONMENT, CLIENT_ERROR_SURGE, EMPTY_REPLIES, SHARE_LONG_S, STREAM_ERRORS
from tests.collector import scene
from tests.collector.scene import NOW_S

MINUTES = SHARE_LONG_S // 60


def requests(outcome: str, counts: Sequence[float], *, metric: Metric = signals.REQUESTS) -> tuple[CounterRow, ...]:
    """So many in each of the last minutes."""
    said = ((LABELS[signals.OUTCOME], outcome),) if outcome else ()
    starts = [NOW_S - 60 * number + 30 for number in range(len(counts), 0, -1)]
    return tuple(
        CounterRow("", "chat", "m", "i1", "proxy", metric.sql, said, start_s, count)
        for start_s, count in zip(starts, counts, strict=True)
    )


def told(*rows: Sequence[CounterRow], text: str = scene.TTFT) -> list[Wanted]:
    windows = scene.windows(text)
    windows.add(Deltas(counters=tuple(row for some in rows for row in some)))
    return list(share_trouble.wanted(windows, now_s=NOW_S))


def rings(found: list[Wanted]) -> set[tuple[str, str]]:
    return {(one.key.name, dict(one.labels)["notify"]) for one in found}


@pytest.mark.parametrize(
    ("outcome", "share", "expected"),
    [
        ("no_output", 4, set()),
        ("no_output", 5, {(EMPTY_REPLIES, "ticket")}),
        ("no_output", 89, {(EMPTY_REPLIES, "ticket")}),
        ("no_output", 90, {(EMPTY_REPLIES, "ticket"), (EMPTY_REPLIES, "page")}),
        ("client_error", 19, set()),
        ("client_error", 20, {(CLIENT_ERROR_SURGE, "ticket")}),
        ("quota", 95, set()),
        ("error", 95, set()),
    ],
)
def test_a_share_is_reached_exactly(outcome: str, share: int, expected: set[tuple[str, str]]) -> None:
    found = told(requests(outcome, [share] * MINUTES), requests("ok", [100 - share] * MINUTES))
    assert rings(found) == expected


def test_those_of_metrics_of_their_own() -> None:
    everything = requests("ok", [100] * MINUTES)
    gone = told(everything, requests("", [95] * MINUTES, metric=signals.ABANDONED))
    assert rings(gone) == {(ABANDONMENT, "ticket"), (ABANDONMENT, "page")}
    broken = told(everything, requests("", [95] * MINUTES, metric=signals.BROKEN_STREAMS))
    assert rings(broken) == {(STREAM_ERRORS, "ticket")}


@pytest.mark.parametrize(
    ("why", "bad"),
    [
        ("it is over: none in the last five minutes", [50] * 10 + [0] * 5),
        ("it is too young for a quarter of an hour", [0] * 12 + [4] * 3),
        ("too few", [1] * 15),
        ("in too few minutes", [0] * 12 + [150, 150, 0]),
    ],
)
def test_what_is_no_trouble(why: str, bad: list[float]) -> None:
    ok = [0] * 15 if why == "too few" else [100] * 15
    assert told(requests("no_output", bad), requests("ok", ok)) == [], why


def test_a_minute_counts_once_it_is_over() -> None:
    windows = scene.windows(now_s=NOW_S)
    windows.add(Deltas(counters=requests("no_output", [50, 50, 50])))
    assert rings(list(share_trouble.wanted(windows, now_s=NOW_S))) == {
        (EMPTY_REPLIES, "ticket"),
        (EMPTY_REPLIES, "page"),
    }
    assert list(share_trouble.wanted(windows, now_s=NOW_S - 10)) == []


def test_two_tell_of_their_own_shares_under_keys_of_their_own() -> None:
    ticket, page = told(requests("no_output", [10] * MINUTES))
    assert (ticket.key.tier, page.key.tier) == ("5%", "90%")
    assert {dict(one.labels).get("burn_tier") for one in (ticket, page)} == {None}
    said = dict(ticket.annotations)
    assert said["summary"] == "5% or more of the requests of chat ended well without one token."
    assert "150 of 150 requests of the last 15m (100 %) ended well" in said["description"]


def test_a_service_of_no_spec_is_nobodys_trouble() -> None:
    assert told(requests("no_output", [10] * MINUTES), text=scene.TTFT.replace("chat", "search")) == []


def test_it_comes_again_from_what_was_stored() -> None:
    """A start reads the rows back: the same alert, no second one."""
    rows = Deltas(counters=(*requests("no_output", [10] * MINUTES), *requests("ok", [10] * MINUTES)))
    first, second = (Windows(scene.windows().plan, now_s=NOW_S) for _ in range(2))
    first.add(rows)
    for row in reversed(rows.counters):
        second.add(Deltas(counters=(row,)))
    assert list(share_trouble.wanted(first, now_s=NOW_S)) == list(share_trouble.wanted(second, now_s=NOW_S)) != []
