"""Whatever bytes come through the doors of a real collector: an answer in order, no fault of ours, memory bounded."""

import gzip
import socket
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import grpc  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.collector import exports
from tests.collector.support import Running, ask, collector, peak_mib, send, until
from tests.collector.test_fuzz import METRICS, METRICS_JSON, TRACES, TRACES_JSON, mutated, mutated_json
from tests.collector.torture import LONG
from tests.collector.torture.load import METHODS

EXAMPLES = 2000 if LONG else 150
SPIKE_MIB = 96
"""What one body within the limits may take while it is read: twelve megabytes of it unpacked, and what it says."""
GROWTH_MIB = 32
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "identity": bytes,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "x-gzip": gzip.compress,
    "": bytes,
    "zstd": bytes,
    "gzip, gzip": lambda body: gzip.compress(gzip.compress(body)),
}
COUNTED = ("m", "counts")
MAY_END = (
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
)


@dataclass(frozen=True)
class Request:
    """What is sent, as it is sent."""

    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    length: int

    def wire(self) -> bytes:
        head = [f"POST {self.path} HTTP/1.1", "host: collector", f"content-length: {self.length}", "connection: close"]
        head += [f"{name}: {value}" for name, value in self.headers]
        return "\r\n".join(head).encode("latin-1", "replace") + b"\r\n\r\n" + self.body


text = st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=20)
protobuf = st.one_of(mutated(METRICS), mutated(TRACES), st.binary(max_size=60))
json_text = st.one_of(mutated_json(METRICS_JSON), mutated_json(TRACES_JSON), st.binary(max_size=60))
bombs = st.sampled_from([b"\n" * (12 << 20), bytes(12 << 20), b"[" * (4 << 20), b'{"a":' * (1 << 20)])


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """Mostly a real request that is a little off."""
    is_json = draw(st.booleans())
    body = draw(json_text if is_json else protobuf)
    if draw(st.integers(0, 40)) == 0:
        body = draw(bombs)
    encoding = draw(st.one_of(st.sampled_from(sorted(PACKERS)), text) if draw(st.booleans()) else st.just("identity"))
    packed = PACKERS.get(encoding, bytes)(body)
    if draw(st.integers(0, 4)) == 0:
        packed = draw(mutated((packed[:4096],)))
    types = st.sampled_from(["application/json" if is_json else "application/x-protobuf"] * 6 + ["text/plain", ""])
    headers = [("content-type", draw(st.one_of(types, text))), ("content-encoding", encoding)]
    if draw(st.integers(0, 8)) == 0:
        headers.append((draw(st.sampled_from(["transfer-encoding", "expect", "content-length", "x"])), draw(text)))
    length = max(0, len(packed) + draw(st.sampled_from([0] * 12 + [-1, 1, 100])))
    path = draw(st.sampled_from(["/v1/metrics", "/v1/traces"] * 6 + ["/v1/logs", "/v1/metrics/", "/v1/traces?a=%"]))
    return Request(path, tuple(headers), packed, length)


def answer(running: Running, wire: bytes) -> int | None:
    """The status that the bytes get; None when the connection is closed without one."""
    with socket.create_connection(("127.0.0.1", int(running.url.rpartition(":")[2])), 20) as connection:
        try:
            connection.sendall(wire)
            connection.shutdown(socket.SHUT_WR)
            head = b"".join(iter(lambda: connection.recv(65536), b""))
        except OSError:  # it has closed already, before all was sent or at once after
            return None
    return int(head.split(b" ", 2)[1]) if head.startswith(b"HTTP/1.1 ") else None


def storm(running: Running, channel: grpc.Channel) -> None:
    @settings(max_examples=EXAMPLES, database=None)
    @given(requests())
    def by_http(request: Request) -> None:
        status = answer(running, request.wire())
        assert status is None or 200 <= status < 300 or 400 <= status < 500 or status == 503, status

    @settings(max_examples=EXAMPLES // 5, database=None)
    @given(mutated((Request("/v1/metrics", (("content-type", "application/json"),), b"{}", 2).wire(),)))
    def by_any_bytes(wire: bytes) -> None:
        status = answer(running, wire)
        assert status is None or status < 500 or status in (501, 503, 505), status

    @settings(max_examples=EXAMPLES // 2, database=None)
    @given(st.sampled_from(sorted(METHODS)), protobuf)
    def by_rpc(kind: str, body: bytes) -> None:
        call = channel.unary_unary(METHODS[kind]).future(body, timeout=20)
        assert call.code() in MAY_END, call.details()

    by_http()
    by_any_bytes()
    by_rpc()


def rss_mib(running: Running) -> float:
    status = Path(f"/proc/{running.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


@pytest.mark.timeout(1800 if LONG else 300)
def test_any_bytes_are_answered_in_order_and_leave_nothing_behind(tmp_path: Path) -> None:
    with collector(tmp_path, "--tick", "1s", "--max-series", "50") as running:
        options = [("grpc.max_send_message_length", -1)]
        with grpc.insecure_channel(running.rpc_target(), options=options) as channel:
            storm(running, channel)
            early_mib = rss_mib(running)
            storm(running, channel)
        late_mib, peak = rss_mib(running), peak_mib(running)
        assert late_mib < early_mib + GROWTH_MIB
        assert peak < early_mib + SPIKE_MIB
        # What was a little off may have been counted: only what comes now is known.
        now_s = time.time()
        assert send(running.url, exports.second(good=1, bad=1, at_s=now_s)).status == 200
        acknowledged_s = time.time()
        good, bad = until(lambda: _budget(running, acknowledged_s))
        assert send(running.url, exports.second(good=7, bad=2, at_s=now_s + 1)).status == 200
        until(lambda: _budget(running, acknowledged_s) == (good + 7, bad + 2))
        assert running.stop() == 0
        said = running.log.read_text()
    assert "Traceback" not in said
    assert "ERROR" not in said


def _budget(running: Running, after_s: float) -> tuple[int, int] | None:
    """Good and bad of the one model that `exports` has, of an evaluation since then, once its events are counted and
    not read off a histogram."""
    said = ask(f"{running.url}/api/v1/status").json
    found = [one["budget"] for one in said["objectives"] if (one["model"], one["basis"]) == COUNTED]
    return (found[0]["good"], found[0]["bad"]) if found and said["at_s"] > after_s else None
