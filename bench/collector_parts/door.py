"""What a span and a histogram point cost a real collector, from the socket to the commit, beside the Rust collector.

Each arm is a process that is sent the same bodies over connections that are kept alive: ours by HTTP and by gRPC, with
an SQLite file, and `rotel` by HTTP, which reads them and drops them. No body is sent to an arm twice: one that was
counted already costs less.
"""

import contextlib
import http.client
import itertools
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import grpc  # type: ignore[import-untyped]
from rig.arms import Arm, environment, first_port, running
from rig.figures import Row, Turn

from collector_parts import decode, rotel

SENDERS = 4
FEW_POINTS = 200
SERIES = 1_000
STEPS = 720
NOTHING_REFUSED = b"\x0a\x00"
"""A partial success that names nothing; most say nothing at all."""
PROTOBUF = {"content-type": "application/x-protobuf"}
RPC = {
    "/v1/traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "/v1/metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
}
SPEC = """
service: chat
objectives:
  - {name: answered, signal: availability, target: 99.9%}
"""

Send = Callable[[str, bytes], None]


@dataclass(frozen=True, slots=True)
class Load:
    """Bodies of one kind without end, so many items in each."""

    title: str
    path: str
    items: int
    bodies: Iterator[bytes]

    @property
    def row(self) -> Row:
        return Row(self.title, "us of CPU", "times", "rotel")


@dataclass(slots=True)
class Door:
    """One way into one process."""

    name: str
    arm: Arm
    sending: Callable[[], AbstractContextManager[Send]]
    loads: dict[str, Load] = field(default_factory=lambda: {load.title: load for load in loads()})

    def turn(self, title: str, bodies: int) -> Turn:
        """Send so many bodies, and see what an item of them cost."""
        load = self.loads[title]
        sent = [next(load.bodies) for _ in range(bodies)]
        before_ns, waited_ns, began_ns = self.arm.cpu_ns(), self.arm.waited_ns(), time.perf_counter_ns()
        self._send(load.path, sent)
        took_ns = time.perf_counter_ns() - began_ns
        cost_us = (self.arm.cpu_ns() - before_ns) / 1000 / bodies / load.items
        return Turn({load.row: cost_us}, {"waited for a core": max(0, self.arm.waited_ns() - waited_ns) / took_ns})

    def _send(self, path: str, bodies: list[bytes]) -> None:
        faults: list[Exception] = []

        def work(share: list[bytes]) -> None:
            try:
                with self.sending() as send:
                    for body in share:
                        send(path, body)
            except Exception as error:  # noqa: BLE001  it is raised where the turn was asked for
                faults.append(error)

        threads = [threading.Thread(target=work, args=(bodies[number::SENDERS],)) for number in range(SENDERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if faults:
            raise faults[0]


def loads() -> Iterator[Load]:
    """Everything that is sent; each call's bodies are its own."""
    yield Load("span of a sidecar", "/v1/traces", decode.SPANS, _marked(decode.sidecar_spans()))
    yield Load("span of vLLM", "/v1/traces", decode.SPANS, _marked(decode.vllm_spans()))
    yield Load("histogram point of a sidecar", "/v1/metrics", decode.POINTS, _points(decode.POINTS, 0))
    few = _points(FEW_POINTS, 10 * SERIES)
    yield Load(f"histogram point of a sidecar, {FEW_POINTS} a body", "/v1/metrics", FEW_POINTS, few)


def _marked(body: bytes) -> Iterator[bytes]:
    """The body again and again, each time with an empty resource behind it that makes it another."""
    for number in itertools.count():
        mark = f"{number:09d}".encode()
        url = b"\x1a" + bytes((len(mark),)) + mark  # schema_url
        yield body + b"\x0a" + bytes((len(url),)) + url


def _points(count: int, first: int) -> Iterator[bytes]:
    """Exports of some thousand series each ten seconds, from two hours ago on: so many points a body, and so many
    bodies that they hold the thousand. The series are numbered from `first` on."""
    began_ns, bodies = time.time_ns() - STEPS * 10 * decode.NS, -(-SERIES // count)
    for number in itertools.count():
        end_ns = began_ns + 10 * decode.NS * (number // bodies % STEPS) + number
        yield decode.sidecar_points(end_ns, first + number % bodies * count, count)


@contextlib.contextmanager
def http_client(port: int) -> Iterator[Send]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def send(path: str, body: bytes) -> None:
        connection.request("POST", path, body, PROTOBUF)
        answer = connection.getresponse()
        said = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path} was answered {answer.status}: {said[:200]!r}")
        _taken(path, said)

    try:
        yield send
    finally:
        connection.close()


@contextlib.contextmanager
def grpc_client(port: int) -> Iterator[Send]:
    with grpc.insecure_channel(f"127.0.0.1:{port}", [("grpc.use_local_subchannel_pool", 1)]) as channel:
        calls = {path: channel.unary_unary(method) for path, method in RPC.items()}
        yield lambda path, body: _taken(path, calls[path](body, timeout=60))


def _taken(path: str, said: bytes) -> None:
    """Nothing of the body was refused."""
    if len(said) > len(NOTHING_REFUSED):
        raise RuntimeError(f"{path}: not all of it was taken: {said[:200]!r}")


@contextlib.contextmanager
def collector(folder: Path, *flags: str) -> Iterator[tuple[Arm, Arm]]:
    """A collector that works in the folder: its door for HTTP and the one for gRPC."""
    spec = folder / "slo.yaml"
    spec.write_text(SPEC)
    named = ["--slo", str(spec), "--database", str(folder / "bench.db"), "--log-level", "error"]
    places = ["--listen", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
    with running([sys.executable, "-m", "collector", *named, *places, *flags], env=environment()) as process:
        ports = first_port(process, "the collector"), first_port(process, "the collector")
        yield Arm("http", ports[0], process.pid), Arm("grpc", ports[1], process.pid)


@contextlib.contextmanager
def doors(names: list[str]) -> Iterator[dict[str, Door]]:
    """The arms of those names, up until the block ends."""
    with contextlib.ExitStack() as stack:
        found: dict[str, Door] = {}
        if {"http", "grpc"} & set(names):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            by_http, by_rpc = stack.enter_context(collector(folder))
            found["http"] = Door("http", by_http, lambda: http_client(by_http.port))
            found["grpc"] = Door("grpc", by_rpc, lambda: grpc_client(by_rpc.port), found["http"].loads)
        if "rotel" in names:
            other = stack.enter_context(rotel.running_agent())
            found["rotel"] = Door("rotel", other, lambda: http_client(other.port))
        yield {name: found[name] for name in names}
