"""What the flags of `collector` mean: texts in, checked values out, or one line that says what would be right."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy.engine import URL

from collector.doors.address import Address, address
from collector.doors.tls import Files, Identity
from collector.errors import UnusableDatabaseError, UsageError
from collector.storage.database import database_url
from slo import objective, quantity, sight
from slo.objective import Spec
from slo.sight import Watched
from slo.words import reason

MAX_TICK_S = 60
GRPC = "127.0.0.1:4317"
"""Where OTLP gRPC is listened for unless told otherwise: the protocol's own port."""
OFF = "off"


@dataclass(frozen=True, slots=True)
class Settings:
    """All that a collector runs by. `watched` None: files are read again at SIGHUP alone; `grpc` None: no OTLP over
    gRPC; `identity` None: no TLS."""

    slo: Sequence[Path]
    watched: Watched | None
    specs: Sequence[Spec]
    database: URL
    listen: Address
    grpc: Address | None
    identity: Identity | None
    tick_s: int
    alertmanagers: Sequence[str]
    webhook: str | None
    external_url: str | None
    max_series: int
    retention_s: int
    drain_s: int
    token: str | None
    version: str


def settings(flags: argparse.Namespace, *, typed: Sequence[str]) -> Settings:
    """The settings of parsed flags; `typed` is the command line itself, where no password may stand.

    Raises `UsageError`, or `SpecError` for a faulty spec.
    """
    listen, grpc = address("--listen", flags.listen), _grpc(flags.grpc)
    token = None if flags.token_file is None else content("--token-file", flags.token_file)
    for flag, one in (("--listen", listen), ("--grpc", grpc)):
        if one is not None and token is None and not flags.insecure and not one.is_loopback:
            raise UsageError(f"{flag} {one} is beyond loopback: use --token-file FILE, or --insecure without one")
    if flags.alertmanager and flags.webhook:
        raise UsageError("--webhook: Alertmanager is told already: use one of the two, or people are told twice")
    files = [*flags.slo, *filter(None, (flags.tls_cert, flags.tls_key, flags.tls_client_ca))]
    watched = sight.watched(map(Path, files)) if flags.watch_slo else None
    return Settings(
        slo=[Path(text) for text in flags.slo],
        watched=watched,
        specs=objective.load(flags.slo),
        database=named_database(flags, typed),
        listen=listen,
        grpc=grpc,
        identity=_identity(flags),
        tick_s=tick_s(flags.tick),
        alertmanagers=[_web("--alertmanager", url, typed) for url in flags.alertmanager],
        webhook=None if flags.webhook is None else _web("--webhook", flags.webhook, typed),
        external_url=None if flags.external_url is None else _web("--external-url", flags.external_url, typed),
        max_series=_whole("--max-series", flags.max_series),
        retention_s=_seconds("--retention", flags.retention),
        drain_s=_seconds("--drain-timeout", flags.drain_timeout),
        token=token,
        version=version(),
    )


def _grpc(text: str | None) -> Address | None:
    if text is None:
        return replace(address("--grpc", GRPC), is_usual=True)
    return None if text == OFF else address("--grpc", text, or_off=f", or {OFF}")


def _identity(flags: argparse.Namespace) -> Identity | None:
    """What the listeners show by TLS. Raises `TlsError` when the files cannot be used."""
    if flags.tls_cert is None and flags.tls_key is None:
        if flags.tls_client_ca is not None:
            raise UsageError(
                "--tls-client-ca asks senders for certificates over TLS: give --tls-cert and --tls-key too"
            )
        return None
    if flags.tls_cert is None or flags.tls_key is None:
        raise UsageError("--tls-cert and --tls-key belong together: give both")
    client_ca = None if flags.tls_client_ca is None else Path(flags.tls_client_ca)
    return Identity(Files(Path(flags.tls_cert), Path(flags.tls_key), client_ca))


def switched_on(variable: str, text: str) -> bool:
    """Whether a word of the environment switches something on; an empty one does not."""
    word = text.strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("", "0", "false", "no", "off"):
        return False
    raise UsageError(f"{variable}={text}: write 1 or 0")


def tick_s(text: str) -> int:
    """A tick that divides a minute, so that minutes are made of whole ticks."""
    seconds = _seconds("--tick", text)
    if seconds > MAX_TICK_S or MAX_TICK_S % seconds:
        raise UsageError(f"--tick {text}: a minute must be made of whole ticks: use 1s, 2s, 5s, 10s, 20s, 30s or 60s")
    return seconds


def version() -> str:
    """The version of the installed distribution."""
    try:
        return metadata.version("firsttoken")
    except metadata.PackageNotFoundError:
        return "0"


def _seconds(flag: str, text: str) -> int:
    try:
        return quantity.whole_seconds(text)
    except quantity.QuantityError as error:
        raise UsageError(f"{flag}: {error}") from None


def _whole(flag: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise UsageError(f"{flag} {text}: write a whole number of 1 or more")
    return int(text)


def content(flag: str, file: str) -> str:
    """What the file that a flag names holds, without what stands around it. Raises `UsageError`."""
    try:
        text = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{flag} {file} cannot be read: {reason(error)}") from None
    if not text:
        raise UsageError(f"{flag} {file} is empty")
    return text


def named_database(flags: argparse.Namespace, typed: Sequence[str]) -> URL:
    """The database that `--database` or a file names; a password must not come from the command line. Raises
    `UsageError`."""
    named = any(word == "--database" or word.startswith("--database=") for word in typed)
    if flags.database_file is not None and named:
        raise UsageError("--database and --database-file both name the database: use one of them")
    try:
        url = database_url(flags.database) if flags.database_file is None else _secret_url(flags.database_file)
    except UnusableDatabaseError as error:
        raise UsageError(f"--database: {error}") from error
    if url.password is not None and named:
        raise UsageError("--database holds a password: put the URL into a file (--database-file) or the environment")
    return url


def _secret_url(file: str) -> URL:
    """The URL that a file holds. What is none may be a password all the same, and is not shown."""
    text = content("--database-file", file)
    if "://" not in text or len(text.split()) > 1:
        raise UsageError(f"--database-file {file}: it must hold one URL alone, as postgresql://user:password@host/name")
    return database_url(text)


def _web(flag: str, text: str, typed: Sequence[str]) -> str:
    """A URL of the web; credentials in it must not come from the command line."""
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good:
        raise UsageError(f"{flag} {text}: write a URL, as http://127.0.0.1:9093")
    if parts.password is not None and any(text in word for word in typed):
        raise UsageError(f"{flag} holds a password: give it by the environment, FIRSTTOKEN_{flag[2:].upper()}")
    return text
