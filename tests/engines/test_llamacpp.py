"""The proxy before a real llama.cpp: what clients receive, and its numbers beside the server's and the client's own."""

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from slo.signals import (
    DIALECT,
    E2E,
    INPUT_TOKENS,
    LATENCY_E2E,
    LATENCY_TPOT,
    LATENCY_TTFT,
    OUTCOME,
    OUTPUT_TOKENS,
    REQUEST_ID,
    RESPONSE_MODEL,
    TOKEN_COUNT_SOURCE,
    TPOT,
    TTFT,
    USAGE_ASKED,
)
from tests.engines.agreement import (
    ENOUGH,
    Seen,
    Trace,
    assert_tpot_agrees,
    assert_ttft_agrees,
    post,
    spans_of,
)
from tests.engines.beside import Beside, beside
from tests.engines.llamacpp_server import KINDS, MODEL, Engine, Timings, ask
from tests.sidecar.receiver import Attribute, eventually

DIALECTS = {"chat": "openai.chat", "completions": "openai.completions", "native": "llamacpp"}
USAGE = {"stream_options": {"include_usage": True}}
REQUESTS_EACH = ENOUGH + 4


@pytest.fixture(scope="module")
def watched(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    with beside(engine, tmp_path_factory.mktemp("watched")) as beside_it:
        yield beside_it


# What differs from one answer to the next whoever asks: ids, dates, the slot, how long it took.
_VARIES = re.compile(rb'("(?:id|created|id_slot|\w+_(?:ms|per_second))":)("[^"]*"|[\d.e+-]+)')


def constant(answer: Seen) -> tuple[list[str], bytes]:
    """An answer without what differs, and without the fields that speak of one connection only."""
    head = [line for line in answer.head if not line.lower().startswith(("keep-alive:", "content-length:"))]
    return head, _VARIES.sub(rb"\1", answer.body)


FORMS: dict[str, dict[str, Any]] = {
    "streamed": {},
    "streamed, with the usage that the client asked for": USAGE,
    "whole": {"stream": False},
    "streamed, with timings in every event": {"timings_per_token": True},
    "streamed, with two choices": {"n": 2},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_clients_receive_what_they_would_without_a_proxy(kind: str, form: str, engine: Engine, watched: Beside) -> None:
    path, asked = ask(kind, tokens=12, **FORMS[form])
    direct = post(engine.port, path, asked)
    assert (direct.status, direct.whole) == (200, True)
    before = watched.outcomes()
    for _ in range(3):  # what `auto` learns of a server must not change what its clients get
        assert constant(post(watched.port, path, asked)) == constant(direct)
    eventually(lambda: watched.outcomes() - before == {"ok": 3})
    assert not any(watched.series(USAGE_ASKED).values())


def test_requests_in_quick_succession_all_come_through(watched: Beside) -> None:
    """llama.cpp closes its connection after each stream without having said so: the next request must not meet that."""
    before = watched.outcomes()
    answers = [post(watched.port, *ask(KINDS[number % 3], tokens=2, words=3)) for number in range(150)]
    assert [answer.body for answer in answers if answer.status != 200] == []
    eventually(lambda: watched.outcomes() - before == {"ok": 150})


def test_a_usage_chunk_that_carries_timings_is_shown_when_asked_for_at_any_cost(engine: Engine, tmp_path: Path) -> None:
    """llama.cpp moves `timings` into the usage chunk, so `--inject-usage on` cannot hide it without loss."""
    path, asked = ask("chat", tokens=12)
    with beside(engine, tmp_path, "--inject-usage", "on") as watched:
        shown = post(watched.port, path, asked)
        assert shown.events[-1][1]["usage"]["completion_tokens"] == 12
        assert constant(shown) == constant(post(engine.port, path, asked | USAGE))
        eventually(lambda: watched.value(USAGE_ASKED, reason="shown") == 1)


def spans(watched: Beside, traces: Iterable[Trace]) -> list[tuple[Span, dict[str, Attribute]]]:
    """The sidecar's spans of these traces, in their order, once all have come."""
    wanted = [trace.id for trace in traces]
    eventually(lambda: set(wanted) <= spans_of(watched.receiver).keys())
    found = spans_of(watched.receiver)
    return [found[each] for each in wanted]


def seconds(attributes: dict[str, Attribute], key: str) -> float:
    value = attributes[key]
    assert isinstance(value, float)
    return value


@pytest.mark.parametrize("kind", KINDS)
def test_streams_are_timed_as_the_server_and_a_client_time_them(kind: str, engine: Engine, watched: Beside) -> None:
    before = {metric: watched.value(metric, "_sum", model_name=MODEL) or 0.0 for metric in (TTFT, TPOT, E2E)}
    traces = [Trace() for _ in range(REQUESTS_EACH)]
    direct, answers = [], []
    for number, trace in enumerate(traces):  # in turn, so that what else the machine does befalls both alike
        path, asked = ask(kind, tokens=32 + number, words=20 + 5 * number)
        direct.append(post(engine.port, path, asked))
        answers.append(post(watched.port, path, asked, trace.header))
    timings = [Timings.of(answer.events[-1][1]) for answer in answers]
    attributes = [told for _, told in spans(watched, traces)]

    assert [each.output_tokens for each in timings] == [32 + number for number in range(REQUESTS_EACH)]
    assert [(told[INPUT_TOKENS], told[OUTPUT_TOKENS], told[TOKEN_COUNT_SOURCE]) for told in attributes] == [
        (each.input_tokens, each.output_tokens, "usage") for each in timings
    ]
    assert {(told[DIALECT], told[OUTCOME]) for told in attributes} == {(DIALECTS[kind], "ok")}

    ttft_s = [seconds(told, LATENCY_TTFT) for told in attributes]
    tpot_s = [seconds(told, LATENCY_TPOT) for told in attributes]
    assert_ttft_agrees(list(zip(ttft_s, [answer.ttft_s for answer in answers], strict=True)))
    assert_tpot_agrees(
        [
            (ours_s, answer.tpot_s(each.output_tokens))
            for ours_s, answer, each in zip(tpot_s, answers, timings, strict=True)
        ]
    )
    # The server's own time begins once a thread of it has taken the request up; a client that asks it directly tells
    # how much later that is.
    hop_s = median(answer.ttft_s - Timings.of(answer.events[-1][1]).prefill_s for answer in direct)
    assert_ttft_agrees([(ours_s, each.prefill_s + hop_s) for ours_s, each in zip(ttft_s, timings, strict=True)])
    assert_tpot_agrees([(ours_s, each.tpot_s) for ours_s, each in zip(tpot_s, timings, strict=True)])

    e2e_s = [seconds(told, LATENCY_E2E) for told in attributes]
    for metric, values_s in ((TTFT, ttft_s), (TPOT, tpot_s), (E2E, e2e_s)):
        after = watched.value(metric, "_sum", model_name=MODEL)
        assert after == pytest.approx(before[metric] + sum(values_s), rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_whole_answers_have_a_duration_and_exact_counts_and_no_first_token(kind: str, watched: Beside) -> None:
    before = watched.tokens()
    traces = [Trace() for _ in range(ENOUGH)]
    asks = [ask(kind, tokens=8 + number, stream=False) for number in range(ENOUGH)]
    answers = [post(watched.port, *each, trace.header) for each, trace in zip(asks, traces, strict=True)]
    timings = [Timings.of(answer.document) for answer in answers]
    attributes = [told for _, told in spans(watched, traces)]
    assert [(told[INPUT_TOKENS], told[OUTPUT_TOKENS]) for told in attributes] == [
        (each.input_tokens, each.output_tokens) for each in timings
    ]
    assert_ttft_agrees(
        [(seconds(told, LATENCY_E2E), answer.e2e_s) for told, answer in zip(attributes, answers, strict=True)]
    )
    assert not any(LATENCY_TTFT in told or LATENCY_TPOT in told for told in attributes)
    sent = (sum(each.input_tokens for each in timings), sum(each.output_tokens for each in timings))
    assert watched.tokens() == (before[0] + sent[0], before[1] + sent[1])


def test_waiting_in_the_servers_queue_is_part_of_the_time_to_first_token(watched: Beside) -> None:
    """Six at once before two slots: a client waits, and so does the proxy's clock; the server's own counts no queue."""
    traces = [Trace() for _ in range(6)]
    with ThreadPoolExecutor(len(traces)) as clients:
        answers = list(clients.map(lambda trace: post(watched.port, *ask("chat", tokens=200), trace.header), traces))
    told = [seconds(attributes, LATENCY_TTFT) for _, attributes in spans(watched, traces)]
    queued = [
        (ours_s, answer.ttft_s)
        for ours_s, answer in zip(told, answers, strict=True)
        if ours_s > 10 * Timings.of(answer.events[-1][1]).prefill_s
    ]
    assert len(queued) == 4
    for ours_s, theirs_s in queued:
        assert ours_s == pytest.approx(theirs_s, rel=0.1)


def test_spans_are_the_clients_children_and_keep_its_request_id(watched: Beside) -> None:
    trace = Trace()
    answer = post(watched.port, *ask("chat", tokens=4), trace.header, "X-Request-Id: order-66")
    [(span, attributes)] = spans(watched, [trace])
    assert span.parent_span_id == trace.span_id
    assert len(span.span_id) == 8
    assert span.span_id != trace.span_id
    assert attributes[REQUEST_ID] == "order-66"
    assert attributes[RESPONSE_MODEL] == MODEL
    assert span.name == f"chat {MODEL}"
    assert span.end_time_unix_nano - span.start_time_unix_nano == pytest.approx(answer.e2e_s * 1e9, rel=0.5)
