"""Metric points: every fault has its name, and costs its own point alone."""

import pytest

from collector.decoding.otlp import decode_metrics
from collector.decoding.points import TOO_MANY_POINTS
from collector.values.measurement import Batch, Tally
from slo import signals
from tests.collector import messages
from tests.collector.messages import CUMULATIVE, Value, wire

TTFT, EVENTS, HEARTBEAT = signals.TTFT.name, signals.SLO_EVENTS.name, signals.HEARTBEAT.name
EVENT: dict[str, Value] = {signals.OBJECTIVE: "ttft", signals.RESULT: "good"}


def read(*found: wire.Metric) -> Batch:
    return decode_metrics(messages.metrics(*found).SerializeToString(), json=False)


def without_time(point: wire.NumberDataPoint) -> wire.NumberDataPoint:
    point.time_unix_nano = 0
    return point


REJECTED = {
    "no time": (messages.counter(HEARTBEAT, without_time(messages.number(1))), "without a time"),
    "no temporality": (messages.counter(HEARTBEAT, messages.number(1), temporality=0), "temporality is unspecified"),
    "not monotonic": (messages.counter(HEARTBEAT, messages.number(1), monotonic=False), "must be monotonic"),
    "a counter as a gauge": (messages.gauge(HEARTBEAT, messages.number(1)), "is a counter, and came as a gauge"),
    "a histogram as a sum": (messages.counter(TTFT, messages.number(1)), "is a histogram, and came as a sum"),
    "a gauge as changes": (messages.counter(signals.IN_FLIGHT.name, messages.number(1)), "send values"),
    "a negative count": (messages.counter(HEARTBEAT, messages.number(-1)), "a count must be from 0"),
    "an endless count": (messages.counter(HEARTBEAT, messages.number(1e300)), "a count must be from 0"),
    "a value beyond all": (messages.gauge(signals.IN_FLIGHT.name, messages.number(1.7e308)), "within 1e+18 of 0"),
    "more events than can be added up": (
        messages.counter(EVENTS, messages.number(1 << 48, attributes=EVENT | {signals.RESULT: "good"})),
        "a count must be from 0",
    ),
    "an infinite value": (messages.gauge(signals.IN_FLIGHT.name, messages.number(float("inf"))), "no finite number"),
    "milliseconds": (messages.exponential(TTFT, messages.exponential_point([1.0]), unit="ms"), "send seconds"),
    "an event of no objective": (messages.counter(EVENTS, messages.number(1, attributes={})), "an event needs"),
    "an event neither good nor bad": (
        messages.counter(EVENTS, messages.number(1, attributes={**EVENT, signals.RESULT: "so-so"})),
        "good or bad",
    ),
    "waits for what is no latency": (
        messages.exponential(signals.CENSORED.name, messages.exponential_point([1.0])),
        "use one of e2e, tpot, ttft",
    ),
    "a prompt of no class of lengths": (
        messages.exponential(
            signals.TTFT_BY_PROMPT.name, messages.exponential_point([1.0], attributes={signals.PROMPT_TOKENS: "1234"})
        ),
        "is '1234': use one of over_16k, to_16k, to_1k, to_256, to_4k",
    ),
}


@pytest.mark.parametrize("name", REJECTED)
def test_a_faulty_point_is_rejected_by_name(name: str) -> None:
    metric, reason = REJECTED[name]
    batch = read(metric, messages.counter(HEARTBEAT, messages.number(1)))
    (tally,) = batch.rejected
    assert (tally.count, len(batch.counters)) == (1, 1)
    assert reason in tally.reason
    assert metric.name in tally.reason


def test_a_point_without_a_value_is_rejected() -> None:
    point = messages.number(1)
    point.ClearField("as_int")
    assert "no finite number" in read(messages.counter(HEARTBEAT, point)).rejected[0].reason


def test_a_point_that_says_it_has_no_value_is_ignored() -> None:
    point = messages.number(1)
    point.flags = wire.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK
    batch = read(messages.counter(HEARTBEAT, point))
    assert (batch.rejected, batch.counters) == ((), ())
    assert [tally.count for tally in batch.ignored] == [1]


def test_synthetic_traffic_enters_no_percentile() -> None:
    synthetic: dict[str, Value] = {**messages.MODEL, signals.CLASS: "synthetic"}
    batch = read(messages.exponential(TTFT, messages.exponential_point([1.0], attributes=synthetic)))
    assert batch.latencies == ()
    assert [(tally.reason, tally.count) for tally in batch.ignored] == [("latency of synthetic traffic", 1)]


@pytest.mark.parametrize(("stratum", "signal"), signals.TTFT_STRATA.items())
def test_a_latency_by_prompt_length_is_a_latency_of_its_own(stratum: str, signal: str) -> None:
    point = messages.exponential_point([1.0], attributes={signals.PROMPT_TOKENS: stratum})
    (found,) = read(messages.exponential(signals.TTFT_BY_PROMPT.name, point)).latencies
    assert (found.signal, found.censored) == (signal, False)


def test_a_gauge_may_come_as_a_cumulative_sum() -> None:
    batch = read(messages.counter(signals.IN_FLIGHT.name, messages.number(3), temporality=CUMULATIVE, monotonic=False))
    assert [point.value for point in batch.gauges] == [3.0]


def test_a_summary_is_refused_by_name_and_a_metric_without_data_is_none() -> None:
    summary = wire.Summary(data_points=[wire.SummaryDataPoint(), wire.SummaryDataPoint()])
    batch = read(
        wire.Metric(name=TTFT, summary=summary), wire.Metric(name=TTFT), wire.Metric(name="x", summary=summary)
    )
    assert batch.rejected == (Tally(f"{TTFT}: it is a histogram, and came as a summary", 2),)
    assert [tally.count for tally in batch.ignored] == [3]


def test_a_delta_has_no_stream_and_each_cumulative_series_its_own() -> None:
    other: dict[str, Value] = {**messages.MODEL, signals.TOKEN_TYPE: "input"}
    tokens = signals.TOKENS.name
    batch = read(
        messages.counter(tokens, messages.number(1)),
        messages.counter(tokens, messages.number(1), messages.number(1, attributes=other), temporality=CUMULATIVE),
        messages.counter(signals.REQUESTS.name, messages.number(1), temporality=CUMULATIVE),
    )
    delta, *streams = [point.interval.stream for point in batch.counters]
    assert delta == ""
    assert len(set(streams)) == 3
    assert all(len(stream) == 32 for stream in streams)


def test_a_counter_keeps_the_attributes_that_its_metric_names() -> None:
    found: dict[str, Value] = {**messages.MODEL, signals.OUTCOME: "ok", signals.CLASS: "batch", "http.route": "/v1"}
    (point,) = read(messages.counter(signals.REQUESTS.name, messages.number(2, attributes=found))).counters
    assert point.attributes == (("class", "batch"), ("outcome", "ok"))


@pytest.mark.parametrize(
    ("found", "model"),
    [
        ({}, "unknown"),
        ({signals.RESPONSE_MODEL: "r"}, "r"),
        ({signals.RESPONSE_MODEL: "r", signals.REQUEST_MODEL: "q"}, "q"),
        ({signals.REQUEST_MODEL: "x" * 500}, "x" * 256),
    ],
)
def test_a_latency_names_its_model(found: dict[str, Value], model: str) -> None:
    (point,) = read(messages.exponential(TTFT, messages.exponential_point([1.0], attributes=found))).latencies
    assert point.model == model


def test_of_an_endless_unit_only_the_beginning_is_told() -> None:
    metric = messages.exponential(TTFT, messages.exponential_point([1.0]), unit='"\n\0' + "x" * 1_000_000)
    (tally,) = read(metric).rejected
    assert "send seconds" in tally.reason
    assert len(tally.reason) < 200


@pytest.mark.parametrize("temporality", [CUMULATIVE, messages.DELTA])
def test_a_start_beyond_the_end_is_the_end(temporality: int) -> None:
    point = messages.number(5, attributes=EVENT | {signals.RESULT: "good"})
    point.start_time_unix_nano = 2**64 - 1
    (event,) = read(messages.counter(EVENTS, point, temporality=temporality)).events
    # Of a cumulative point that is no start at all.
    assert event.interval.start_ns == (0 if temporality == CUMULATIVE else point.time_unix_nano)
    assert event.interval.end_ns == point.time_unix_nano


@pytest.mark.parametrize(("start_s", "starts_s"), [(0, 0), (messages.T0 + 10, 0), (messages.T0, messages.T0)])
def test_a_cumulative_point_of_unknown_start_is_of_one_stream(start_s: float, starts_s: float) -> None:
    """OTel data model: a start that equals the time says that the true start is not known."""
    point = messages.number(5, attributes=EVENT, start_s=start_s)
    (event,) = read(messages.counter(EVENTS, point, temporality=CUMULATIVE)).events
    assert event.interval.start_ns == starts_s * messages.NS
    unknown = messages.number(5, attributes=EVENT, start_s=0)
    (other,) = read(messages.counter(EVENTS, unknown, temporality=CUMULATIVE)).events
    assert (event.interval.stream == other.interval.stream) == (starts_s == 0)
    assert (event.interval.unstarted == other.interval.stream) == (starts_s != 0)


def test_points_beyond_the_limit_of_a_body_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.decoding.points.MAX_POINTS", 3)
    two = messages.counter(HEARTBEAT, messages.number(1), messages.number(2))
    batch = read(messages.gauge("cpu", *[messages.number(1)] * 9), two, two)
    assert len(batch.counters) == 2
    assert batch.rejected == (Tally(TOO_MANY_POINTS, 2),)


def test_a_sender_is_not_quoted_without_end() -> None:
    """A faulty attribute is named in what its sender is told: of many different ones a few."""
    points = [
        messages.exponential_point([1.0], attributes={signals.SIGNAL: f"{number}" * 80}) for number in range(10, 99)
    ]
    batch = read(messages.exponential(signals.CENSORED.name, *points))
    assert sum(tally.count for tally in batch.rejected) == 89
    assert len(batch.rejected) < 40
    assert all(len(tally.reason) <= 300 for tally in batch.rejected)


def test_a_foreign_delta_is_remembered_by_its_place_and_ours_is_not() -> None:
    metric = messages.exponential(TTFT, messages.exponential_point([1.0]))
    places = []
    for resource in (messages.SIDECAR, messages.FOREIGN, messages.FOREIGN | {signals.SERVICE_INSTANCE: ""}):
        body = messages.metrics(metric, resource=resource).SerializeToString()
        (point,) = decode_metrics(body, json=False).latencies
        places.append(point.interval.place)
    assert [bool(place) for place in places] == [False, True, False]
