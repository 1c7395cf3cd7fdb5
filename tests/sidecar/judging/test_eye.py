"""What is counted, and when: the eye over a proxy on real sockets."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest

from sidecar.counting.exemplar import Exemplar
from sidecar.said import dialects
from sidecar.said.exchange import Exchange
from slo.objective import Spec
from slo.signals import (
    ABANDONED,
    BROKEN_STREAMS,
    CENSORED,
    CLASS,
    E2E,
    GUARDED,
    HEARTBEAT,
    IN_FLIGHT,
    LAST_TOKEN_AGE,
    OBJECTIVE,
    OBJECTIVE_HASH,
    OLDEST_AGE,
    OVERDUE,
    PROMPT_TOKENS,
    REASON,
    REQUESTS,
    SIGNAL,
    SLO_EVENTS,
    TELEMETRY_FAULTS,
    TOKENS,
    TPOT,
    TTFT,
    TTFT_BY_PROMPT,
    TTFT_PREDICTED,
    WAITING_FIRST_TOKEN,
)
from tests.sidecar.rig import (
    PATIENT_S,
    SSE_HEAD,
    STOP,
    Handler,
    Received,
    Rig,
    chat,
    chunk,
    completion,
    delta,
    on_a_loop,
    proxied,
    raw,
    sized,
    spec,
    until,
)

FAST = spec(
    "{name: first, signal: ttft, percentile: 95, threshold: 100ms}",
    "{name: whole, signal: e2e, percentile: 95, threshold: 150ms}",
    "{name: answered, signal: availability, target: 99.9%}",
)
SLOW = spec(
    "{name: first, signal: ttft, percentile: 95, threshold: 20s}",
    "{name: steady, signal: tpot, percentile: 95, threshold: 20s}",
    "{name: whole, signal: e2e, percentile: 95, threshold: 20s}",
    "{name: answered, signal: availability, target: 99.9%}",
)


async def hang(_: Received, __: asyncio.StreamWriter) -> None:
    await asyncio.sleep(1000)


def gauges(rig: Rig) -> dict[tuple[str, ...], float]:
    return {
        (point.metric.name, *(value for _, value in point.attributes)): point.value
        for point in rig.eye.gauges(time.monotonic_ns())
    }


@on_a_loop
async def test_bad_is_counted_at_the_deadline_while_the_request_hangs() -> None:
    async with proxied(hang, objectives=FAST) as rig, rig.client() as (_, writer):
        rig.eye.learn("m")
        writer.write(chat())
        await until(lambda: len(rig.behind.requests) == 1)
        assert gauges(rig)[IN_FLIGHT.name, "m"] == 1
        assert gauges(rig)[WAITING_FIRST_TOKEN.name, "m"] == 1
        await until(lambda: ("m", "whole", "bad") in rig.events())
        assert rig.events() == {("m", "first", "bad"): 1, ("m", "whole", "bad"): 1}
        assert gauges(rig)[OVERDUE.name, "m", "ttft"] == 1
        assert gauges(rig)[OVERDUE.name, "m", "e2e"] == 1
        assert gauges(rig)[LAST_TOKEN_AGE.name,] > 0.1
        assert gauges(rig)[OLDEST_AGE.name, "m"] > 0.1
        assert rig.outcomes() == {}
        assert rig.latencies() == {}


@on_a_loop
async def test_what_hung_and_left_is_censored_and_not_counted_twice() -> None:
    async with proxied(hang, objectives=FAST) as rig:
        rig.eye.learn("m")
        async with rig.client() as (_, writer):
            writer.write(chat())
            await until(lambda: ("m", "whole", "bad") in rig.events())
        await until(lambda: rig.outcomes() == {"cancelled": 1})
        assert rig.events() == {("m", "first", "bad"): 1, ("m", "whole", "bad"): 1}
        censored = [point for point in rig.tally.take(delta=False)[1] if point.metric is CENSORED]
        assert sorted(dict(point.attributes)[SIGNAL] for point in censored) == ["e2e", "ttft"]
        assert all(point.buckets.count == 1 and point.buckets.min > 0.15 for point in censored)
        assert gauges(rig)[OVERDUE.name, "m", "ttft"] == 0
        assert (LAST_TOKEN_AGE.name,) not in gauges(rig)
        assert gauges(rig)[OLDEST_AGE.name, "m"] == 0
        assert rig.ended[0].violated


@on_a_loop
async def test_a_good_stream_is_good_once_for_each_objective() -> None:
    async with proxied(raw(completion("a", "b", "c")), objectives=SLOW) as rig:
        for _ in range(3):
            await rig.ask(chat())
        names = ("first", "steady", "whole", "answered")
        assert rig.events() == {("m", name, "good"): 3 for name in names}
        found = rig.latencies()
        assert {name: found[name].count for name in found} == {TTFT.name: 3, TPOT.name: 3, E2E.name: 3}
        assert not rig.ended[0].violated


@on_a_loop
async def test_an_error_before_the_deadline_is_bad_at_once() -> None:
    async with proxied(raw(sized(b"{}", status="500 Oh")), objectives=SLOW) as rig:
        rig.eye.learn("m")
        await rig.ask(chat())
        assert rig.events() == {("m", name, "bad"): 1 for name in ("first", "whole", "answered")}


OUTCOMES = {
    "ok": ("ok", completion("a"), True),
    "not one token": ("no_output", SSE_HEAD + chunk(STOP) + b"0\r\n\r\n", True),
    "not streamed": ("ok", sized(b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}'), False),
    "overload": ("rejected", sized(b"{}", status="503 Busy"), True),
    "too many": ("quota", sized(b"{}", status="429 Slow"), True),
    "a bad request": ("client_error", sized(b"{}", status="400 No"), True),
    "a server's fault": ("error", sized(b"{}", status="500 No"), True),
}


@pytest.mark.parametrize("case", OUTCOMES)
@on_a_loop
async def test_every_admitted_request_has_one_outcome(case: str) -> None:
    outcome, answer, stream = OUTCOMES[case]
    async with proxied(raw(answer)) as rig:
        await rig.ask(chat(stream=stream))
        assert rig.outcomes() == {outcome: 1}


ERROR = b'data: {"error":{"message":"no","code":500}}\n\n'
WENT_WRONG = {
    "a stream that ends well": (completion("a"), {}),
    "a refusal is no broken stream": (sized(b"{}", status="500 No"), {}),
    "an error in mid-stream": (SSE_HEAD + chunk(delta("a")) + chunk(ERROR) + b"0\r\n\r\n", {"broken": 1}),
    "an error instead of a first token": (SSE_HEAD + chunk(ERROR) + b"0\r\n\r\n", {"broken": 1}),
}


def went_wrong(rig: Rig) -> dict[str, int]:
    """Requests that were left before any token, and streams that broke, without zeros."""
    named = {ABANDONED: "abandoned", BROKEN_STREAMS: "broken"}
    return {named[p.metric]: int(p.value) for p in rig.tally.totals() if p.metric in named and p.value}


@pytest.mark.parametrize("case", WENT_WRONG)
@on_a_loop
async def test_where_on_the_way_a_request_went_wrong_is_counted(case: str) -> None:
    answer, expected = WENT_WRONG[case]
    async with proxied(raw(answer)) as rig:
        await rig.ask(chat())
        assert went_wrong(rig) == expected


async def one_token(_: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(SSE_HEAD + chunk(delta("a")))
    await asyncio.sleep(PATIENT_S)


@pytest.mark.parametrize(
    ("handler", "expected"), [(hang, {"abandoned": 1}), (one_token, {})], ids=["before any token", "after a token"]
)
@on_a_loop
async def test_a_client_that_leaves_before_any_token_abandons(handler: Handler, expected: dict[str, int]) -> None:
    async with proxied(handler) as rig:
        async with rig.client() as (reader, writer):
            writer.write(chat())
            await until(lambda: rig.eye.in_flight == 1)
            if handler is one_token:
                await reader.readuntil(b"\n\n")
        await until(lambda: rig.outcomes() == {"cancelled": 1})
        assert went_wrong(rig) == expected


@on_a_loop
async def test_a_label_that_a_gauge_has_shown_stays_at_zero() -> None:
    async with proxied(hang) as rig:
        async with rig.client() as (_, writer):
            writer.write(chat())
            await until(lambda: gauges(rig)[IN_FLIGHT.name, "other"] == 1)
        await until(lambda: rig.outcomes() == {"cancelled": 1})
        rig.eye.learn("m")
        assert gauges(rig)[IN_FLIGHT.name, "other"] == gauges(rig)[IN_FLIGHT.name, "m"] == 0


@on_a_loop
async def test_known_models_stand_at_zero_before_their_first_request() -> None:
    async with proxied(raw(b""), objectives=SLOW) as rig:
        rig.eye.introduce(rig.eye.labels.serve(["m"]))
        made = {
            (point.metric.name, *(value for _, value in point.attributes)): point.value for point in rig.tally.totals()
        }
        digest = SLOW.objectives[0].hash
        assert (
            made[SLO_EVENTS.name, "m", "first", digest, "good"]
            == made[SLO_EVENTS.name, "m", "first", digest, "bad"]
            == 0
        )
        assert made[REQUESTS.name, "m", "error"] == 0
        assert made[GUARDED.name, "m", "would_shed", "bad"] == 0
        assert gauges(rig)[IN_FLIGHT.name, "m"] == 0
        assert {metric.name for metric, _, _ in rig.tally.classics()} == {TTFT.name, TPOT.name, E2E.name, CENSORED.name}


@on_a_loop
async def test_a_model_that_an_objective_names_literally_is_known_from_the_start() -> None:
    named = spec("{name: first, signal: ttft, percentile: 95, threshold: 1s, match: {model: exact}}")
    async with proxied(raw(b""), objectives=named) as rig:
        assert rig.eye.labels.known == ("exact",)
        made = [point for point in rig.tally.totals() if point.metric is SLO_EVENTS]
        assert [point.value for point in made] == [0, 0]


@on_a_loop
async def test_models_beyond_the_limit_share_a_label() -> None:
    async with proxied(raw(completion("a")), max_models=2) as rig:
        for number in range(5):
            await rig.ask(chat(model=f"m{number}"))
        labels = {
            dict(point.attributes)["gen_ai.request.model"] for point in rig.tally.totals() if point.metric is REQUESTS
        }
        assert labels == {"m0", "m1", "other"}
        assert rig.outcomes() == {"ok": 5}


@on_a_loop
async def test_a_class_is_believed_from_a_trusted_client_and_from_the_closed_list_only() -> None:
    classed = spec(
        "{name: first, signal: ttft, percentile: 95, threshold: 20s, match: {class: batch}}",
        classes="classes: [batch]\n",
    )
    async with proxied(raw(completion("a")), objectives=classed) as rig:
        await rig.ask(chat(extra="X-Firsttoken-Class: batch\r\n"))
        await rig.ask(chat(extra="X-Firsttoken-Class: strange\r\n"))
        await rig.ask(chat())
        assert rig.events() == {("m", "first", "good"): 1}
        assert [ended.request_class for ended in rig.ended] == ["batch", None, None]
        for connection in rig.door.connections:
            connection._trusted = False
        async with rig.client() as (reader, writer):
            await until(lambda: bool(rig.door.connections))
            for connection in rig.door.connections:
                connection._trusted = False
            writer.write(chat(extra="X-Firsttoken-Class: batch\r\n"))
            await reader.readuntil(b"0\r\n\r\n")
        assert rig.ended[-1].request_class is None


@on_a_loop
async def test_synthetic_traffic_enters_requests_and_spans_only() -> None:
    async with proxied(raw(completion("a", "b")), objectives=SLOW) as rig:
        await rig.ask(chat(extra="X-Firsttoken-Class: synthetic\r\n"))
        assert rig.events() == {}
        assert rig.latencies() == {}
        assert rig.outcomes() == {"ok": 1}
        assert len(rig.ended) == 1
        assert not [point for point in rig.tally.totals() if point.metric is TOKENS]
        (point,) = [p for p in rig.tally.totals() if p.metric is REQUESTS and p.value]
        assert dict(point.attributes)[CLASS] == "synthetic"


COUNTED = b'data: {"choices":[],"usage":{"prompt_tokens":300,"completion_tokens":2}}\n\n'


@pytest.mark.parametrize(("usage", "lengths"), [(COUNTED, {"to_1k": 1}), (b"", {})], ids=["counted", "not counted"])
@on_a_loop
async def test_a_first_token_is_measured_by_prompt_length_where_the_server_counts_it(
    usage: bytes, lengths: dict[str, int]
) -> None:
    tokens = chunk(delta("a")) + chunk(delta("b")) + chunk(STOP)
    async with proxied(raw(SSE_HEAD + tokens + (chunk(usage) if usage else b"") + b"0\r\n\r\n")) as rig:
        await rig.ask(chat())
        _, found = rig.tally.take(delta=False)
        by_prompt = [point for point in found if point.metric is TTFT_BY_PROMPT]
        assert {dict(point.attributes)[PROMPT_TOKENS]: point.buckets.count for point in by_prompt} == lengths
        assert rig.latencies()[TTFT.name].count == 1


@on_a_loop
async def test_a_synthetic_request_that_waits_is_nobodys_oldest() -> None:
    async with proxied(hang, objectives=FAST) as rig, rig.client() as (_, writer):
        rig.eye.learn("m")
        writer.write(chat(extra="X-Firsttoken-Class: synthetic\r\n"))
        await until(lambda: gauges(rig)[WAITING_FIRST_TOKEN.name, "m"] == 1)
        assert gauges(rig)[OLDEST_AGE.name, "m"] == 0


@on_a_loop
async def test_a_reload_changes_what_is_judged_and_forgets_old_hashes() -> None:
    async with proxied(raw(completion("a")), objectives=SLOW) as rig:
        await rig.ask(chat())
        rig.eye.load(
            spec(
                "{name: first, signal: ttft, percentile: 95, threshold: 1ms}",
                "{name: answered, signal: availability, target: 99%}",
            )
        )
        assert rig.events() == {("m", "answered", "good"): 1}  # its hash is the same: the target decides no event
        await rig.ask(chat())
        assert (
            set(rig.events()) == {("m", "answered", "good"), ("m", "first", "bad")}
            or rig.events()["m", "first", "good"]
        )
        rig.eye.load(None)
        assert rig.events() == {}


@on_a_loop
async def test_a_request_in_flight_over_a_reload_keeps_its_objectives() -> None:
    gate = asyncio.Event()

    async def wait(_: Received, writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        writer.write(completion("a"))

    async with proxied(wait, objectives=SLOW) as rig, rig.client() as (reader, writer):
        writer.write(chat())
        await until(lambda: len(rig.behind.requests) == 1)
        again: Spec = spec("{name: first, signal: ttft, percentile: 90, threshold: 20s}")
        rig.eye.load(again)
        gate.set()
        await reader.readuntil(b"0\r\n\r\n")
        assert rig.events() == {("m", "first", "good"): 1}


@on_a_loop
async def test_each_second_lives_and_judges_the_engines_state() -> None:
    state = spec(
        "{name: kv, signal: kv_occupancy, threshold: 90%, target: 99%}",
        "{name: queue, signal: queue, threshold: 10, target: 99%}",
    )
    async with proxied(hang, objectives=state) as rig, rig.client() as (_, writer):
        rig.eye.introduce(rig.eye.labels.serve(["m"]))
        writer.write(chat())
        await until(lambda: len(rig.behind.requests) == 1)
        now_ns = time.monotonic_ns()
        for second, kv in enumerate((0.5, 0.95, 0.95, None)):
            rig.eye.second(now_ns + second * 1_000_000_000, kv_occupancy=kv, waiting=3.0, heartbeats=1)
        assert rig.tally.total(HEARTBEAT, ()) == 4
        found = rig.events()
        assert found["m", "queue", "good"] == 3
        assert found["m", "kv", "good"] == 1
        assert found["m", "kv", "bad"] == 2
    await until(lambda: len(rig.ended) == 1)
    assert rig.ended[0].kv_max == 0.95


@on_a_loop
async def test_an_engine_that_a_synthetic_load_fills_is_not_judged_by_it() -> None:
    state = spec("{name: kv, signal: kv_occupancy, threshold: 90%, target: 99%}")
    async with proxied(hang, objectives=state) as rig, AsyncExitStack() as stack:
        rig.eye.introduce(rig.eye.labels.serve(["m"]))
        now_s = time.monotonic_ns() // 10**9
        synthetic = chat(extra="X-Firsttoken-Class: synthetic\r\n")
        for number, request in enumerate((synthetic, synthetic, chat(), chat(), chat())):
            _, writer = await stack.enter_async_context(rig.client())
            writer.write(request)
            await until(lambda count=number + 1: len(rig.behind.requests) == count)  # type: ignore[misc]
            rig.eye.second((now_s + number) * 10**9, kv_occupancy=0.95, waiting=None, heartbeats=1)
        rig.eye.second((now_s + 5) * 10**9, kv_occupancy=0.95, waiting=None, heartbeats=1)
        # Two synthetic ones of two, of two, of three; then half of four, and less.
        assert rig.events() == {("m", "kv", "bad"): 2}


@on_a_loop
async def test_the_engines_state_is_judged_for_the_models_that_it_serves() -> None:
    state = spec(
        "{name: ours, signal: kv_occupancy, threshold: 90%, target: 99%, match: {model: 'm*'}}",
        "{name: theirs, signal: kv_occupancy, threshold: 90%, target: 99%, match: {model: other}}",
    )
    async with proxied(hang, objectives=state) as rig, rig.client() as (_, writer):
        rig.eye.introduce(rig.eye.labels.serve(["m"]))
        writer.write(chat())
        await until(lambda: len(rig.behind.requests) == 1)
        now_ns = time.monotonic_ns()
        for second in range(4):
            rig.eye.second(now_ns + second * 1_000_000_000, kv_occupancy=0.5, waiting=3.0, heartbeats=1)
        assert rig.events() == {("m", "ours", "good"): 3}


def exemplars(rig: Rig) -> dict[str, list[Exemplar]]:
    """What the buckets of each latency point at."""
    found: dict[str, list[Exemplar]] = {}
    for metric, _, classic in rig.tally.classics():
        found.setdefault(metric.name, []).extend(classic.exemplars.values())
    return {name: some for name, some in found.items() if some}


@on_a_loop
async def test_buckets_point_at_the_newest_request_that_left_a_trace() -> None:
    async with proxied(raw(completion("a", "b")), objectives=SLOW, traced=True) as rig:
        await rig.ask(chat())
        (first,) = rig.ended
        found = exemplars(rig)
        record = first.record
        wanted = {TTFT.name: record.ttft_s, TPOT.name: record.tpot_s, E2E.name: record.e2e_s}
        assert {name: value for name, ((value, _),) in found.items()} == wanted
        assert {trace.trace_id for some in found.values() for _, trace in some} == {first.context.trace_id}
        for _ in range(20):
            await rig.ask(chat())
        newest = {trace.trace_id for some in exemplars(rig).values() for _, trace in some}
        assert rig.ended[-1].context.trace_id in newest
        assert len(newest) <= 21


@on_a_loop
async def test_a_request_without_a_trace_and_a_synthetic_one_leave_no_example() -> None:
    async with proxied(raw(completion("a", "b"))) as rig:
        await rig.ask(chat())
        assert exemplars(rig) == {}
    async with proxied(raw(completion("a", "b")), traced=True) as rig:
        await rig.ask(chat(extra="X-Firsttoken-Class: synthetic\r\n"))
        assert len(rig.ended) == 1
        assert exemplars(rig) == {}


@on_a_loop
async def test_a_span_that_fails_takes_no_measurement_with_it() -> None:
    async with proxied(raw(completion("a", "b")), objectives=SLOW) as rig:
        rig.eye._ended = broken  # type: ignore[assignment]
        await rig.ask(chat())
        assert rig.tally.total(TELEMETRY_FAULTS, ((REASON, "KeyError"),)) == 1
        assert {name: found.count for name, found in rig.latencies().items()} == {
            TTFT.name: 1,
            TPOT.name: 1,
            E2E.name: 1,
        }
        assert rig.events()["m", "first", "good"] == 1


def broken(*_: object, **__: object) -> object:
    raise KeyError("the prompt was: secret")


FAULTS: dict[str, tuple[object, str, Callable[..., object]]] = {
    "the dialects": (dialects, "recognise", broken),
    "reading the request": (dialects, "read_ask", broken),
    "the head": (Exchange, "response_started", broken),
    "the bytes": (Exchange, "feed", broken),
    "the end": (Exchange, "response_ended", broken),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_of_telemetry_is_counted_and_touches_no_byte(
    case: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    where, name, fault = FAULTS[case]
    monkeypatch.setattr(where, name, fault)

    @on_a_loop
    async def run() -> None:
        async with proxied(raw(completion("a", "b"))) as rig, rig.client() as (reader, writer):
            for _ in range(2):
                writer.write(chat())
                assert await reader.readexactly(len(completion("a", "b"))) == completion("a", "b")
            faults = [point for point in rig.tally.totals() if point.metric is TELEMETRY_FAULTS]
            assert dict(faults[0].attributes) == {REASON: "KeyError"}
            assert faults[0].value >= 2
            assert sum(value for key, value in gauges(rig).items() if key[0] == IN_FLIGHT.name) == 0

    with caplog.at_level(logging.ERROR):
        run()
    assert len([record for record in caplog.records if "telemetry fault KeyError" in record.message]) == 1
    assert "secret" not in caplog.text


@on_a_loop
async def test_age_counts_from_the_last_token_of_any_request() -> None:
    async def one_then_hang(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + chunk(delta("a")))
        await asyncio.sleep(1000)

    async with proxied(one_then_hang) as rig, rig.client() as (reader, writer):
        writer.write(chat())
        await reader.readuntil(b"a")
        await asyncio.sleep(0.05)
        first = gauges(rig)[LAST_TOKEN_AGE.name,]
        assert 0.04 < first < 10
        writer.write(chat())
        async with rig.client() as (other, writing):
            writing.write(chat())
            await other.readuntil(b'"content":"a"')
            assert gauges(rig)[LAST_TOKEN_AGE.name,] < first + 10


@on_a_loop
async def test_what_is_at_stake_is_what_requests_in_flight_come_to_should_they_break() -> None:
    async def one_then_hang(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + chunk(delta("a")))
        await asyncio.sleep(1000)

    async with proxied(one_then_hang, objectives=SLOW) as rig:
        assert rig.eye.at_stake() == ()
        async with rig.client() as (reader, writer), rig.client() as (other, writing):
            for one, end in ((reader, writer), (other, writing)):
                end.write(chat())
                await one.readuntil(b'"content":"a"')
            assert rig.eye.in_flight == 2
            said = {tuple(v for k, v in n.attributes if k != OBJECTIVE_HASH): n.value for n in rig.eye.at_stake()}
            assert said == {("m", "error"): 2, ("m", "whole", "bad"): 2, ("m", "answered", "bad"): 2}
            events = [n for n in rig.eye.at_stake() if n.metric is SLO_EVENTS]
            assert all(rig.eye.judges(n.attributes) for n in events)
            rig.eye.load(FAST)
            assert not any(rig.eye.judges(n.attributes) for n in events if dict(n.attributes)[OBJECTIVE] == "whole")


@on_a_loop
async def test_the_first_token_of_the_next_request_is_predicted_once_one_was_seen() -> None:
    async with proxied(raw(completion("a", "b")), objectives=SLOW) as rig:
        assert (TTFT_PREDICTED.name,) not in gauges(rig)
        await rig.ask(chat())
        rig.eye.catch_up()
        assert 0 < gauges(rig)[TTFT_PREDICTED.name,] < 10
        (ended,) = rig.ended
        assert ended.verdict == "in_time"
        rig.eye.load(None)
        assert (TTFT_PREDICTED.name,) not in gauges(rig), "nothing is promised of any"
