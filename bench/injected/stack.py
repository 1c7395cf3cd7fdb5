"""One service as it runs: a demo server, a sidecar before it, a collector, and a way from one to the other that can be
cut. Real processes, real sockets, real time; windows are seconds instead of hours, and nothing else is hastened."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from firsttoken import demo_plan
from firsttoken.http_json import ask_json
from firsttoken.processes import Command, Family

TICK_S, EXPORT_MS = 2, 1000
LONG_S, SHORT_S = 24, 8
STEP_MS = 40
URL = r"(http://\S+)$"
MODEL = demo_plan.MODEL
_TIER = f"alerts: {{tiers: [{{name: fast, budget: 20%, long: {LONG_S}s, short: {SHORT_S}s, notify: page}}]}}"
SLO_YAML = f"""\
service: chat
objectives:
  - {{name: ttft, signal: ttft, percentile: 90, threshold: 800ms, window: 10m, {_TIER}}}
  - {{name: tpot, signal: tpot, percentile: 90, threshold: 120ms, window: 10m, {_TIER}}}
  - {{name: answered, signal: availability, target: 98%, window: 10m, {_TIER}}}
  - {{name: kv, signal: kv_occupancy, threshold: 90%, target: 90%, window: 10m, {_TIER}}}
"""


@dataclass(frozen=True, slots=True)
class Stack:
    """Where everything answers, and the way between sidecar and server."""

    server_url: str
    proxy_url: str
    collector_url: str
    way: "Way"


class Way:
    """Passes bytes between the sidecar and its server, unless it is cut: then nobody is let in, and whoever is inside
    is put out."""

    def __init__(self, port: int) -> None:
        self._upstream = port
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def join(self) -> None:
        """Let them pass."""
        self._server = await asyncio.start_server(self._pass, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Let nobody pass."""
        if self._server is not None:
            self._server.close()
            for writer in self._open:
                writer.transport.abort()
            await self._server.wait_closed()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            other_reader, other = await asyncio.open_connection("127.0.0.1", self._upstream)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, other}
        try:
            await asyncio.gather(pump(reader, other), pump(other_reader, writer))
        finally:
            self._open -= {writer, other}
            for one in (writer, other):
                one.close()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until one end closes; then the other is closed too."""
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


@asynccontextmanager
async def stack(folder: Path, say: Callable[[str], None]) -> AsyncIterator[Stack]:
    """A whole service in a folder of its own; all of it is gone at the end."""
    await asyncio.to_thread(_prepare, folder)
    async with AsyncExitStack() as exits:
        family = await exits.enter_async_context(Family(folder))
        environ = demo_plan.environment(os.environ)
        server, collector = await asyncio.gather(
            family.start(_server(environ)), family.start(_collector(folder, environ))
        )
        server_url = (await server.says(rf"^listening on {URL}"))[1]
        collector_url = (await collector.says(rf"^collector: {URL}"))[1]
        way = Way(urlsplit(server_url).port or 0)
        await way.join()
        exits.push_async_callback(way.cut)
        to = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector_url,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_METRIC_EXPORT_INTERVAL": str(EXPORT_MS),
        }
        sidecar = await family.start(_sidecar(folder, environ | to, port=way.port))
        proxy_url = (await sidecar.says(rf"^proxy: {URL}"))[1]
        for _ in range(4):
            await asyncio.to_thread(_warm_up, server_url)
        say(f"{folder.name}: page {collector_url}/")
        yield Stack(server_url, proxy_url, collector_url, way)


def _prepare(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "slo.yaml").write_text(SLO_YAML)


def _warm_up(server_url: str) -> None:
    question = {"model": MODEL, "prompt": "warm up " * 40, "max_tokens": 30}
    ask_json(f"{server_url}/v1/completions", body=question, timeout_s=60)


def _server(environ: dict[str, str]) -> Command:
    size = ("--max-batch", "8", "--kv-blocks", "96", "--max-model-len", "512", "--step-ms", str(STEP_MS))
    flags = ("--listen", "127.0.0.1:0", "--model", MODEL, *size)
    return Command("demo-server", (*_python("demo_server"), *flags), environ)


def _collector(folder: Path, environ: dict[str, str]) -> Command:
    where = ("--slo", str(folder / "slo.yaml"), "--database", f"sqlite:///{folder / 'firsttoken.db'}")
    listen = ("--listen", "127.0.0.1:0", "--grpc", "off", "--tick", f"{TICK_S}s", "--drain-timeout", "3s")
    return Command("collector", (*_python("collector"), *where, *listen), environ)


def _sidecar(folder: Path, environ: dict[str, str], *, port: int) -> Command:
    where = ("--upstream", f"http://127.0.0.1:{port}", "--slo", str(folder / "slo.yaml"), "--drain-timeout", "3")
    listen = ("--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
    return Command("sidecar", (*_python("sidecar"), *where, *listen), environ)


def _python(package: str) -> tuple[str, ...]:
    return (sys.executable, "-m", package)
