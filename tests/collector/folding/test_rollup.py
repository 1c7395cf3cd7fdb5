"""Bodies folded into rows: each point in its own step, once, whatever its temporality, order and age."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.decoding.otlp import decode_metrics, decode_traces
from collector.folding.rollup import (
    BASELINE,
    FUTURE_S,
    MIXED,
    REPEATED,
    REPEATED_DELTA,
    TOO_NEW,
    TOO_OLD,
    Intake,
    fold,
)
from collector.values.deltas import (
    CounterRow,
    Deltas,
    InstanceRow,
    KnownRow,
    LatencyKey,
    SeriesKey,
    SloRow,
    StreamRow,
    concat,
)
from collector.values.histogram import Layout, from_values
from collector.values.measurement import Tally
from slo import signals
from tests.collector import messages
from tests.collector.messages import CUMULATIVE, T0, Value, wire

INTAKE = Intake(now_s=T0 + 100, tick_s=10, oldest_s=T0 - 3600, since_s=T0)
TTFT, EVENTS, HEARTBEAT = signals.TTFT.name, signals.SLO_EVENTS.name, signals.HEARTBEAT.name
REQUESTS = signals.REQUESTS.name


def event(result: str, model: str = "m") -> dict[str, Value]:
    return {
        signals.REQUEST_MODEL: model,
        signals.OBJECTIVE: "ttft",
        signals.OBJECTIVE_HASH: "abc",
        signals.RESULT: result,
    }


def folded(
    *found: wire.Metric, resource: dict[str, Value] = messages.SIDECAR, streams: dict[str, StreamRow] | None = None
) -> Deltas:
    body = messages.metrics(*found, resource=resource).SerializeToString()
    return fold(decode_metrics(body, json=False), intake=INTAKE, streams=streams or {})


def test_a_point_lies_in_the_step_of_its_end() -> None:
    rows = folded(
        messages.exponential(
            TTFT,
            messages.exponential_point([0.1], at_s=T0 + 9.999),
            messages.exponential_point([0.2, 0.3], at_s=T0 + 10),
            messages.exponential_point([0.4], at_s=T0 + 19.9),
        )
    )
    key = SeriesKey(LatencyKey("prod", "chat", "m", "ttft", "proxy"), "i1", Layout(5))
    assert [(row.series, row.start_s, row.histogram) for row in rows.latencies] == [
        (key, T0, from_values([0.1])),
        (key, T0 + 10, from_values([0.2, 0.3, 0.4])),
    ]


def test_good_and_bad_meet_in_one_row_and_zeros_are_rows_too() -> None:
    rows = folded(
        messages.counter(
            EVENTS,
            messages.number(7, attributes=event("good")),
            messages.number(2, attributes=event("bad")),
            messages.number(0, attributes=event("good", "quiet")),
        )
    )
    assert rows.slo == (
        SloRow("prod", "chat", "m", "ttft", "abc", T0 + 10, 7, 2),
        SloRow("prod", "chat", "quiet", "ttft", "abc", T0 + 10, 0, 0),
    )


def test_waits_without_a_value_are_a_series_of_their_own() -> None:
    of: dict[str, Value] = {**messages.MODEL, signals.SIGNAL: "ttft"}
    rows = folded(
        messages.exponential(signals.CENSORED.name, messages.exponential_point([9.0], attributes=of)),
        messages.exponential(TTFT, messages.exponential_point([0.1])),
    )
    found = {(row.series.censored, row.series.latency.signal, row.histogram.count) for row in rows.latencies}
    assert found == {(False, "ttft", 1), (True, "ttft", 1)}


def test_gauges_of_a_step_keep_their_extremes_and_the_latest() -> None:
    points = [messages.number(value, at_s=T0 + at_s) for at_s, value in ((12, 0.5), (18, 0.2), (11, 0.9))]
    (row,) = folded(messages.gauge(signals.KV_OCCUPANCY.name, *points)).gauges
    assert (row.name, row.start_s, row.min, row.max, row.sum, row.samples, row.last) == (
        signals.KV_OCCUPANCY.sql,
        T0 + 10,
        0.2,
        0.9,
        pytest.approx(1.6),
        3,
        0.2,
    )


def test_an_interval_makes_its_steps_known_and_its_sender_heard() -> None:
    rows = folded(messages.counter(HEARTBEAT, messages.number(20, start_s=T0 + 3, at_s=T0 + 23, attributes={})))
    assert rows.known == tuple(KnownRow("prod", "chat", T0 + step) for step in (0, 10, 20))
    assert rows.instances == (InstanceRow("prod", "chat", "i1", "proxy", T0 + 23, T0 + 23, periodic=True),)
    assert rows.counters == (CounterRow("prod", "chat", "", "i1", "proxy", "heartbeat", (), T0 + 20, 20.0),)


def test_an_end_on_the_edge_knows_the_step_before_it() -> None:
    rows = folded(messages.counter(HEARTBEAT, messages.number(10, start_s=T0, at_s=T0 + 10, attributes={})))
    assert [row.start_s for row in rows.known] == [T0]


@pytest.mark.parametrize(("start_s", "steps"), [(T0 - 3000, 1), (T0 + 60, 1), (0, 1), (T0 - 200, 25)])
def test_only_an_interval_of_an_export_is_known_throughout(start_s: float, steps: int) -> None:
    """Neither a whole life, nor an interval turned round by a clock that was set, counts as known time."""
    rows = folded(messages.counter(HEARTBEAT, messages.number(1, start_s=start_s, at_s=T0 + 45, attributes={})))
    assert len(rows.known) == steps
    assert rows.known[-1].start_s == T0 + 40
    assert len(rows.counters) == 1


@pytest.mark.parametrize(
    ("at_s", "reason"),
    [
        (INTAKE.oldest_s - 1, TOO_OLD),
        (INTAKE.oldest_s, None),
        (INTAKE.now_s + FUTURE_S, None),
        (INTAKE.now_s + FUTURE_S + 1, TOO_NEW),
    ],
)
def test_what_is_too_old_or_too_new_is_refused_by_name(at_s: int, reason: str | None) -> None:
    rows = folded(
        messages.counter(EVENTS, messages.number(1, at_s=at_s, attributes=event("bad"))),
        messages.gauge(signals.IN_FLIGHT.name, messages.number(1, at_s=at_s)),
    )
    assert rows.rejected == (() if reason is None else (Tally(reason, 2),))
    assert len(rows.slo) == len(rows.gauges) == (1 if reason is None else 0)
    assert rows.rejected_count == (0 if reason is None else 2)
    assert rows.rejected_text == ("" if reason is None else f"2: {reason}")


def cumulative(*values: tuple[int, int], start_s: int = T0) -> wire.Metric:
    points = (messages.number(value, start_s=start_s, at_s=at_s, attributes=event("good")) for at_s, value in values)
    return messages.counter(EVENTS, *points, temporality=CUMULATIVE)


def test_e02_delta_and_cumulative_are_two_encodings_of_one_truth() -> None:
    delta = folded(
        messages.counter(
            EVENTS, *(messages.number(5, at_s=T0 + at_s, attributes=event("good")) for at_s in (10, 20, 30))
        )
    )
    total = folded(cumulative((T0 + 10, 5), (T0 + 20, 10), (T0 + 30, 15)))
    assert total.slo == delta.slo
    assert sum(row.good for row in total.slo) == 15


def test_a_stream_goes_on_from_the_state_that_was_kept() -> None:
    first = folded(cumulative((T0 + 10, 5)))
    kept = {row.stream: row for row in first.streams}
    second = folded(cumulative((T0 + 20, 12)), streams=kept)
    assert [row.good for row in second.slo] == [7]
    assert [row.start_s for row in second.known] == [T0 + 10]
    assert [(row.stream, row.value) for row in second.streams] == [(first.streams[0].stream, 12.0)]
    again = folded(cumulative((T0 + 20, 12)), streams={row.stream: row for row in second.streams})
    assert (again.slo, again.streams, again.ignored) == ((), (), (Tally(REPEATED, 1),))


def test_an_old_sender_begins_at_nothing_and_is_known_at_once() -> None:
    rows = folded(cumulative((T0 + 10, 500), start_s=T0 - 3000))
    assert rows.slo == (SloRow("prod", "chat", "m", "ttft", "abc", T0 + 10, 0, 0),)
    assert rows.ignored == (Tally(BASELINE, 1),)
    assert len(rows.known) == len(rows.streams) == 1


def test_a_refused_cumulative_point_leaves_its_stream_where_it_was() -> None:
    rows = folded(cumulative((T0 + 10, 5), (T0 + 9000, 7)))
    assert [row.value for row in rows.streams] == [5.0]
    assert rows.rejected == (Tally(TOO_NEW, 1),)


def test_cumulative_histograms_become_what_came() -> None:
    rows = folded(
        messages.exponential(
            TTFT,
            messages.exponential_point([0.1, 0.2], at_s=T0 + 10),
            messages.exponential_point([0.1, 0.2, 5.0], at_s=T0 + 20),
            temporality=CUMULATIVE,
        )
    )
    assert [row.histogram.count for row in rows.latencies] == [2, 1]
    assert rows.latencies[1].histogram.counts.tolist() == from_values([5.0]).counts.tolist()


def test_foreign_spans_are_counted_at_their_end_and_make_nobody_periodic() -> None:
    latencies: dict[str, Value] = {signals.LATENCY_TTFT: 0.25, signals.REQUEST_MODEL: "m"}
    spans = [messages.span(latencies, end_s=T0 + at_s) for at_s in (1, 2, 11)]
    old = messages.span(latencies, start_s=T0 - 9000, end_s=T0 - 8000)
    body = messages.traces(*spans, old).SerializeToString()
    rows = fold(decode_traces(body, json=False), intake=INTAKE, streams={})
    assert [(row.start_s, row.histogram.count) for row in rows.latencies] == [(T0, 2), (T0 + 10, 1)]
    assert rows.latencies[0].series.latency.source == "otel"
    assert rows.instances == (InstanceRow("", "chat", "i9", "otel", T0 + 1, T0 + 11, periodic=False),)
    assert rows.rejected == (Tally(TOO_OLD, 1),)


@given(st.permutations(range(6)), st.integers(1, 5))
def test_any_order_and_any_cut_into_bodies_give_the_same_rows(order: list[int], cut: int) -> None:
    def metric(number: int) -> wire.Metric:
        at_s = T0 + 7 * number
        if number % 2:
            return messages.counter(EVENTS, messages.number(number, at_s=at_s, attributes=event("bad")))
        return messages.exponential(TTFT, messages.exponential_point([0.1 * (number + 1)], at_s=at_s))

    whole = folded(*(metric(number) for number in range(6)))
    parts = [folded(*map(metric, some)) for some in (order[:cut], order[cut:])]
    one = concat(parts)
    assert (one.slo, one.known, one.instances) == (whole.slo, whole.known, whole.instances)
    assert [(row.series, row.start_s, row.histogram.counts.tolist()) for row in one.latencies] == [
        (row.series, row.start_s, row.histogram.counts.tolist()) for row in whole.latencies
    ]


def test_streams_beyond_the_limit_are_rejected_and_those_known_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.folding.rollup.MAX_STREAMS", 1)
    first = folded(cumulative((T0 + 10, 5)))
    kept = {row.stream: row for row in first.streams}
    other = messages.counter(HEARTBEAT, messages.number(10, attributes={}), temporality=CUMULATIVE)
    rows = folded(other, cumulative((T0 + 20, 7)), streams=kept)
    assert [row.good for row in rows.slo] == [2]
    assert rows.counters == ()
    assert [tally.count for tally in rows.rejected] == [1]


def test_where_there_is_no_room_a_delta_counts_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.folding.rollup.MAX_STREAMS", 0)
    foreign = messages.FOREIGN
    rows = folded(messages.counter(HEARTBEAT, messages.number(10, attributes={})), resource=foreign)
    assert [row.value for row in rows.counters] == [10.0]
    assert rows.streams == ()


def test_an_interval_that_a_later_one_took_the_place_of_is_not_known_again() -> None:
    """Memory is for the last few intervals: an older one may be late, and counts."""
    points = [messages.number(1, start_s=T0 + 10 * n, at_s=T0 + 10 * n + 10, attributes={}) for n in range(17)]
    beats = [messages.counter(HEARTBEAT, points[n]) for n in (*range(17), 16, 0)]
    rows = folded(*beats, resource=messages.FOREIGN)
    assert [row.value for row in rows.counters] == [2.0, *[1.0] * 16]
    assert rows.ignored == (Tally(REPEATED_DELTA, 1),)


def test_a_sender_that_learns_when_it_started_goes_on_from_its_first_point() -> None:
    """OTel data model: a first point whose start is its time tells of a past of unknown length."""
    rows = folded(
        cumulative((T0 + 10, 500), start_s=T0 + 10),
        cumulative((T0 + 20, 503), (T0 + 30, 504), start_s=T0 + 10),
    )
    assert [row.good for row in rows.slo] == [0, 3, 1]
    assert rows.ignored == (Tally(BASELINE, 1),)


def test_a_sender_whose_clock_is_set_back_for_a_while_stays_one_stream() -> None:
    rows = folded(
        cumulative((T0 + 10, 5), start_s=T0),
        cumulative((T0 - 590, 7), (T0 - 580, 8), start_s=T0),
        cumulative((T0 + 20, 9), start_s=T0),
    )
    assert sum(row.good for row in rows.slo) == 9
    assert rows.ignored == (Tally(REPEATED, 2),)


def test_of_a_sender_that_started_by_a_clock_ahead_counting_starts_at_its_first_point() -> None:
    rows = folded(cumulative((T0 + 10, 500), (T0 + 20, 503), start_s=T0 + 600))
    assert sum(row.good for row in rows.slo) == 3
    assert rows.ignored == (Tally(BASELINE, 1),)


def test_senders_without_a_start_that_share_a_resource_are_told_so() -> None:
    values = ((T0 + 10, 500), (T0 + 20, 2), (T0 + 30, 501), (T0 + 40, 3), (T0 + 50, 502))
    rows = folded(cumulative(*values, start_s=0))
    assert rows.rejected == (Tally(MIXED, 2),)


def test_spans_of_another_time_are_refused_and_their_kind_told() -> None:
    found: dict[str, Value] = {signals.LATENCY_TTFT: 0.25}
    ends_s = (INTAKE.oldest_s - 1, INTAKE.oldest_s, INTAKE.now_s + FUTURE_S, INTAKE.now_s + FUTURE_S + 1)
    spans = [messages.span(found, start_s=end_s - 1, end_s=end_s) for end_s in ends_s]
    rows = fold(decode_traces(messages.traces(*spans).SerializeToString(), json=False), intake=INTAKE, streams={})
    assert rows.rejected == (Tally(TOO_NEW, 1), Tally(TOO_OLD, 1))
    assert sum(row.histogram.count for row in rows.latencies) == 2
