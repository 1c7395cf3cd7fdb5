"""What the environment decides for the middleware, and that a bad word never stops a server."""

import asyncio
import logging
import socket
import threading
import time
from pathlib import Path

import pytest

from sidecar.address import HostPort
from sidecar.within.attachment import Attachment, Setup, read
from slo.signals import ENGINE_RUNNING, GPU_POWER, KV_OCCUPANCY
from tests.sidecar.hosting import alone, on_asyncio, plain
from tests.sidecar.nvml import Driver, Gpu, installed
from tests.sidecar.rig import until

SPEC = "service: {}\nobjectives:\n  - {{name: a, signal: ttft, percentile: 95, threshold: 1s}}\n"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    alone(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_nothing_said() -> None:
    made = read({})
    assert (made.admin, made.admin_token) == (HostPort("127.0.0.1", 9464), None)
    assert (made.engine, made.scrape_interval_s) == ("auto", 1.0)
    plan = made.plan
    assert (plan.service, plan.spec, plan.source, plan.config_ok) == ("unknown_service", None, "middleware", True)
    assert (plan.scrape, plan.sample_ratio, plan.max_models, plan.class_header) == (True, 1, 100, "x-firsttoken-class")
    assert (plan.gpu, plan.visible_gpus) == (True, None)
    assert plan.export.traces is None
    assert plan.export.metrics is None


def test_everything_said(elsewhere: Path) -> None:
    (elsewhere / "a.yaml").write_text(SPEC.format("one"))
    (elsewhere / "b.yaml").write_text(SPEC.format("two"))
    (elsewhere / "token").write_text("s3cret")
    made = read(
        {
            "FIRSTTOKEN_SLO": "a.yaml:b.yaml",
            "FIRSTTOKEN_SERVICE": "two",
            "FIRSTTOKEN_ADMIN": "0.0.0.0:1",
            "FIRSTTOKEN_TOKEN_FILE": "token",
            "FIRSTTOKEN_SCRAPE": "off",
            "FIRSTTOKEN_GPU": "off",
            "CUDA_VISIBLE_DEVICES": "1,2",
            "FIRSTTOKEN_ENGINE": "vllm",
            "FIRSTTOKEN_SCRAPE_INTERVAL": "5",
            "FIRSTTOKEN_OTLP_ENDPOINT": "http://c:4318",
            "FIRSTTOKEN_SAMPLE": "0.5",
            "FIRSTTOKEN_MAX_MODELS": "3",
            "FIRSTTOKEN_CLASS_HEADER": "X-Class",
            "OTEL_SERVICE_NAME": "one",
            "OTEL_METRIC_EXPORT_INTERVAL": "2000",
        }
    )
    assert (made.admin, made.admin_token) == (HostPort("0.0.0.0", 1), "s3cret")
    assert (made.engine, made.scrape_interval_s) == ("vllm", 5)
    plan = made.plan
    assert plan.spec is not None
    assert (plan.service, plan.spec.service, plan.config_ok) == ("two", "two", True)
    assert (plan.scrape, plan.sample_ratio, plan.max_models, plan.class_header) == (False, 0.5, 3, "X-Class")
    assert (plan.models, plan.gpu, plan.visible_gpus) == (False, False, "1,2")
    assert plan.export.metrics is not None
    assert (plan.export.metrics.url, plan.export.metric_interval_s) == ("http://c:4318/v1/metrics", 2)


def test_the_service_may_be_opentelemetrys() -> None:
    assert read({"OTEL_SERVICE_NAME": "one"}).plan.service == "one"


def test_no_page() -> None:
    assert read({"FIRSTTOKEN_ADMIN": "off"}).admin is None


BAD = {
    "FIRSTTOKEN_SLO=nowhere.yaml": "nowhere.yaml:1:1: cannot be read",
    "FIRSTTOKEN_ADMIN=9464": "FIRSTTOKEN_ADMIN 9464: write HOST:PORT",
    "FIRSTTOKEN_ADMIN=0.0.0.0:1": "FIRSTTOKEN_TOKEN_FILE",
    "FIRSTTOKEN_TOKEN_FILE=nowhere": "nowhere cannot be read",
    "FIRSTTOKEN_SCRAPE=http://e:1": "FIRSTTOKEN_SCRAPE=http://e:1 is unknown: use auto, off",
    "FIRSTTOKEN_GPU=on": "FIRSTTOKEN_GPU=on is unknown: use auto, off",
    "FIRSTTOKEN_SHED=on": "FIRSTTOKEN_SHED=on is unknown: use shadow, off",
    "FIRSTTOKEN_ENGINE=gpt": "vllm",
    "FIRSTTOKEN_SCRAPE_INTERVAL=0": "FIRSTTOKEN_SCRAPE_INTERVAL 0: write a number of at least 0.1",
    "FIRSTTOKEN_SAMPLE=2": "FIRSTTOKEN_SAMPLE 2: write a number from 0 to 1",
    "FIRSTTOKEN_MAX_MODELS=many": "FIRSTTOKEN_MAX_MODELS many",
    "OTEL_EXPORTER_OTLP_ENDPOINT=collector": "write http://HOST:PORT",
}


@pytest.mark.parametrize("setting", BAD)
def test_a_bad_word_is_told_and_only_that_is_left_out(setting: str, caplog: pytest.LogCaptureFixture) -> None:
    name, _, value = setting.partition("=")
    made, without = read({name: value}), read({})
    (told,) = [record.message for record in caplog.records if record.levelno == logging.ERROR]
    assert told.startswith("firsttoken middleware: ")
    assert BAD[setting] in told
    assert told.endswith(": left out")
    assert not made.plan.config_ok
    if name in ("FIRSTTOKEN_ADMIN", "FIRSTTOKEN_TOKEN_FILE"):
        assert made.admin is None
    else:
        assert made.admin == without.admin
    assert made.plan.service == without.plan.service
    assert made.plan.sample_ratio == without.plan.sample_ratio


@on_asyncio
async def test_beginning_and_ending_again_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    attachment = Attachment(plain(nothing), {}, read({"FIRSTTOKEN_ADMIN": "127.0.0.1:0"}))
    await attachment.end()
    for _ in range(2):
        attachment.begin()
        await until(lambda: attachment.shown_at is not None)
        assert len(attachment.telemetry._chores) == 5
    for _ in range(2):
        await attachment.end()
        assert all(chore.done() for chore in attachment.telemetry._chores)
    attachment.begin()
    assert all(chore.done() for chore in attachment.telemetry._chores)


async def nothing(*_: object) -> None:
    raise AssertionError


VLLM = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
"""


@on_asyncio
async def test_the_apps_own_page_is_read_from_within() -> None:
    from fastapi import FastAPI
    from fastapi.responses import PlainTextResponse

    app, asked = FastAPI(), list[str]()

    @app.get("/metrics")
    async def metrics() -> PlainTextResponse:
        asked.append("/metrics")
        return PlainTextResponse(VLLM)

    @app.get("/v1/models")
    async def models() -> dict[str, object]:
        asked.append("/v1/models")
        return {"data": [{"id": "m"}]}

    def attached(**environ: str) -> Attachment:
        setup: Setup = read({"FIRSTTOKEN_ADMIN": "off", **environ})
        return Attachment(app, {"app": app}, setup)  # type: ignore[arg-type]

    off = attached(FIRSTTOKEN_SCRAPE="off")
    off.begin()
    on = attached()
    on.begin()
    await until(lambda: on.telemetry.eye.labels.sole == "m" and on.telemetry.poller.fresh(0) is not None)
    shown = {point.metric: point.value for point in on.telemetry.poller.gauges(0)}
    assert shown[ENGINE_RUNNING] == 3
    assert shown[KV_OCCUPANCY] == 0.25
    await until(lambda: on.telemetry.eye.kv_occupancy == 0.25)
    assert sorted(set(asked)) == ["/metrics", "/v1/models"]
    assert off.telemetry.poller.fresh(0) is None
    for one in (on, off):
        await one.end()


@on_asyncio
async def test_gpus_are_read_in_the_apps_process_too() -> None:
    driver = Driver(Gpu())
    with installed(driver):
        on = Attachment(plain(nothing), {}, read({"FIRSTTOKEN_ADMIN": "off", "FIRSTTOKEN_SCRAPE": "off"}))
        off = Attachment(
            plain(nothing), {}, read({"FIRSTTOKEN_ADMIN": "off", "FIRSTTOKEN_SCRAPE": "off", "FIRSTTOKEN_GPU": "off"})
        )
        on.begin()
        off.begin()
        gpu = on.telemetry.sources().gpu
        assert gpu is not None
        assert off.telemetry.sources().gpu is None
        await until(lambda: GPU_POWER in {point.metric for point in gpu.gauges(time.monotonic())})
        for one in (on, off):
            await one.end()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("gpu")]


def test_the_pages_can_stand_at_a_unix_socket(elsewhere: Path) -> None:
    """On the standard library's loop, which cares for such files less than ours does."""
    path = elsewhere / "admin.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))

    @on_asyncio
    async def run() -> None:
        attachment = Attachment(plain(nothing), {}, read({"FIRSTTOKEN_ADMIN": f"unix:{path}"}))
        attachment.begin()
        await until(lambda: attachment.shown_at is not None)
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert (await reader.read()).endswith(b"ok\n")
        writer.close()
        await attachment.end()

    run()
    assert not path.exists()


def test_a_token_is_read_though_there_are_no_pages(elsewhere: Path) -> None:
    """It also lets requests from elsewhere name their class."""
    (elsewhere / "token").write_text("s3cret\n")
    made = read({"FIRSTTOKEN_ADMIN": "off", "FIRSTTOKEN_TOKEN_FILE": "token"})
    assert (made.admin, made.admin_token) == (None, "s3cret")


@pytest.mark.parametrize(("root", "own", "heard"), [("ERROR", "NOTSET", True), ("ERROR", "ERROR", False)])
@on_asyncio
async def test_warnings_are_heard_in_a_host_that_logs_errors_alone(root: str, own: str, heard: bool) -> None:
    """As vLLM's image does; a level that someone has set for us stays."""
    top, ours = logging.getLogger(), logging.getLogger("sidecar")
    before = top.level, ours.level
    top.setLevel(root)
    ours.setLevel(own)
    try:
        attachment = Attachment(plain(nothing), {}, read({"FIRSTTOKEN_ADMIN": "off", "FIRSTTOKEN_GPU": "off"}))
        attachment.begin()
        assert ours.isEnabledFor(logging.WARNING) is heard
        await attachment.end()
    finally:
        top.setLevel(before[0])
        ours.setLevel(before[1])
