"""OTLP over gRPC: the same bodies as `post`, by the same act, with the answers in gRPC's words.

A body is taken as the bytes it came in, so that the same export counts once by either way. The token is asked for
before the message is read, and only so many messages are read at a time: the library holds each of them whole, outside
of any account of ours. A refusal carries a google.rpc.Status in `grpc-status-details-bin`; with a RetryInfo, the same
bytes may come again.

What is not for the library: it shares a port that is taken unless told otherwise, writes its own lines to stderr, and
says of an address that it cannot have no more than that.
"""

import asyncio
import hmac
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from collector.doors import intake, listener, reply
from collector.doors.address import Address
from collector.doors.body import PROTOBUF
from collector.doors.gate import given
from collector.doors.intake import Reception
from collector.doors.reply import Kind
from collector.doors.tls import Identity, Pem
from collector.errors import ListenError, RefusedError, UnavailableError

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # read as the library is imported

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]

MAX_MESSAGE_BYTES = 16 << 20
MAX_READING = 16
MAX_CALLS = 512
MAX_STREAMS = 128
MAX_OPEN = 1024
IDLE_S = 300
HANDSHAKE_S = 20
PING_S = 60
SERVICES: dict[str, Kind] = {
    "opentelemetry.proto.collector.trace.v1.TraceService": "traces",
    "opentelemetry.proto.collector.metrics.v1.MetricsService": "metrics",
}
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_DETAILS = "grpc-status-details-bin"


@asynccontextmanager
async def bound(address: Address, identity: Identity | None) -> AsyncIterator["Rpc"]:
    """A listener that has its port, and answers once it is started; gone when the block ends. Raises `ListenError`."""
    if address.port:
        listener.listening("--grpc", address).close()
    server = grpc.aio.server(options=_options())
    try:
        if identity is None:
            port = server.add_insecure_port(str(address))
        else:
            port = server.add_secure_port(str(address), _credentials(identity))
    except RuntimeError as error:
        raise ListenError(f"--grpc {address} cannot be listened on: choose another address") from error
    try:
        yield Rpc(server, f"{'http' if identity is None else 'https'}://{Address(address.host, port)}")
    finally:
        await server.stop(None)


class Rpc:
    """The gRPC listener; `url` is what senders are told."""

    def __init__(self, server: Any, url: str) -> None:
        self.url = url
        self._server = server

    async def start(self, reception: Reception, token: str | None) -> None:
        """Answer from now on; with a token, whoever knows it."""
        exports = _Exports(reception, token)
        for service, kind in SERVICES.items():
            method = grpc.stream_unary_rpc_method_handler(partial(exports.answer, kind))
            self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": method}),))
        await self._server.start()

    async def stop(self, drain_s: float) -> None:
        """Take no new calls, and let those in hand end."""
        await self._server.stop(drain_s)


class _Exports:
    """Answers calls. To gRPC one is a stream of one message, so that what comes before the message can be checked."""

    def __init__(self, reception: Reception, token: str | None) -> None:
        self._reception = reception
        self._token = None if token is None else token.encode()
        self._reading = asyncio.Semaphore(MAX_READING)
        self._calls = 0

    async def answer(self, kind: Kind, _messages: object, context: Any) -> bytes:
        """The response to one call; errors end it by `abort`."""
        self._calls += 1
        try:
            return await self._counted(kind, context)
        except Exception as error:  # noqa: BLE001  every fault is answered
            refusal = self._reception.refusal(error)
        finally:
            self._calls -= 1
        details = ((_DETAILS, reply.rpc_status(refusal)),)
        await context.abort(_CODES[reply.rpc_code(refusal.status)], reply.short(refusal.message), details)
        raise AssertionError("abort raises")

    async def _counted(self, kind: Kind, context: Any) -> bytes:
        if not self._knows(context):
            raise RefusedError(401, "this collector asks for its token: send authorization: Bearer TOKEN")
        if self._calls > MAX_CALLS:
            raise UnavailableError("more calls are in hand than can be answered: send again later")
        body = await self._message(context)
        with self._reception.room.place() as place:
            place.whole()
            place.grow(len(body))
            counted = await self._reception.count(kind, PROTOBUF, body)
        return reply.accepted(kind, PROTOBUF, rejected=counted.rejected, why=counted.why).content

    def _knows(self, context: Any) -> bool:
        if self._token is None:
            return True
        sent = [value for name, value in context.invocation_metadata() if name == "authorization"]
        return any(hmac.compare_digest(given(value.encode()), self._token) for value in sent)

    async def _message(self, context: Any) -> bytes:
        async with self._reading:
            try:
                async with asyncio.timeout(intake.BODY_TIMEOUT_S):
                    message = await context.read()
            except TimeoutError:
                raise intake.too_slow() from None
        if not isinstance(message, bytes):
            # The library has answered already where the message was too long.
            raise RefusedError(413, f"no message came, or one of more than {MAX_MESSAGE_BYTES} bytes")
        return message


def _options() -> tuple[tuple[str, int], ...]:
    """The library's limits, by its own names."""
    return (
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_allowed_incoming_connections", MAX_OPEN),
        ("grpc.max_concurrent_streams", MAX_STREAMS),
        ("grpc.max_connection_idle_ms", IDLE_S * 1000),
        ("grpc.server_handshake_timeout_ms", HANDSHAKE_S * 1000),
        ("grpc.keepalive_time_ms", PING_S * 1000),
        # Senders that ping to keep a path open through NAT are no nuisance.
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    )


def _credentials(identity: Identity) -> Any:
    """Certificates that are asked for at each connection, so that renewed ones are shown."""
    shown = identity.pem

    def renewed() -> object:
        nonlocal shown
        if shown is identity.pem:
            return None
        shown = identity.pem
        return _configuration(shown)

    asks = identity.pem.client_ca is not None
    return grpc.dynamic_ssl_server_credentials(_configuration(shown), renewed, asks)


def _configuration(pem: Pem) -> object:
    return grpc.ssl_server_certificate_configuration([(pem.key, pem.certificate)], root_certificates=pem.client_ca)
