"""What a parent and its workers say to each other, and the pipe that it goes through.

    parent ── Start, State, Reload, Ask, Drain, Hurry ─▶ worker
           ◀── Ready, Report ───────────────────────────

A pipe is two socket pairs, one each way; a message goes as its length and its pickle. Both ends are processes of ours,
of one version and one user, and nobody else holds an end. The end of either process is the end of the pipe: what it had
sent until then still arrives, whatever killed it. Hence one each way: who writes to a process that is gone breaks that
connection at once, and with it all that is unread there, as the last that a worker had counted.
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

Ends = tuple[socket.socket, socket.socket]
"""What a process reads from, and what it writes to."""
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]

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

    def __init__(self, inward: Stream, outward: Stream) -> None:
        self._streams = inward, outward
        self._reader, self._writer = inward[0], outward[1]

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
        for _, writer in self._streams:
            writer.close()
        for _, writer in self._streams:
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


def pair() -> tuple[Ends, Ends]:
    """The ends of a new pipe: of this process, and of the other."""
    (ours_in, theirs_out), (ours_out, theirs_in) = socket.socketpair(), socket.socketpair()
    return (ours_in, ours_out), (theirs_in, theirs_out)


async def pipe_over(ends: Ends) -> Pipe:
    """The pipe behind two sockets, which are its from now on."""
    inward, outward = [await asyncio.open_unix_connection(sock=end) for end in ends]
    return Pipe(inward, outward)
