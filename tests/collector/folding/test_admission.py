"""What is let in: series beyond the limit as model `other`, services and layouts beyond theirs not at all."""

import pytest

from collector.decoding.otlp import decode_metrics
from collector.folding.admission import (
    MAX_LAYOUTS,
    TOO_MANY_LAYOUTS,
    TOO_MANY_OTHERS,
    TOO_MANY_SERVICES,
    Seen,
    admitted,
)
from collector.folding.rollup import Intake, fold
from collector.values.deltas import Deltas, concat
from slo import signals
from tests.collector import messages
from tests.collector.messages import T0, Value, wire

INTAKE = Intake(now_s=T0 + 100, tick_s=10, oldest_s=T0 - 3600, since_s=T0)
TTFT, EVENTS = signals.TTFT.name, signals.SLO_EVENTS.name
REQUESTS = signals.REQUESTS.name


def event(model: str = "m") -> dict[str, Value]:
    return {signals.REQUEST_MODEL: model, signals.OBJECTIVE: "ttft", signals.RESULT: "good"}


def folded(*found: wire.Metric, service: str = "chat") -> Deltas:
    resource = messages.SIDECAR | {signals.SERVICE_NAME: service}
    body = messages.metrics(*found, resource=resource).SerializeToString()
    return fold(decode_metrics(body, json=False), intake=INTAKE, streams={})


def seen(*several: Deltas) -> Seen:
    found = Seen()
    for rows in several:
        found.add(rows)
    return found


class TestSeriesLimit:
    """Beyond the limit the data of new series goes to model `other`; nothing is lost from the totals."""

    rows = folded(
        messages.counter(EVENTS, *(messages.number(1, attributes=event(model)) for model in ("a", "b", "c", "d"))),
        messages.gauge(signals.IN_FLIGHT.name, *(messages.number(1, attributes={signals.REQUEST_MODEL: "z"}),)),
        messages.exponential(TTFT, messages.exponential_point([1.0], attributes={signals.REQUEST_MODEL: "z"})),
    )

    def test_within_the_limit_nothing_changes(self) -> None:
        assert admitted(self.rows, seen=Seen(), max_series=6) is self.rows

    def test_beyond_it_counts_move_to_other(self) -> None:
        capped = admitted(self.rows, seen=Seen(), max_series=2)
        assert sum(row.good for row in capped.slo) == 4
        assert {row.model for row in capped.slo} == {"a", "b", "other"}
        assert (
            {row.series.latency.model for row in capped.latencies} == {row.model for row in capped.gauges} == {"other"}
        )

    def test_a_series_once_seen_stays_itself(self) -> None:
        capped = admitted(self.rows, seen=seen(self.rows), max_series=0)
        assert capped is self.rows

    def test_layouts_beyond_all_sense_are_rejected(self) -> None:
        def rows(number: int) -> Deltas:
            return folded(messages.explicit(TTFT, messages.explicit_point((0.1, 1.0 + number), (1, 2, 3))))

        seen = Seen()
        for number in range(MAX_LAYOUTS):
            seen.add(admitted(rows(number), seen=seen, max_series=1000))
        refused = admitted(rows(MAX_LAYOUTS), seen=seen, max_series=1000)
        assert refused.latencies == ()
        assert [(tally.reason, tally.count) for tally in refused.rejected] == [(TOO_MANY_LAYOUTS, 1)]
        again = rows(3)
        assert admitted(again, seen=seen, max_series=1000) is again


def wide(*models: str, bounds: int = 2_000, first: float = 1.0) -> Deltas:
    """A point of each model in so many buckets and one."""
    edges, counts = [first + place for place in range(bounds)], [1] + [0] * bounds
    points = (messages.explicit_point(edges, counts, attributes={signals.REQUEST_MODEL: model}) for model in models)
    return folded(messages.explicit(TTFT, *points))


def models(rows: Deltas) -> list[str]:
    return [row.series.latency.model for row in rows.latencies]


def test_a_series_of_thousands_of_buckets_counts_as_several() -> None:
    known = Seen()
    capped = admitted(wide("a", "b", "c"), seen=known, max_series=5)
    assert sorted(models(capped)) == ["a", "b", "other"]
    known.add(capped)
    assert (len(known), known.size, known.others) == (3, 4, 2)
    again = wide("a", "b")
    assert admitted(again, seen=known, max_series=5) is again


def test_a_series_in_another_layout_is_another_one() -> None:
    known = seen(admitted(wide("a", bounds=10), seen=Seen(), max_series=2))
    assert models(admitted(wide("a", bounds=11), seen=known, max_series=2)) == ["a"]
    assert models(admitted(wide("a", bounds=11), seen=known, max_series=1)) == ["other"]


def test_others_that_have_no_room_are_rejected_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.folding.admission.MAX_OTHERS", 2)
    known = seen(admitted(wide("a", "b"), seen=Seen(), max_series=0))
    assert (known.size, known.others) == (0, 2)
    refused = admitted(wide("a", "b", "c", first=0.5), seen=known, max_series=0)
    assert refused.latencies == ()
    assert [(tally.reason, tally.count) for tally in refused.rejected] == [(TOO_MANY_OTHERS, 3)]
    again = wide("other")
    assert admitted(again, seen=known, max_series=0) is again


def of_service(name: str) -> Deltas:
    return folded(messages.counter(EVENTS, messages.number(1, attributes=event())), service=name)


def test_services_beyond_the_limit_are_rejected_and_those_known_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.folding.admission.MAX_SERVICES", 1)
    known = seen(admitted(of_service("a"), seen=Seen(), max_series=10))
    again = of_service("a")
    assert admitted(again, seen=known, max_series=10) is again
    refused = admitted(concat((again, of_service("b"))), seen=known, max_series=10)
    assert {row.service for row in (*refused.slo, *refused.known, *refused.instances)} == {"a"}
    assert [(tally.reason, tally.count) for tally in refused.rejected] == [(TOO_MANY_SERVICES, 1)]


def test_counters_beyond_the_limit_of_series_move_to_other_and_lose_nothing() -> None:
    points = (messages.number(1, attributes={signals.REQUEST_MODEL: model}) for model in "abcd")
    capped = admitted(folded(messages.counter(REQUESTS, *points)), seen=Seen(), max_series=2)
    assert [(row.model, row.value) for row in capped.counters] == [("a", 1.0), ("b", 1.0), ("other", 2.0)]


def test_what_was_seen_is_told_apart_by_its_kind() -> None:
    """An objective may be called like a latency and its hash like a source: they are two series all the same."""
    key: dict[str, Value] = {signals.OBJECTIVE: "ttft", signals.OBJECTIVE_HASH: "proxy", signals.RESULT: "good"}
    rows = folded(
        messages.counter(EVENTS, messages.number(1, attributes=messages.MODEL | key)),
        messages.exponential(TTFT, messages.exponential_point([1.0])),
    )
    found = seen(rows, rows)
    assert (len(found), found.services, found.layouts) == (2, {("prod", "chat")}, {"exp:5"})
