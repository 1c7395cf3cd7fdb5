"""OTLP over gRPC, by gRPC's own client: the same acceptance as by HTTP, in its words."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector.doors import intake, rpc
from collector.doors.address import Address
from collector.doors.intake import Reception
from collector.doors.tls import Files, Identity
from collector.errors import ListenError, UnavailableError
from collector.keeping.group import Counted
from tests.collector import exports, messages
from tests.collector.support import ask, collector, peak_mib, until
from tests.collector.told_store import BODY, Told, raises, reception
from tests.sidecar.certificates import AUTHORITY, certificate, key

ANY = Address("127.0.0.1", 0)
METRICS = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
GZIP = grpc.Compression.Gzip


@dataclass(frozen=True)
class Answer:
    """How a call ended."""

    code: Any
    content: bytes = b""
    details: str = ""
    status: Status | None = None

    @property
    def retry_after_s(self) -> int | None:
        assert self.status is not None
        for detail in self.status.details:
            info = RetryInfo()
            assert detail.Unpack(info)
            return info.retry_delay.seconds
        return None


async def export(channel: grpc.aio.Channel, body: bytes = BODY, *, method: str = METRICS, **more: Any) -> Answer:
    """Send the bytes as one message."""
    call = channel.unary_unary(method)(body, timeout=30, **more)
    try:
        return Answer(grpc.StatusCode.OK, await call)
    except grpc.aio.AioRpcError as error:
        found = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin")
        return Answer(error.code(), b"", error.details() or "", found and Status.FromString(found))


@asynccontextmanager
async def serving(to: Reception, *, token: str | None = None) -> AsyncIterator[grpc.aio.Channel]:
    """A client of a listener of our own."""
    async with rpc.bound(ANY, None) as server:
        await server.start(to, token)
        options = [("grpc.max_send_message_length", -1)]
        async with grpc.aio.insecure_channel(server.url.removeprefix("http://"), options=options) as channel:
            yield channel


def story(
    tell: Callable[[grpc.aio.Channel], Awaitable[Any]], to: Reception | None = None, *, token: str | None = None
) -> Any:
    async def whole() -> Any:
        async with serving(to or reception(Told()), token=token) as channel:
            return await tell(channel)

    return asyncio.run(whole())


def test_a_body_is_counted_and_answered_by_its_kind() -> None:
    told = Told(lambda: Counted(3, "3: too old"))

    async def tell(channel: grpc.aio.Channel) -> tuple[Answer, Answer]:
        spans = messages.traces(messages.span({})).SerializeToString()
        return await export(channel), await export(channel, spans, method=TRACES)

    points, spans = story(tell, reception(told))
    partial = ExportMetricsServiceResponse.FromString(points.content).partial_success
    assert (partial.rejected_data_points, partial.error_message) == (3, "3: too old")
    assert ExportTraceServiceResponse.FromString(spans.content).partial_success.rejected_spans == 3
    assert len(set(told.digests)) == 2


def test_a_packed_body_is_the_same_body() -> None:
    told = Told()

    async def tell(channel: grpc.aio.Channel) -> list[Answer]:
        return [await export(channel), await export(channel, compression=GZIP)]

    assert [answer.code for answer in story(tell, reception(told))] == [grpc.StatusCode.OK] * 2
    assert len(told.digests) == 2
    assert len(set(told.digests)) == 1


def test_a_database_away_is_unavailable_with_a_time_to_come_back() -> None:
    to = reception(Told(raises(UnavailableError("the database cannot commit: disk full", retry_after_s=7))))
    answer = story(export, to)
    assert (answer.code, answer.retry_after_s) == (grpc.StatusCode.UNAVAILABLE, 7)
    assert "disk full" in answer.details
    assert (answer.status.code, answer.status.message) == (14, answer.details)
    assert to.refused == {503: 1}


def test_no_room_is_unavailable_with_a_time_to_come_back() -> None:
    to = reception(Told(), room_bytes=len(BODY) - 1)
    answer = story(export, to)
    assert (answer.code, answer.retry_after_s) == (grpc.StatusCode.UNAVAILABLE, 5)
    assert to.room.used == 0


def test_what_is_no_message_is_an_invalid_argument_that_never_comes_again() -> None:
    to = reception(Told())
    answer = story(lambda channel: export(channel, b"\xff\xff nonsense"), to)
    assert (answer.code, answer.retry_after_s) == (grpc.StatusCode.INVALID_ARGUMENT, None)
    assert "protobuf" in answer.details
    assert to.refused == {400: 1}


def test_a_fault_of_ours_is_internal_and_tells_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    answer = story(export, reception(Told(raises(RuntimeError("password=secret")))))
    assert answer.code == grpc.StatusCode.INTERNAL
    assert "secret" not in answer.details
    assert "failed" in caplog.text


TOO_LONG = {
    "as it comes": {"body": bytes(rpc.MAX_MESSAGE_BYTES + 1)},
    "once unpacked": {"body": bytes(rpc.MAX_MESSAGE_BYTES + 1), "compression": GZIP},
}


@pytest.mark.parametrize("case", TOO_LONG)
def test_a_longer_message_than_the_limit_exhausts_the_resource(case: str) -> None:
    to = reception(Told())

    async def tell(channel: grpc.aio.Channel) -> tuple[Answer, Answer]:
        return await export(channel, **TOO_LONG[case]), await export(channel)

    refused, after = story(tell, to)
    assert refused.code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "arger than max" in refused.details
    assert after.code == grpc.StatusCode.OK
    assert to.refused == {413: 1}


def test_a_token_is_asked_for_before_anything_is_read() -> None:
    told = Told()

    async def tell(channel: grpc.aio.Channel) -> list[Answer]:
        sent = (None, "Bearer other", "Bearer s3cret", "bearer  s3cret")
        return [await export(channel, metadata=text and [("authorization", text)]) for text in sent]

    to = reception(told)
    answers = story(tell, to, token="s3cret")
    codes = [answer.code for answer in answers]
    assert codes == [grpc.StatusCode.UNAUTHENTICATED] * 2 + [grpc.StatusCode.OK] * 2
    assert "Bearer TOKEN" in answers[0].details
    assert len(told.digests) == 2
    assert to.refused == {401: 2}


def test_logs_are_not_implemented() -> None:
    assert story(lambda channel: export(channel, b"", method=LOGS)).code == grpc.StatusCode.UNIMPLEMENTED


async def _silent(channel: grpc.aio.Channel) -> Any:
    """A call whose message does not come."""

    async def nothing() -> AsyncIterator[bytes]:
        await asyncio.sleep(60)
        yield b""

    call = channel.stream_unary(METRICS)(nothing(), timeout=30)
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code()


def test_a_message_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "BODY_TIMEOUT_S", 0.1)
    to = reception(Told())
    assert story(_silent, to) == grpc.StatusCode.DEADLINE_EXCEEDED
    assert to.refused == {408: 1}


def test_more_calls_than_can_be_answered_are_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "MAX_CALLS", 1)
    told = Told()

    async def tell(channel: grpc.aio.Channel) -> tuple[Answer, Answer]:
        told.held = asyncio.Event()
        first = asyncio.create_task(export(channel))
        await told.came.wait()
        second = await export(channel)
        told.held.set()
        return await first, second

    first, second = story(tell, reception(told))
    assert first.code == grpc.StatusCode.OK
    assert (second.code, second.retry_after_s) == (grpc.StatusCode.UNAVAILABLE, 5)


@dataclass
class Call:
    """One call, as the library shows it, whose message comes when it is let."""

    is_read: bool = False
    comes: asyncio.Event = field(default_factory=asyncio.Event)

    def invocation_metadata(self) -> tuple[()]:
        return ()

    async def read(self) -> bytes:
        self.is_read = True
        await self.comes.wait()
        return BODY


def test_no_more_messages_are_read_at_a_time_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "MAX_READING", 1)

    async def whole() -> None:
        exports, first, second = rpc._Exports(reception(Told()), None), Call(), Call()
        answers = [asyncio.create_task(exports.answer("metrics", None, call)) for call in (first, second)]
        await asyncio.sleep(0.05)
        assert (first.is_read, second.is_read) == (True, False)
        first.comes.set()
        second.comes.set()
        assert await asyncio.gather(*answers) == [b"", b""]

    asyncio.run(whole())


def test_a_call_in_hand_is_answered_at_the_end() -> None:
    told = Told()

    async def whole() -> tuple[Answer, Answer]:
        told.held = asyncio.Event()
        async with rpc.bound(ANY, None) as server:
            await server.start(reception(told), None)
            async with grpc.aio.insecure_channel(server.url.removeprefix("http://")) as channel:
                call = asyncio.create_task(export(channel))
                await told.came.wait()
                ending = asyncio.create_task(server.stop(30))
                await asyncio.sleep(0.1)
                late = await export(channel)
                told.held.set()
                await ending
                return await call, late

    in_hand, late = asyncio.run(whole())
    assert in_hand.code == grpc.StatusCode.OK
    assert late.code == grpc.StatusCode.UNAVAILABLE


def _told_to_a_port(idle: Callable[[int], Awaitable[None]]) -> None:
    """Let the story happen to the port of a listener."""

    async def whole() -> None:
        async with rpc.bound(ANY, None) as server:
            await server.start(reception(Told()), None)
            async with asyncio.timeout(60):
                await idle(int(server.url.rpartition(":")[2]))

    asyncio.run(whole())


async def _until_closed(reading: asyncio.StreamReader) -> None:
    try:
        while await reading.read(1000):
            pass
    except ConnectionError:
        pass


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"


@pytest.mark.parametrize(("limit", "sent"), [("HANDSHAKE_S", b""), ("HANDSHAKE_S", PREFACE[:9]), ("IDLE_S", PREFACE)])
def test_a_connection_that_asks_nothing_is_let_go(limit: str, sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, limit, 1)

    async def idle(port: int) -> None:
        reading, writing = await asyncio.open_connection("127.0.0.1", port)
        writing.write(sent)
        await _until_closed(reading)
        writing.close()

    _told_to_a_port(idle)


def test_one_connection_too_many_is_let_go_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "MAX_OPEN", 1)

    async def idle(port: int) -> None:
        first, kept = await asyncio.open_connection("127.0.0.1", port)
        kept.write(PREFACE)
        assert await first.read(9)
        second, over = await asyncio.open_connection("127.0.0.1", port)
        await _until_closed(second)
        over.close()
        kept.close()

    _told_to_a_port(idle)


def test_an_address_that_cannot_be_had_is_one_line() -> None:
    async def had(address: Address) -> None:
        async with rpc.bound(address, None):
            pass

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ListenError, match=f"^--grpc 127.0.0.1:{port}: Address already in use: choose another"):
            asyncio.run(had(Address("127.0.0.1", port)))
    with pytest.raises(ListenError, match=r"^--grpc 203.0.113.7:0 cannot be listened on: choose another address$"):
        asyncio.run(had(Address("203.0.113.7", 0)))


def _secure(target: str, *, shown: str | None = None) -> grpc.aio.Channel:
    pair = (Path(key(shown)).read_bytes(), Path(certificate(shown)).read_bytes()) if shown else ()
    credentials = grpc.ssl_channel_credentials(Path(AUTHORITY).read_bytes(), *pair)
    return grpc.aio.secure_channel(target, credentials, options=[("grpc.use_local_subchannel_pool", 1)])


def test_over_tls_a_renewed_certificate_is_shown_and_clients_show_theirs(tmp_path: Path) -> None:
    def write(name: str) -> None:
        (tmp_path / "c.pem").write_bytes(Path(certificate(name)).read_bytes())
        (tmp_path / "c.key").write_bytes(Path(key(name)).read_bytes())

    async def whole() -> list[Any]:
        write("server")
        identity = Identity(Files(tmp_path / "c.pem", tmp_path / "c.key", Path(AUTHORITY)))
        codes = []
        async with rpc.bound(ANY, identity) as server:
            assert server.url.startswith("https://127.0.0.1:")
            target = server.url.removeprefix("https://")
            await server.start(reception(Told()), None)
            for name in ("server", "engine"):  # the engine's certificate is of another name: nobody believes it here
                write(name)
                identity.reload()
                for shown in (None, "intruder", "client"):
                    async with _secure(target, shown=shown) as channel:
                        codes.append((await export(channel)).code)
        return codes

    refused, ok = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.OK
    assert asyncio.run(whole()) == [refused, refused, ok, refused, refused, refused]


def _export_to(target: str, body: bytes) -> Answer:
    async def whole() -> Answer:
        async with grpc.aio.insecure_channel(target) as channel:
            return await export(channel, body)

    return asyncio.run(whole())


def test_the_same_body_by_grpc_and_by_http_counts_once(tmp_path: Path) -> None:
    body = exports.second(good=3, bad=1, at_s=int(time.time())).SerializeToString()
    with collector(tmp_path, "--tick", "1s") as running:
        target = running.rpc_target()
        assert _export_to(target, body).code == grpc.StatusCode.OK
        posted = ask(f"{running.url}/v1/metrics", body, content_type="application/x-protobuf")
        assert posted.status == 200
        assert _export_to(target, body).code == grpc.StatusCode.OK
        budgets = until(
            lambda: [
                one["budget"]["good"]
                for one in ask(f"{running.url}/api/v1/status").json["objectives"]
                if one["model"] == "*" and one["budget"]["good"]
            ]
        )
        assert budgets == [3]
        assert running.stop() == 0


def test_e09_a_bomb_is_refused_in_little_memory(tmp_path: Path) -> None:
    with collector(tmp_path, "--tick", "1s") as running:
        target = running.rpc_target()

        async def whole() -> tuple[Answer, Answer]:
            options = [("grpc.max_send_message_length", -1)]
            async with grpc.aio.insecure_channel(target, options=options) as channel:
                return await export(channel, bytes(200 << 20), compression=GZIP), await export(channel)

        before = peak_mib(running)
        refused, after = asyncio.run(whole())
        assert refused.code == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert after.code == grpc.StatusCode.OK
        assert peak_mib(running) - before < 64
