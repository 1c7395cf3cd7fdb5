"""The TLS contexts in use, which change while we run: certificates are renewed, authorities come and go.

What was read from files can be read again; files that cannot be used then change nothing. A connection keeps what its
handshake found.

An event loop's listener keeps one context for good, so it gets one that begins each connection by the latest. There a
failed handshake is told too, and their number is bounded: the event loop does neither.
"""

import logging
import ssl
from collections.abc import Callable
from dataclasses import replace
from weakref import WeakSet

from sidecar import limits
from sidecar.address import Address, is_local
from sidecar.daemon_thread import on_daemon_thread
from sidecar.settings import UsageError
from sidecar.transport.tls import Presented, Trust, believing, presenting, reason

log = logging.getLogger(__name__)

_AGAIN = (ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Identity:
    """What the listeners of a process present. `files` None: nothing, they speak plain HTTP."""

    def __init__(self, files: Presented | None) -> None:
        self._files = files
        self._read: list[Reread] = []

    def for_clients(self) -> ssl.SSLContext | None:
        """For the proxy."""
        return None if self._files is None else self._rotating(self._files)

    def for_admin(self, address: Address) -> ssl.SSLContext | None:
        """For the pages: where only this machine reaches them, probes and scrapers may stay with plain HTTP; elsewhere
        the token must not be read on its way. No certificate is asked for: the token is what admits."""
        if self._files is None or is_local(address):
            return None
        return self._rotating(replace(self._files, client_ca=None))

    def _rotating(self, files: Presented) -> ssl.SSLContext:
        read = Reread(lambda: _telling(presenting(files)), at_once=True)
        self._read.append(read)
        return Rotating.of(read)

    async def reload(self) -> bool:
        """Read the files again for connections to come; whether they are in use now."""
        return all([await read.reload() for read in self._read])


class ServerTls:
    """How connections to the server behind speak TLS, whoever makes them."""

    def __init__(self, trust: Trust | None = None) -> None:
        self._trust = trust or Trust()
        self._read = Reread(lambda: believing(self._trust))
        self._tell = _Teller("no TLS with the server behind")

    @property
    def context(self) -> ssl.SSLContext:
        """For a connection that begins now."""
        return self._read.context

    def name_of(self, host: str) -> str:
        """The name that the certificate of the server at `host` must hold."""
        return self._trust.server_name or host

    async def reload(self) -> bool:
        """Read the files again; whether they are in use now."""
        return await self._read.reload()

    def failed(self, error: ssl.SSLError) -> None:
        """Tell why a handshake failed."""
        self._tell(error)


class Reread:
    """A context whose files change: that of the last that could be used. They are read at the first use, since the
    system's authorities alone take 50 ms, or `at_once`."""

    def __init__(self, make: Callable[[], ssl.SSLContext], *, at_once: bool = False) -> None:
        self._make = make
        self._latest = make() if at_once else None

    @property
    def context(self) -> ssl.SSLContext:
        """The latest."""
        if self._latest is None:
            self._latest = self._make()
        return self._latest

    async def reload(self) -> bool:
        """Read the files again; whether they are in use now: bad ones are told and change nothing."""
        if self._latest is None:
            return True
        try:
            self._latest = await on_daemon_thread(self._make, within_s=limits.READ_S)
        except (UsageError, TimeoutError) as error:
            log.error("reload: %s: what was read before stays", error)
            return False
        return True


class Rotating(ssl.SSLContext):
    """What a listener is given for good: each new connection takes the latest context, at most
    `limits.TLS_HANDSHAKES` of them being in their handshakes."""

    _latest: Reread
    _begun: "WeakSet[_Handshake]"
    _tell: "_Teller"

    @classmethod
    def of(cls, latest: Reread) -> "Rotating":
        """The context for a listener; `latest` is one of `presenting`."""
        context = cls(ssl.PROTOCOL_TLS_SERVER)
        context._latest, context._begun, context._tell = latest, WeakSet(), _Teller("a client's TLS handshake failed")
        return context

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """As the library's: what the event loop calls to begin a handshake."""
        if len(self._begun) >= limits.TLS_HANDSHAKES:
            raise ConnectionAbortedError("too many handshakes at a time")
        made = self._latest.context.wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        if isinstance(made, _Handshake):
            made.on_end = self._ended
            self._begun.add(made)
        return made

    def _ended(self, handshake: "_Handshake", error: ssl.SSLError | None) -> None:
        self._begun.discard(handshake)
        if error is not None:
            self._tell(error)


class _Handshake(ssl.SSLObject):
    """Tells how a client's handshake ended, which the event loop keeps to itself."""

    on_end: Callable[["_Handshake", ssl.SSLError | None], None]

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except _AGAIN:
            raise
        except ssl.SSLError as error:
            self.on_end(self, error)
            raise
        self.on_end(self, None)


def _telling(context: ssl.SSLContext) -> ssl.SSLContext:
    context.sslobject_class = _Handshake
    return context


class _Teller:
    """Writes why handshakes fail into the log, each reason once."""

    def __init__(self, words: str) -> None:
        self._words = words
        self._told: set[str] = set()

    def __call__(self, error: ssl.SSLError) -> None:
        why = reason(error)
        if why not in self._told and len(self._told) < limits.TLS_TOLD:
            self._told.add(why)
            log.warning("%s: %s (told once)", self._words, why)
