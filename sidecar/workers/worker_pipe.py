"""What a parent and its workers say to each other, and the pipe that it goes through.

    parent ── Start, State, Reload, Ask, Drain, Hurry ─▶ worker
           ◀── Ready, Report ───────────────────────────

A pipe is a socket pair; a message goes as its length and its pickle. Both ends are processes of ours, of one version
and one user, and nobody else holds an end. The end of either process is the end of the pipe: what it had sent until
then still arrives, whatever killed it.
"""

import asyncio
import contextlib
import pickle
import socket
import struct
from dataclasses import dataclass

from sidecar import limits
from sidecar.configuration.options import Options
from sidecar.configuration.plan import Plan
from sidecar.counting.tally import Increment, Number
from sidecar.otlp_settings import Lane
from slo.objective import Spec
from slo.signals import Metric

TOLD_EVERY_S = 1.0  # between two `State`s, and between two `Report`s

_LENGTH = struct.Struct("!I")


@dataclass(frozen=True, slots=True)
class Start:
    """Which worker this is, and all that it has to know; `spec` is the one in force."""

    number: int
    options: Options
    plan: Plan
    spec: Spec | None


@dataclass(frozen=True, slots=True)
class State:
    """What the parent, which alone asks the server, knows of it. `outages`: how often it was found gone; `models`: all
    labels there are."""

    kv_occupancy: float | None
    overload_429: bool
    engine: str | None
    outages: int
    served: tuple[str, ...]
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reload:
    """The configuration was read again: this spec is in force, and the certificates may be others."""

    spec: Spec | None


@dataclass(frozen=True, slots=True)
class Ask:
    """Report now, for the `number`th time."""

    number: int


@dataclass(frozen=True, slots=True)
class Drain:
    """Take no more clients, let the requests in flight end, and end."""


@dataclass(frozen=True, slots=True)
class Hurry:
    """Wait for no request in flight any longer."""


@dataclass(frozen=True, slots=True)
class Ready:
    """Clients are taken from now on."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a worker has counted since its last report, and how it stands.

    `at_stake`: what its requests in flight count as should it say nothing more. `busy_since_ns` and `last_token_ns`
    are of the monotonic clock, which all processes of a machine share. `answers`: the last `Ask` that this follows.
    """

    increment: Increment
    exports: tuple[tuple[Metric, Lane, str, int], ...]
    models: tuple[str, ...]
    gauges: tuple[Number, ...]
    at_stake: tuple[Number, ...]
    in_flight: int
    synthetic_in_flight: int
    busy_since_ns: int
    last_token_ns: int
    reached: bool
    answers: int


Message = Start | State | Reload | Ask | Drain | Hurry | Ready | Report


class Pipe:
    """One end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @property
    def is_backed_up(self) -> bool:
        """Whether the other end does not listen: what can wait should not be sent."""
        return self._writer.transport.get_write_buffer_size() > limits.WORKER_UNREAD_BYTES

    def send(self, message: Message) -> None:
        """Send without waiting; to an end that is gone nothing is sent."""
        if self._writer.is_closing():
            return
        data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        self._writer.write(_LENGTH.pack(len(data)) + data)

    async def receive(self) -> Message | None:
        """The next message; None once the other end is gone."""
        try:
            (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
            message = pickle.loads(await self._reader.readexactly(length))  # noqa: S301  from a process of ours
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        assert isinstance(message, Message)
        return message

    async def close(self) -> None:
        """Send what waits, for as long as the other end takes it, and end."""
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    async def finish(self) -> None:
        """Say that nothing more comes, and end once the other end has read it all and is gone.

        Whoever only closes may lose what was sent last: the other end, which does not know yet, sends too, and with
        that its own connection is broken before it has read.
        """
        with contextlib.suppress(ConnectionError):
            self._writer.write_eof()
            while await self._reader.read(limits.WORKER_UNREAD_BYTES):
                pass
        await self.close()


class _ToTheEnd(asyncio.StreamReaderProtocol):
    """Gives what came before the other end was gone, however it went.

    An end that is closed while something for it is unread, as by a process that is killed while it is asked, resets the
    other one; asyncio's reader would then give nothing more of what it holds: the last that the process had counted.
    """

    def connection_lost(self, _exc: Exception | None) -> None:
        super().connection_lost(None)


async def pipe_over(end: socket.socket) -> Pipe:
    """The pipe behind a socket, which is its from now on."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    transport, protocol = await loop.create_unix_connection(lambda: _ToTheEnd(reader), sock=end)
    return Pipe(reader, asyncio.StreamWriter(transport, protocol, reader, loop))
