"""The worst of many spans: those that opening every span would find, and nothing but names, ids and numbers."""

import random
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from collector.decoding.otlp import decode_traces
from collector.decoding.worst_spans import MAX_WORST, opened, worst
from collector.values.measurement import FAILED, NS, Resource
from slo import signals
from tests.collector import messages
from tests.collector.messages import T0

OURS = Resource("", "chat", "i1", "proxy")


def span(
    number: int,
    of: dict[str, Any] | None = None,
    *,
    ttft: float | None = None,
    e2e: float | None = None,
    failed: bool = False,
) -> Span:
    """A span with an id of its own."""
    known = {signals.LATENCY_TTFT: ttft, signals.LATENCY_E2E: e2e, signals.REQUEST_MODEL: "m"} | (of or {})
    made = messages.span({key: value for key, value in known.items() if value is not None})
    made.trace_id = number.to_bytes(16, "big")
    if failed:
        made.status.code = Status.STATUS_CODE_ERROR
    return made


def sealed(*spans: Span) -> list[bytes]:
    return [one.SerializeToString() for one in spans]


def test_the_worst_by_each_latency_and_what_failed_are_found() -> None:
    rnd = random.Random(7)
    spans = [span(n, ttft=rnd.random(), e2e=rnd.random() * 9, failed=n % 50 == 0) for n in range(1, 400)]
    found = list(worst(sealed(*spans), OURS))
    for signal in ("ttft", "e2e"):
        every = sorted((opened(one, OURS).latencies[signal] for one in sealed(*spans)), reverse=True)  # type: ignore[union-attr]
        mine = sorted((one.latencies[signal] for one in found), reverse=True)
        assert mine[:MAX_WORST] == every[:MAX_WORST]
    assert sum(one.has_failed for one in found) >= MAX_WORST
    assert len({one.trace_id for one in found}) == len(found) <= 3 * MAX_WORST


def test_a_request_says_who_when_and_how_long_and_no_more() -> None:
    told = {
        signals.CLASS: "batch",
        signals.OUTCOME: "ok",
        signals.INPUT_TOKENS: 12,
        signals.OUTPUT_TOKENS: 34,
        signals.REQUEST_ID: "secret-header-value",
    }
    (one,) = worst(sealed(span(0xABC, told, ttft=0.5)), OURS)
    assert one.trace_id == f"{0xABC:032x}"
    assert (one.model, one.class_, one.outcome, one.has_failed) == ("m", "batch", "ok", False)
    assert (one.end_ns, one.took_s, one.latencies) == (round((T0 + 1) * NS), 1.0, {"ttft": 0.5})
    assert (one.input_tokens, one.output_tokens) == (12, 34)
    assert "secret" not in repr(one)


def test_one_that_failed_without_a_token_ranks_by_how_long_it_took() -> None:
    (one,) = worst(sealed(span(1, failed=True)), OURS)
    assert one.ranks() == {FAILED: 1.0}


USELESS = {
    "no span": b"\xff\xff",
    "without a latency": span(1).SerializeToString(),
    "of a measuring load": span(1, {signals.CLASS: signals.SYNTHETIC_CLASS}, ttft=9.0).SerializeToString(),
    "without a trace": Span(start_time_unix_nano=1, end_time_unix_nano=2).SerializeToString(),
    "ends before it starts": messages.span({signals.LATENCY_TTFT: 1.0}, start_s=T0, end_s=T0 - 1).SerializeToString(),
    "a latency that is none": span(1, ttft=-1.0).SerializeToString(),
    "a latency that is text": span(1, {signals.LATENCY_TTFT: "nan"}).SerializeToString(),
    "cut behind the key": signals.LATENCY_TTFT.encode() + b"\x12\x09\x21\x00",
}


@pytest.mark.parametrize("case", USELESS)
def test_what_is_no_request_of_a_user_is_not_kept(case: str) -> None:
    assert opened(USELESS[case], OURS) is None
    assert list(worst([USELESS[case]], OURS)) == []


@pytest.mark.parametrize("resource", [messages.SIDECAR, messages.FOREIGN], ids=["a sidecar", "a foreign tracer"])
def test_spans_of_a_sidecar_and_of_others_are_looked_at_alike(resource: dict[str, str]) -> None:
    body = messages.traces(span(1, ttft=0.5), resource=resource).SerializeToString()
    (one,) = decode_traces(body, json=False).worst
    assert (one.latencies, one.resource.service) == ({"ttft": 0.5}, resource[signals.SERVICE_NAME])


@pytest.mark.parametrize("count", [1, 3, 40, 400])
def test_of_many_foreign_spans_the_worst_are_found_too(count: int) -> None:
    rnd = random.Random(count)
    spans = [span(n, {signals.OUTPUT_TOKENS: rnd.randrange(300)}, ttft=rnd.random()) for n in range(1, count + 1)]
    found = decode_traces(messages.traces(*spans).SerializeToString(), json=False).worst
    every = sorted((opened(one, OURS).latencies["ttft"] for one in sealed(*spans)), reverse=True)  # type: ignore[union-attr]
    assert sorted((one.latencies["ttft"] for one in found), reverse=True)[:MAX_WORST] == every[:MAX_WORST]
    assert len({one.trace_id for one in found}) == len(found)


def test_a_foreign_span_that_is_shorter_than_ten_of_its_hour_is_passed_over() -> None:
    def told(*ttft_s: float, service: str = "passed-over", at_s: float = T0 + 1) -> list[float]:
        spans = [span(number, ttft=value) for number, value in enumerate(ttft_s, 1)]
        for one in spans:
            one.end_time_unix_nano = round(at_s * NS)
        body = messages.traces(*spans, resource={signals.SERVICE_NAME: service}).SerializeToString()
        return sorted(one.latencies["ttft"] for one in decode_traces(body, json=False).worst)

    for number in range(4):
        assert told(*(number + part / 10 for part in range(8))) == [number + 0.5, number + 0.6, number + 0.7]
    assert told(0.1, 0.2, 0.3, 0.4, 3.65) == [3.65]
    for _ in range(10):
        told(5.0, service="resent")  # a sender that is not answered sends the same again
    assert told(4.9, service="resent") == [4.9]
    assert told(0.1, 0.2, 0.3, 0.4, 0.5, service="another") == [0.3, 0.4, 0.5]
    assert told(0.1, 0.2, 0.3, 0.4, 0.5, at_s=T0 + 7201) == [0.3, 0.4, 0.5]
