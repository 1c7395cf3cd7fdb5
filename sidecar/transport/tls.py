"""TLS contexts from files: what is presented to clients, and which server is believed to be the one behind.

To clients: TLS 1.2 and later, HTTP/1.1 by ALPN, a certificate with its key from PEM files and, where wanted, an
authority that the clients' own certificates must come from. Of the server: its certificate must lead to an authority
that the system trusts (`SSL_CERT_FILE` and `SSL_CERT_DIR` say otherwise) or to one of a file, and must name it. To a
server that asks who we are, a certificate of our own.

A file that cannot be used is a `UsageError`, which names the flag that gave it.
"""

import ssl
from dataclasses import dataclass

from sidecar.settings import UsageError, readable

ALPN = ("http/1.1",)


@dataclass(frozen=True, slots=True)
class Presented:
    """The files of what clients are shown, and of the authority that they are asked for, if any."""

    certificate: str
    key: str
    client_ca: str | None = None


@dataclass(frozen=True, slots=True)
class Trust:
    """How the server behind is told from others, and what it is shown if it asks. `ca` None: by the system's
    authorities; `server_name` None: by the host of its URL; `certificate` and `key`, both or neither: our own."""

    ca: str | None = None
    server_name: str | None = None
    insecure: bool = False
    certificate: str | None = None
    key: str | None = None


def presenting(files: Presented) -> ssl.SSLContext:
    """The context for clients that these files make; UsageError says which file cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(list(ALPN))
    _add_pair(context, "--tls-cert", files.certificate, "--tls-key", files.key)
    if files.client_ca is not None:
        _add_authorities(context, "--tls-client-ca", files.client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def believing(trust: Trust) -> ssl.SSLContext:
    """The context for connections to the server; UsageError says which file cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(list(ALPN))
    if trust.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif trust.ca is None:
        context.load_default_certs()
    else:
        _add_authorities(context, "--upstream-ca", trust.ca)
    if trust.certificate is not None and trust.key is not None:
        _add_pair(context, "--upstream-cert", trust.certificate, "--upstream-key", trust.key)
    return context


def reason(error: ssl.SSLError) -> str:
    """Why a handshake or a file failed, in a few words that hold nothing of either side's."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return (getattr(error, "reason", None) or type(error).__name__).lower().replace("_", " ")


def _add_authorities(context: ssl.SSLContext, flag: str, file: str) -> None:
    readable(f"{flag} {file}", file)
    try:
        context.load_verify_locations(file)
    except ssl.SSLError as error:
        raise UsageError(f"{flag} {file} cannot be used ({reason(error)}): give certificates as PEM") from None


def _add_pair(context: ssl.SSLContext, certificate_flag: str, certificate: str, key_flag: str, key: str) -> None:
    """A certificate of our own with its key."""
    shown = f"{certificate_flag} {certificate}", f"{key_flag} {key}"
    readable(shown[0], certificate)
    readable(shown[1], key)
    try:
        context.load_cert_chain(certificate, key, password=lambda: _no_password(shown[1]))
    except ssl.SSLError as error:
        pair = " and ".join(shown)
        if error.reason == "KEY_VALUES_MISMATCH":
            raise UsageError(f"{pair} do not belong together: give the certificate's own key") from None
        right = "give PEM files, the certificate first in its own, then those that lead to its authority"
        raise UsageError(f"{pair} cannot be used ({reason(error)}): {right}") from None


def _no_password(shown: str) -> str:
    raise UsageError(f"{shown} asks for a password: give a key without one, in a file that only we can read")
