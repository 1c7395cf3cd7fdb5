"""What the flags of TLS decide together. Whatever is wrong, in them or in a file they name, is a `UsageError`."""

import argparse
from collections.abc import Mapping

from sidecar import settings
from sidecar.address import Address, UnixPath
from sidecar.settings import UsageError
from sidecar.transport.tls import Presented, Trust, believing, presenting


def presented(given: argparse.Namespace, listen: Address) -> Presented | None:
    """What clients are shown; None: they speak plain HTTP."""
    if given.tls_cert is None and given.tls_key is None:
        if given.tls_client_ca is not None:
            raise UsageError(
                "--tls-client-ca asks clients for certificates over TLS: give --tls-cert and --tls-key too"
            )
        return None
    if given.tls_cert is None or given.tls_key is None:
        raise UsageError("--tls-cert and --tls-key belong together: give both")
    if isinstance(listen, UnixPath):
        raise UsageError(f"--listen {listen} needs no TLS: leave out --tls-cert, or listen on HOST:PORT")
    files = Presented(given.tls_cert, given.tls_key, given.tls_client_ca)
    presenting(files)
    return files


def trust(given: argparse.Namespace, environ: Mapping[str, str], *, https: bool) -> Trust:
    """How the server is told from others; `https`: some URL of it has that scheme."""
    told = [
        flag
        for flag, value in (
            ("--upstream-ca", given.upstream_ca),
            ("--upstream-server-name", given.upstream_server_name),
            ("--upstream-insecure", given.upstream_insecure),
            ("--upstream-cert", given.upstream_cert),
            ("--upstream-key", given.upstream_key),
        )
        if value
    ]
    if told and not https:
        raise UsageError(f"{told[0]} speaks of TLS, and no URL given is https: write --upstream https://HOST")
    if given.upstream_insecure and told[0] in ("--upstream-ca", "--upstream-server-name"):
        raise UsageError(f"{told[0]} and --upstream-insecure contradict each other: leave out one of them")
    if (given.upstream_cert is None) != (given.upstream_key is None):
        raise UsageError("--upstream-cert and --upstream-key belong together: give both")
    found = Trust(
        given.upstream_ca,
        given.upstream_server_name,
        insecure=given.upstream_insecure,
        certificate=given.upstream_cert,
        key=given.upstream_key,
    )
    if found.ca is not None or found.certificate is not None:
        believing(found)
    if https and found.ca is None and not found.insecure and (file := environ.get("SSL_CERT_FILE")):
        settings.readable(f"SSL_CERT_FILE={file}", file)
    return found
