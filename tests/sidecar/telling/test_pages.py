import asyncio
from dataclasses import replace

from prometheus_client.openmetrics import parser as openmetrics

from sidecar.counting.histogram import EdgeBuckets
from sidecar.engine.engine_latencies import EngineLatencies
from sidecar.gpus.gpu import GpuPoller
from sidecar.otlp_settings import read
from sidecar.polling.poller import Poller
from sidecar.telling import pages
from sidecar.telling.admin import Answer, Later
from sidecar.telling.emit import Emitter
from sidecar.transport.upstream import Target
from slo.objective import Spec
from slo.signals import E2E, OUTCOME, REQUEST_MODEL, REQUESTS, TPOT, TTFT
from tests.sidecar.rig import Rig, chat, completion, on_a_loop, proxied, raw, spec

JUDGED = spec("{name: first, signal: ttft, percentile: 95, threshold: 20s}")


def sources(rig: Rig, judged: Spec | None = JUDGED) -> pages.Sources:
    return pages.Sources(
        service="chat",
        environment="prod",
        eye=rig.eye,
        poller=Poller(Target("http", "127.0.0.1", 1), rig.eye),
        emitter=Emitter(read({}), resource=b"", version="1"),
        spec=lambda: judged,
        reload_ok=lambda: True,
    )


def text(of: pages.Sources) -> str:
    later = pages.pages(of)[b"/metrics"]()
    assert isinstance(later, Later)
    return later.make().body.decode()


@on_a_loop
async def test_the_page_shows_all_there_is() -> None:
    async with proxied(raw(completion("a", "b")), objectives=JUDGED) as rig:
        await rig.ask(chat())
        all_pages = pages.pages(sources(rig))
        assert all_pages[b"/healthz"]() == Answer(200, b"ok\n")
        later = all_pages[b"/metrics"]()
        assert isinstance(later, Later)
        rig.tally.add(REQUESTS, ((REQUEST_MODEL, "later"), (OUTCOME, "ok")))
        answer = await asyncio.to_thread(later.make)
        shown = answer.body.decode()
        assert "later" not in shown  # what it shows is what was, whoever writes it when
        assert answer.content_type.startswith("text/plain; version=0.0.4")
        for family in (
            "gen_ai_server_time_to_first_token_seconds",
            "gen_ai_server_time_per_output_token_seconds",
            "gen_ai_server_request_duration_seconds",
            "firsttoken_slo_events_total",
            "firsttoken_requests_total",
            "firsttoken_requests_in_flight",
            "firsttoken_tokens_total",
            "firsttoken_config_last_reload_successful",
            "firsttoken_spec_info",
        ):
            assert f"# TYPE {family} " in shown, family
        assert f'hash="{JUDGED.hash}"' in shown
        assert "firsttoken_gpu_collector_up" not in shown
        assert "spec_info" not in text(sources(rig, None))


@on_a_loop
async def test_the_page_can_be_had_in_openmetrics_which_points_at_the_requests() -> None:
    async with proxied(raw(completion("a", "b")), objectives=JUDGED, traced=True) as rig:
        await rig.ask(chat())
        later = pages.pages(sources(rig))[b"/metrics"]()
        assert isinstance(later, Later)
        assert later.openmetrics is not None
        answer = later.openmetrics()
        assert answer.content_type == "application/openmetrics-text; version=1.0.0; charset=utf-8"
        read = openmetrics.text_string_to_metric_families(answer.body.decode())  # type: ignore[no-untyped-call]
        pointing = {
            (family.name, sample.exemplar.labels["trace_id"])
            for family in read
            for sample in family.samples
            if sample.exemplar is not None
        }
        trace_id = rig.ended[0].context.trace_id.hex()
        assert pointing == {(metric.prometheus, trace_id) for metric in (TTFT, TPOT, E2E)}
        assert b"trace_id" not in later.make().body


@on_a_loop
async def test_what_the_engine_says_stands_beside_what_we_saw() -> None:
    async with proxied(raw(completion("a", "b")), objectives=JUDGED) as rig:
        await rig.ask(chat())
        told = EngineLatencies()
        told.add(TTFT, ((REQUEST_MODEL, "m"),), EdgeBuckets((0.5,), (2, 1), 3.0))
        shown = text(replace(sources(rig), engine=told))
        labels = 'environment="prod",model_name="m",service_name="chat",source='
        assert f'{TTFT.prometheus}_count{{{labels}"engine"}} 3.0' in shown
        assert f'{TTFT.prometheus}_count{{{labels}""}} 1.0' in shown


@on_a_loop
async def test_where_no_gpu_is_read_the_page_says_so() -> None:
    async with proxied(raw(completion("a"))) as rig:
        poller = GpuPoller(rig.tally, on_loop=lambda *_: None)
        shown = text(replace(sources(rig), gpu=poller))
        assert 'firsttoken_gpu_collector_up{environment="prod",model_name="",service_name="chat"} 0.0' in shown
        assert "hw_gpu" not in shown


@on_a_loop
async def test_it_is_ready_at_once_unless_somebody_knows_better() -> None:
    async with proxied(raw(b"")) as rig:
        assert pages.pages(sources(rig))[b"/readyz"]() == Answer(200, b"ready\n")
        waiting = replace(sources(rig), ready=lambda: Answer(503, b"not yet\n"))
        assert pages.pages(waiting)[b"/readyz"]() == Answer(503, b"not yet\n")
