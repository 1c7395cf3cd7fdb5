"""TLS from files, for both listeners, renewed while they run.

TLS 1.2 and later: a certificate with its key from PEM files and, where wanted, an authority that the senders' own
certificates must come from. Files that cannot be used raise `TlsError`, which names the flag that gave them; read
again, they change nothing then. A connection keeps what its handshake found.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakSet

from collector.errors import TlsError

MAX_HANDSHAKES = 256
_AGAIN = (ssl.SSLWantReadError, ssl.SSLWantWriteError)


@dataclass(frozen=True, slots=True)
class Files:
    """Where certificate and key stand, and the authority that senders are asked for, if any."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class Pem:
    """What stood in the files; `client_ca` None: senders are asked for no certificate."""

    certificate: bytes
    key: bytes
    client_ca: bytes | None = None


class Identity:
    """What both listeners show. Raises `TlsError` when the files cannot be used."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.pem, self.latest = _read(files)

    def reload(self) -> None:
        """Read the files again, for connections to come. Raises `TlsError`, and keeps what it had."""
        self.pem, self.latest = _read(self._files)

    def context(self) -> ssl.SSLContext:
        """For an event loop's listener, which keeps one context for good: each connection begins by the latest."""
        return _Rotating.of(self)


def _read(files: Files) -> tuple[Pem, ssl.SSLContext]:
    client_ca = None if files.client_ca is None else _content("--tls-client-ca", files.client_ca)
    pem = Pem(_content("--tls-cert", files.certificate), _content("--tls-key", files.key), client_ca)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslobject_class = _Handshake
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    _load_pair(context, files)
    if files.client_ca is not None:
        _load_authority(context, files.client_ca)
    return pem, context


def _load_pair(context: ssl.SSLContext, files: Files) -> None:
    pair = f"--tls-cert {files.certificate} and --tls-key {files.key}"
    try:
        context.load_cert_chain(files.certificate, files.key, password=lambda: _no_password(files.key))
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise TlsError(f"{pair} do not belong together: give the certificate's own key") from None
        right = "give PEM files, the certificate first in its own, then those that lead to its authority"
        raise TlsError(f"{pair} cannot be used ({_reason(error)}): {right}") from None


def _load_authority(context: ssl.SSLContext, file: Path) -> None:
    try:
        context.load_verify_locations(file)
    except ssl.SSLError as error:
        message = f"--tls-client-ca {file} cannot be used ({_reason(error)}): give certificates as PEM"
        raise TlsError(message) from None
    context.verify_mode = ssl.CERT_REQUIRED


def _content(flag: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise TlsError(f"{flag} {file} cannot be read: {error.strerror or error}") from None


def _no_password(file: Path) -> str:
    raise TlsError(f"--tls-key {file} asks for a password: give a key without one, in a file that only we can read")


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or type(error).__name__).lower().replace("_", " ")


class _Rotating(ssl.SSLContext):
    """Begins each connection by the identity's latest context, at most `MAX_HANDSHAKES` of them at a time: until its
    handshake is done, no other limit sees a connection."""

    _identity: Identity
    _begun: "WeakSet[_Handshake]"

    @classmethod
    def of(cls, identity: Identity) -> "_Rotating":
        context = cls(ssl.PROTOCOL_TLS_SERVER)
        context._identity, context._begun = identity, WeakSet()
        return context

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """What the event loop calls to begin a handshake."""
        if len(self._begun) >= MAX_HANDSHAKES:
            raise ConnectionAbortedError("too many handshakes at a time")
        made = self._identity.latest.wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        assert isinstance(made, _Handshake)
        made.begun = self._begun
        self._begun.add(made)
        return made


class _Handshake(ssl.SSLObject):
    """Leaves the set of those that are under way once it ended, well or not."""

    begun: "WeakSet[_Handshake]"

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except _AGAIN:
            raise
        except ssl.SSLError:
            self.begun.discard(self)
            raise
        self.begun.discard(self)
