"""The certificates of `tests/data/sidecar/tls`, and TLS from outside: blocking sockets, so that every end is seen."""

import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

from sidecar.transport.tls import Presented

FOLDER = Path(__file__).parents[1] / "data/sidecar/tls"
AUTHORITY, STRANGER = str(FOLDER / "authority.pem"), str(FOLDER / "stranger.pem")
PATIENT_S = 20.0


def certificate(name: str) -> str:
    return str(FOLDER / f"{name}.pem")


def key(name: str) -> str:
    return str(FOLDER / f"{name}.key")


def presented(name: str = "server", *, client_ca: str | None = None) -> Presented:
    """What a listener shows; `name` is one of the folder's."""
    return Presented(certificate(name), key(name), client_ca)


def client_context(shown: str | None = None, *, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
    """How a client believes our authority, and what certificate it shows, if any."""
    context = ssl.create_default_context(cafile=AUTHORITY)
    context.maximum_version = version
    if shown is not None:
        context.load_cert_chain(certificate(shown), key(shown))
    return context


def server_context(name: str = "server", *, asks_clients: bool = False) -> ssl.SSLContext:
    """For a server of a test."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate(name), key(name))
    if asks_clients:
        context.load_verify_locations(AUTHORITY)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@contextlib.contextmanager
def connected(port: int, context: ssl.SSLContext | None = None) -> Iterator[ssl.SSLSocket]:
    """A client's connection over TLS, to which an end without a goodbye is an error."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=PATIENT_S) as plain,
        (context or client_context()).wrap_socket(
            plain, server_hostname="localhost", suppress_ragged_eofs=False
        ) as made,
    ):
        yield made


def read_to_the_end(made: ssl.SSLSocket) -> tuple[bytes, bool]:
    """All that comes, and whether a goodbye ended it."""
    data = b""
    try:
        while more := made.recv(1 << 16):
            data += more
    except (ssl.SSLError, ConnectionError):
        return data, False
    return data, True


def name_shown(port: int) -> str:
    """The common name in the certificate that a new connection is shown."""
    with connected(port) as made:
        shown = made.getpeercert()
    assert shown is not None
    return str(dict(pair for part in shown["subject"] for pair in part)["commonName"])
