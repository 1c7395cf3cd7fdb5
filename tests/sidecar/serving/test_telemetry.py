"""One process's telemetry without a shell: what it sends, when, and as whom."""

import asyncio
import logging
import time
from dataclasses import replace

import pytest

from sidecar.configuration.plan import Plan
from sidecar.engine.engines import ENGINES
from sidecar.engine.metrics_text import Page
from sidecar.engine.scrape import ServerSample
from sidecar.guarding.queue_guard import SHEDDING, QueueGuard
from sidecar.judging.eye import Eye
from sidecar.otlp_settings import read
from sidecar.polling.poller import Poller
from sidecar.serving.telemetry import Telemetry, emitter_of, eye_of, of_requests
from sidecar.transport.upstream import Target
from slo.objective import Spec
from slo.signals import E2E, HEARTBEAT, LATENCY_BUCKETS_S, TTFT
from tests.sidecar.hosting import on_asyncio
from tests.sidecar.receiver import receiving
from tests.sidecar.rig import spec, until

JUDGED = spec("{name: first, signal: ttft, percentile: 95, threshold: 123ms, match: {model: m}}")


def telemetry(url: str | None = None, *, judged: Spec | None = JUDGED, scrape: bool = False) -> Telemetry[Eye]:
    environ = {"OTEL_METRIC_EXPORT_INTERVAL": "50", "OTEL_BSP_SCHEDULE_DELAY": "50"}
    plan = Plan(
        "chat", "1.2", "middleware", read(environ, endpoint=url), spec=judged, models=scrape, scrape=scrape, gpu=False
    )
    return of_requests(
        plan,
        asyncio.get_running_loop(),
        lambda eye, on_page: Poller(Target("http", "127.0.0.1", 1), eye, on_page=on_page),
    )


@on_asyncio
async def test_how_many_chores_there_are() -> None:
    for made, expected in ((telemetry(), 1), (telemetry(scrape=True), 3), (telemetry("http://127.0.0.1:1"), 3)):
        chores = list(made.chores())
        assert len(chores) == expected
        for chore in chores:
            chore.close()


@on_asyncio
async def test_it_beats_and_sends_each_interval_and_once_more_at_the_end() -> None:
    with receiving() as receiver:
        made = telemetry(receiver.url)
        made.emitter.start()
        running = [asyncio.ensure_future(chore) for chore in made.chores()]
        await until(lambda: made.tally.total(HEARTBEAT, ()) >= 2)
        await until(lambda: len(receiver.accepted) >= 3)
        for chore in running:
            chore.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        made.tally.record(TTFT, (("gen_ai.request.model", "m"),), 0.1)
        await asyncio.get_running_loop().run_in_executor(None, made.close, 5.0)
        beats = [m.sum.data_points[0] for m in receiver.metrics() if m.name == HEARTBEAT.name]
        assert sum(point.as_int for point in beats) == made.tally.total(HEARTBEAT, ())
        starts, ends = [p.start_time_unix_nano for p in beats], [p.time_unix_nano for p in beats]
        assert starts[1:] == ends[:-1]
        (ttft,) = [m for m in receiver.metrics() if m.name == TTFT.name]
        assert [point.count for point in ttft.exponential_histogram.data_points] == [1]
        resource = receiver.resource()
        assert (resource["service.name"], resource["firsttoken.source"]) == ("chat", "middleware")
        assert resource["service.version"] == "1.2"


@on_asyncio
async def test_a_threshold_is_an_edge_of_the_page() -> None:
    for judged, edges in ((JUDGED, {*LATENCY_BUCKETS_S, 0.123}), (None, set(LATENCY_BUCKETS_S))):
        made = telemetry(judged=judged)
        made.eye.introduce(["m"])
        shown = {metric: classic for metric, _, classic in made.tally.classics()}
        assert {edge for edge, _ in shown[TTFT].cumulative()} - {float("inf")} == edges
        assert {edge for edge, _ in shown[E2E].cumulative()} - {float("inf")} == set(LATENCY_BUCKETS_S)


@on_asyncio
async def test_what_a_shell_has_put_aside_is_looked_at_before_anything_is_told() -> None:
    made, asked = telemetry("http://127.0.0.1:1"), list[str]()

    class Aside:
        armed_ns, label = time.monotonic_ns(), "m"

        def catch_up(self) -> None:
            asked.append("x")

        def columns(self, _: int) -> tuple[str, ...]:
            return ()

        def unanswered_s(self, _: int) -> None:
            return None

    made.eye._in_flight.add(Aside())  # type: ignore[arg-type]
    made._export()
    assert asked == ["x"]
    made.sources().eye.catch_up()
    assert asked == ["x", "x"]
    made.emitter.start()
    await asyncio.get_running_loop().run_in_executor(None, made.emitter.close, 0.1)


@on_asyncio
async def test_that_nothing_is_judged_is_said_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        made = telemetry(judged=None)
        made.begin()
        await made.end()
    assert "has no objectives: nothing is judged" in caplog.text


@on_asyncio
async def test_what_was_noted_of_requests_is_sent_at_the_end() -> None:
    for close in (True, False):
        made, seen = telemetry(), list[str]()
        made.eye.backlog.note(seen.append, "x")
        if close:
            made.close(0.1)
        else:
            await made.end()
        assert seen == ["x"]


@on_asyncio
async def test_a_state_that_the_engine_does_not_tell_is_said(caplog: pytest.LogCaptureFixture) -> None:
    kv = spec("{name: kv, signal: kv_occupancy, threshold: 90%, target: 99%}")
    made = telemetry(judged=kv)
    made._page(Page({}, 0), ENGINES["vllm"], ServerSample("vllm"))
    assert caplog.messages == ["objective kv cannot be backed: vllm's page does not tell its KV-cache occupancy"]


@on_asyncio
async def test_the_queue_is_guarded_as_the_plan_says() -> None:
    plan = Plan("chat", "1.2", "proxy", read({}, endpoint=None), spec=JUDGED, gpu=False)
    loop = asyncio.get_running_loop()
    guards = [eye_of(replace(plan, shed=shed), loop, emitter_of(plan)).guard for shed in SHEDDING]
    assert [None if guard is None else guard.verdicts for guard in guards] == [
        QueueGuard("shadow").verdicts,
        QueueGuard("on").verdicts,
        None,
    ]
