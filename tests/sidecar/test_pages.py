from sidecar import pages
from sidecar.emit import Emitter
from sidecar.otlp_settings import read
from sidecar.poller import Poller
from sidecar.upstream import Target
from slo.objective import Spec
from tests.sidecar.rig import Rig, chat, completion, on_a_loop, proxied, raw, spec

JUDGED = spec("{name: first, signal: ttft, percentile: 95, threshold: 20s}")


def sources(rig: Rig, judged: Spec | None = JUDGED) -> pages.Sources:
    return pages.Sources(
        service="chat",
        environment="prod",
        door=rig.door,
        eye=rig.eye,
        poller=Poller(Target("http", "127.0.0.1", 1), rig.eye),
        emitter=Emitter(read({}), resource=b"", version="1"),
        spec=lambda: judged,
        reload_ok=lambda: True,
    )


@on_a_loop
async def test_ready_means_reached_and_not_draining() -> None:
    async with proxied(raw(completion("a"))) as rig:
        ready = pages.pages(sources(rig))[b"/readyz"]
        assert ready().status == 503
        await rig.ask(chat())
        assert ready().status == 200
        await rig.door.drain(0)
        assert (ready().status, ready().body) == (503, b"draining\n")


@on_a_loop
async def test_the_page_shows_all_there_is() -> None:
    async with proxied(raw(completion("a", "b")), objectives=JUDGED) as rig:
        await rig.ask(chat())
        all_pages = pages.pages(sources(rig))
        assert all_pages[b"/healthz"]().body == b"ok\n"
        answer = all_pages[b"/metrics"]()
        text = answer.body.decode()
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
            assert f"# TYPE {family} " in text, family
        assert f'hash="{JUDGED.hash}"' in text
        assert "spec_info" not in pages.metrics(sources(rig, None)).body.decode()
