"""A real vLLM with the middleware in it, a sidecar before it and another that only reads its page: one set of requests,
seen four ways.

On demand, `make test-engines PYTEST_ARGS="-m vllm -rP"`: brings vLLM where it is not, and prints what was measured.
"""

import json
import statistics
import subprocess
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from slo import signals
from tests.engines import vllm_server
from tests.engines.agreement import ENOUGH, Seen, assert_tpot_agrees, assert_ttft_agrees, median_gap, post
from tests.engines.vllm_rig import COMPLETION_TOKENS, PROMPT_TOKENS, SCRAPE_S, Heard, Rig, Span, spans_of, watched
from tests.engines.vllm_server import PATHS, Engine, asking
from tests.sidecar.process import Process
from tests.sidecar.receiver import eventually

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with watched(tmp_path_factory.mktemp("vllm")) as rig:
        yield rig


# The same requests, seen four ways.


@dataclass(frozen=True)
class Traffic:
    """What a client heard of its requests, each one's spans of them, and what came to the counters of each page.
    `judged`: those by which times are compared, alone and least kept waiting for a core."""

    heard: list[Heard]
    judged: list[int]
    spans: dict[str, list[Span]]
    grown: dict[str, dict[str, float]]
    log: list[str]


ALONE, CROWD, TOKENS = 80, 16, 48


@pytest.fixture(scope="module")
def traffic(rig: Rig) -> Traffic:
    """Requests one by one, then four at a time; half of them chat; every third client asks for its token count."""
    rig.settle()
    before = {name: one.metrics() for name, one in rig.watching.items()}

    def one(number: int) -> Heard:
        usage: dict[str, Any] = {"stream_options": {"include_usage": True}} if number % 3 == 0 else {}
        kind = ("chat", "completions")[number % 2]
        return rig.ask(kind, f"{number}: {'what is said ' * (number % 12)}", TOKENS, stream=True, **usage)

    heard: list[Heard] = []
    waited_s: list[float] = []
    for number in range(ALONE):
        before_s = rig.waited_s()
        heard.append(one(number))
        waited_s.append(rig.waited_s() - before_s)
    # On a busy machine the scheduler decides when a token is seen, at times a tenth of a second late.
    judged = sorted(range(ALONE), key=lambda number: waited_s[number])[:ENOUGH]
    print(f"each request judged waited up to {waited_s[judged[-1]] * 1e3:.1f} ms for a core")
    with ThreadPoolExecutor(4) as clients:
        heard += clients.map(one, range(ALONE, ALONE + CROWD))
    spans = rig.spans(*heard)
    rig.settle()
    after = {name: one.metrics() for name, one in rig.watching.items()}
    grown = {
        name: {key: value - before[name].get(key, 0) for key, value in metrics.items()}
        for name, metrics in after.items()
    }
    return Traffic(heard, judged, spans, grown, list(rig.onlooker.errors))


def pairs_of(traffic: Traffic, ours: "Times", theirs: "Times") -> list[tuple[float, float]]:
    pairs = list(zip(ours(traffic), theirs(traffic), strict=True))
    return [pairs[number] for number in traffic.judged]


Times = Callable[[Traffic], list[float]]


def of_spans(name: str, key: str) -> Times:
    return lambda traffic: [span.number(key) for span in traffic.spans[name]]


def engines_pace(traffic: Traffic) -> list[float]:
    return [
        (span.number(signals.LATENCY_E2E) - span.number(signals.LATENCY_TTFT)) / (span.number(COMPLETION_TOKENS) - 1)
        for span in traffic.spans["engine"]
    ]


FIRST_TOKEN: dict[str, Times] = {
    "client": lambda traffic: [heard.seen.ttft_s for heard in traffic.heard],
    "proxy": of_spans("proxy", signals.LATENCY_TTFT),
    "middleware": of_spans("middleware", signals.LATENCY_TTFT),
    "engine": of_spans("engine", signals.LATENCY_TTFT),
}
PER_TOKEN: dict[str, Times] = {
    "client": lambda traffic: [heard.seen.tpot_s(TOKENS) for heard in traffic.heard],
    "proxy": of_spans("proxy", signals.LATENCY_TPOT),
    "middleware": of_spans("middleware", signals.LATENCY_TPOT),
    "engine": engines_pace,
}
NEIGHBOURS = [("proxy", "client"), ("middleware", "engine"), ("proxy", "middleware")]


@pytest.mark.parametrize(("ours", "theirs"), NEIGHBOURS)
def test_the_first_token_comes_at_the_same_time_on_both_sides(traffic: Traffic, ours: str, theirs: str) -> None:
    pairs = pairs_of(traffic, FIRST_TOKEN[ours], FIRST_TOKEN[theirs])
    typical_s = statistics.median(value for _, value in pairs)
    print(f"TTFT {ours} to {theirs}: {median_gap(pairs) * 1e3:.2f} ms apart, of {typical_s * 1e3:.2f} ms")
    assert_ttft_agrees(pairs)


@pytest.mark.parametrize(("ours", "theirs"), NEIGHBOURS)
def test_tokens_have_the_same_pace(traffic: Traffic, ours: str, theirs: str) -> None:
    pairs = pairs_of(traffic, PER_TOKEN[ours], PER_TOKEN[theirs])
    typical_s = statistics.median(value for _, value in pairs)
    print(f"TPOT {ours} to {theirs}: {100 * median_gap(pairs) / typical_s:.2f} % apart, of {typical_s * 1e3:.3f} ms")
    assert_tpot_agrees(pairs)


def test_tokens_are_counted_alike_to_the_last_one(traffic: Traffic) -> None:
    theirs = [(span.about[PROMPT_TOKENS], span.about[COMPLETION_TOKENS]) for span in traffic.spans["engine"]]
    assert {completion for _, completion in theirs} == {TOKENS}
    ours = {
        name: [(span.about[signals.INPUT_TOKENS], span.about[signals.OUTPUT_TOKENS]) for span in traffic.spans[name]]
        for name in ("proxy", "middleware")
    }
    assert ours["proxy"] == theirs
    assert ours["middleware"] == theirs
    assert {heard.usage for heard in traffic.heard} == {TOKENS, None}
    sources = {span.about[signals.TOKEN_COUNT_SOURCE] for name in ours for span in traffic.spans[name]}
    assert sources == {"usage"}


def test_requests_and_events_are_counted_alike(traffic: Traffic) -> None:
    def grown(name: str, metric: signals.Metric, *labels: str) -> float:
        values = [
            v for k, v in traffic.grown[name].items() if k.split()[0] == metric.prometheus and {*labels} <= {*k.split()}
        ]
        return sum(values)

    requests = ALONE + CROWD
    for name in ("proxy", "middleware", "onlooker"):
        assert grown(name, signals.REQUESTS, "outcome=ok") == requests
        assert grown(name, signals.REQUESTS) == requests
        assert grown(name, signals.TOKENS, "type=output") == requests * TOKENS
    for objective in ("ttft", "tpot"):
        counted = {
            name: grown(name, signals.SLO_EVENTS, f"objective={objective}", "result=good") for name in traffic.grown
        }
        print(f"good events of {objective}: {counted}")
        for name in traffic.grown:
            assert grown(name, signals.SLO_EVENTS, f"objective={objective}") == requests
    assert not [line for line in traffic.grown["onlooker"] if "objective=answered" in line]
    assert any("objective answered cannot be backed" in line for line in traffic.log)


def test_the_onlookers_latencies_are_the_engines_own_to_the_request(traffic: Traffic) -> None:
    """Its histogram has the engine's edges: within them nothing is known, at them everything is."""
    values = sorted(FIRST_TOKEN["engine"](traffic))
    name, source = signals.TTFT.prometheus, "source=engine"
    grown = traffic.grown["onlooker"]
    buckets = {key: count for key, count in grown.items() if key.startswith(f"{name}_bucket") and source in key}
    for key, count in buckets.items():
        edge = float(next(part for part in key.split() if part.startswith("le=")).removeprefix("le="))
        assert count == bisect_right(values, edge), key
    assert len(buckets) > 10
    total = sum(value for key, value in grown.items() if key.startswith(f"{name}_sum"))
    assert total == pytest.approx(sum(values), rel=1e-6)
    name = signals.TPOT.prometheus
    total = sum(value for key, value in grown.items() if key.startswith(f"{name}_sum"))
    assert total == pytest.approx(sum(PER_TOKEN["middleware"](traffic)), rel=0.03)
    print(f"TPOT mean: onlooker {total / len(values) * 1e3:.3f} ms")


def test_spans_join_into_one_trace(traffic: Traffic) -> None:
    of_all = (traffic.spans[name] for name in ("proxy", "middleware", "engine"))
    for heard, proxy, middleware, engine in zip(traffic.heard, *of_all, strict=True):
        assert proxy.parent_id == heard.trace.span_id
        assert middleware.parent_id == proxy.span_id
        assert engine.parent_id == middleware.span_id
        assert engine.name == "llm_request"


# Token counts that nobody asked for.


def test_a_client_that_did_not_ask_sees_what_it_would_see_without_us(rig: Rig, traffic: Traffic) -> None:
    for heard in traffic.heard:
        assert len([event for _, event in heard.seen.events if not event["choices"]]) == (heard.usage is not None)
    always_b = {"logit_bias": {"4": 100}}
    for kind in ("chat", "completions"):
        body = asking(kind, "the same again", 24, model=rig.engine.model, stream=True, **always_b)
        direct, through = (post(port, PATHS[kind], body) for port in (rig.engine.port, rig.proxy.proxy))
        assert _shape(through) == _shape(direct)
        assert through.text == direct.text
        assert len(through.text) == 24


def _shape(seen: Seen) -> list[str]:
    """Its lines without what differs from one request to the next; vLLM may put several tokens into one chunk."""
    shapes: list[str] = []
    for raw_line in seen.body.decode().splitlines():
        line = raw_line
        if line.startswith("data: {"):
            event = json.loads(line.removeprefix("data: ")) | {"id": "", "created": 0}
            for choice in event["choices"]:
                if choice.get("text"):
                    choice["text"] = "text"
                if choice.get("delta", {}).get("content"):
                    choice["delta"]["content"] = "text"
            line = f"data: {json.dumps(event)}"
        if line and line not in shapes[-1:]:
            shapes.append(line)
    return shapes


# What vLLM answers in.


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("kind", PATHS)
def test_every_dialect_of_vllm_is_read(rig: Rig, kind: str, stream: bool) -> None:
    heard = rig.ask(kind, f"in the words of {kind}", 12, stream=stream)
    assert heard.seen.status == 200
    spans = {name: found[0] for name, found in rig.spans(heard).items()}
    theirs = spans["engine"].about[PROMPT_TOKENS], spans["engine"].about[COMPLETION_TOKENS]
    for name in ("proxy", "middleware"):
        about = spans[name].about
        assert about[signals.OUTCOME] == "ok"
        assert about[signals.STREAM] is stream
        assert (about[signals.INPUT_TOKENS], about[signals.OUTPUT_TOKENS]) == theirs
        assert about[signals.TOKEN_COUNT_SOURCE] == "usage"
        assert about[signals.REQUEST_MODEL] == about[signals.RESPONSE_MODEL] == rig.engine.model
        assert about[signals.FINISH_REASONS]
        assert (signals.LATENCY_TTFT in about) is stream
    assert spans["proxy"].about[signals.DIALECT] == spans["middleware"].about[signals.DIALECT]


def test_what_vllm_refuses_is_its_clients_error(rig: Rig) -> None:
    too_long = rig.ask("chat", "x" * 2 * vllm_server.MAX_TOKENS, 8, stream=True)
    unknown = rig.ask("chat", "hello", 8, stream=True, model="no-such-model")
    assert (too_long.seen.status, unknown.seen.status) == (400, 404)
    spans = rig.spans(too_long, unknown, by=("proxy", "middleware"))
    assert {span.about[signals.OUTCOME] for both in spans.values() for span in both} == {"client_error"}


# The engine's state.


def _state(one: Process) -> dict[str, float]:
    """What a page of ours says of the engine, by the metric's name there."""
    wanted = (signals.KV_OCCUPANCY, signals.ENGINE_RUNNING, signals.ENGINE_WAITING, signals.ENGINE_PREEMPTIONS)
    metrics = one.metrics()
    return {
        metric.name: value
        for metric in wanted
        for key, value in metrics.items()
        if key.split()[0] == metric.prometheus and "rank=" not in key
    }


def _own_state(engine: Engine) -> dict[str, float]:
    metrics = engine.metrics()
    return {
        signals.KV_OCCUPANCY.name: metrics["vllm:kv_cache_usage_perc"],
        signals.ENGINE_RUNNING.name: metrics["vllm:num_requests_running"],
        signals.ENGINE_WAITING.name: metrics["vllm:num_requests_waiting"],
        signals.ENGINE_PREEMPTIONS.name: metrics["vllm:num_preemptions_total"],
    }


def test_the_state_of_the_engine_is_its_own_at_the_same_moment(rig: Rig) -> None:
    """Frozen at three moments of a load that overflows its KV cache: whoever reads it then, reads the same."""
    rig.settle()
    moments: list[dict[str, float]] = []
    with ThreadPoolExecutor(12) as clients:
        answers = [
            clients.submit(rig.ask, "completions", f"{number} of a crowd", 400, stream=True) for number in range(12)
        ]
        eventually(lambda: rig.engine.metrics()["vllm:kv_cache_usage_perc"] > 0.3)
        for _ in range(3):
            time.sleep(0.5)
            with rig.engine.frozen():
                moments.append(_own_state(rig.engine))
                time.sleep(3 * SCRAPE_S)
                assert _own_state(rig.engine) == moments[-1]
                for name, one in rig.watching.items():
                    assert _state(one) == moments[-1], name
        heard = [answer.result() for answer in answers]
    print("engine at three moments:", *moments, sep="\n  ")
    assert max(moment[signals.KV_OCCUPANCY.name] for moment in moments) > 0.5
    rig.settle()
    assert _own_state(rig.engine)[signals.ENGINE_PREEMPTIONS.name] > 0  # told with a request's next token, so late
    for name, one in rig.watching.items():
        assert _state(one) == _own_state(rig.engine), name
    spans = rig.spans(*heard)
    most = max(span.number(signals.KV_MAX) for span in spans["proxy"])
    assert 0.5 < most <= 1
    assert [span.about[signals.OUTPUT_TOKENS] for span in spans["proxy"]] == [400] * 12


def test_a_client_that_leaves_frees_the_server(rig: Rig) -> None:
    rig.settle()
    before = {name: _cancelled(one) for name, one in rig.watching.items()}
    generated = rig.engine.metrics()["vllm:generation_tokens_total"]
    heard = rig.ask("chat", "say it all", 900, stream=True, leave_after=4)
    left_s = time.monotonic()
    eventually(lambda: rig.engine.metrics()["vllm:num_requests_running"] == 0)
    print(f"free {time.monotonic() - left_s:.3f} s after its client left")
    assert rig.engine.metrics()["vllm:generation_tokens_total"] - generated < 450
    for name, spans in rig.spans(heard, by=("proxy", "middleware")).items():
        one = rig.watching[name]
        assert spans[0].about[signals.OUTCOME] == "cancelled"
        assert _cancelled(one) == before[name] + 1
        assert all(v == 0 for k, v in one.metrics().items() if k.split()[0] == signals.IN_FLIGHT.prometheus)


def _cancelled(one: Process) -> float:
    return sum(v for k, v in one.metrics().items() if k.split()[0] == signals.REQUESTS.prometheus and "cancelled" in k)


# An outside client.


@dataclass(frozen=True)
class Outside:
    """What `vllm bench serve` measured of its requests, and the proxy's spans of the same ones in the same order."""

    ttft_s: list[float]
    gaps_s: list[list[float]]
    tokens: list[int]
    summary: dict[str, float]
    spans: list[Span]


@pytest.fixture(scope="module")
def outside(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Outside:
    folder = tmp_path_factory.mktemp("bench")
    command: list[str | Path] = [
        vllm_server.VLLM,
        "bench",
        "serve",
        "--backend",
        "openai",
        "--base-url",
        _url(rig),
        "--save-result",
    ]
    command += ["--model", rig.engine.model, "--tokenizer", str(rig.engine.tokenizer), "--dataset-name", "random"]
    command += ["--random-input-len", "100", "--random-output-len", "48", "--ignore-eos", "--num-prompts", "60"]
    command += ["--request-rate", "2", "--save-detailed", "--result-dir", str(folder), "--result-filename", "it.json"]
    command += ["--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "50,99", "--disable-tqdm"]
    command += ["--request-id-prefix", "outside-"]
    ran = subprocess.run(command, cwd=folder, env=vllm_server.offline(), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-3000:]
    print(ran.stdout[ran.stdout.find("=====") :])
    found = json.loads((folder / "it.json").read_text())
    eventually(lambda: len(_outside_spans(rig)) >= 60)
    named = _outside_spans(rig)
    spans = [named[f"outside-{number}"] for number in range(60)]
    summary = {key: value for key, value in found.items() if isinstance(value, int | float)}
    return Outside(found["ttfts"], found["itls"], found["output_lens"], summary, spans)


QUANTILES: dict[str, Callable[[list[float]], float]] = {
    "mean": statistics.mean,
    "p50": statistics.median,
    "p99": lambda values: sorted(values)[round(0.99 * (len(values) - 1))],
}


def _url(rig: Rig) -> str:
    return f"http://127.0.0.1:{rig.proxy.proxy}"


def _outside_spans(rig: Rig) -> dict[str, Span]:
    spans = spans_of(rig.seen_by["proxy"]).values()
    return {name: span for span in spans if (name := str(span.about.get(signals.REQUEST_ID))).startswith("outside-")}


def test_an_outside_client_measures_the_same_pace(outside: Outside) -> None:
    """Its TPOT is by tokens as ours is; its ITL is by chunks, of which one may hold several tokens."""
    assert [span.about[signals.OUTPUT_TOKENS] for span in outside.spans] == outside.tokens
    ours = [span.number(signals.LATENCY_TPOT) for span in outside.spans]
    gaps = [sum(gaps) for gaps in outside.gaps_s]
    theirs = [whole / (tokens - 1) for whole, tokens in zip(gaps, outside.tokens, strict=True)]
    for name, of in QUANTILES.items():
        print(f"TPOT {name}: {of(ours) * 1e3:.3f} ms, outside {of(theirs) * 1e3:.3f}")
        assert of(ours) == pytest.approx(of(theirs), rel=0.05)
    assert outside.summary["mean_tpot_ms"] == pytest.approx(statistics.mean(theirs) * 1e3, rel=0.001)


def test_an_outside_client_measures_the_same_first_token_and_longest_gap(outside: Outside) -> None:
    ours = [span.number(signals.LATENCY_TTFT) for span in outside.spans]
    for name, of in QUANTILES.items():
        print(f"TTFT {name}: {of(ours) * 1e3:.2f} ms, outside {of(outside.ttft_s) * 1e3:.2f}")
    # It begins before it has a connection, and its own event loop is in the way: it may see more, never less.
    assert statistics.median(theirs - ours_s for ours_s, theirs in zip(ours, outside.ttft_s, strict=True)) > 0
    gaps = [
        (span.number(signals.LONGEST_GAP), max(gaps)) for span, gaps in zip(outside.spans, outside.gaps_s, strict=True)
    ]
    typical_s = statistics.median(longest for _, longest in gaps)
    print(f"longest gap: {median_gap(gaps) * 1e3:.2f} ms apart, of {typical_s * 1e3:.2f} ms")
    assert_ttft_agrees(gaps)


def test_nothing_was_left_unread_or_undelivered(rig: Rig, traffic: Traffic) -> None:
    """After the others, of which none may have hidden a fault."""
    assert traffic.heard
    quiet = {metric.prometheus for metric in (signals.UNPARSED, signals.TELEMETRY_FAULTS, signals.EXPORT_DROPPED)}
    for one in rig.watching.values():
        assert {key: value for key, value in one.metrics().items() if key.split()[0] in quiet and value} == {}
