"""What the command line decided: the flags' words, their environment and the files they name, as one frozen value.

Whatever is wrong with them is a `UsageError`, found before anything has begun.
"""

import argparse
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from sidecar import limits, otlp_settings, settings
from sidecar.address import Address, UnixPath
from sidecar.configuration import tls_options
from sidecar.configuration.plan import Plan
from sidecar.engine import scrape
from sidecar.guarding.queue_guard import SHEDDING, Shedding
from sidecar.otlp_settings import ExportSettings
from sidecar.polling.poller import split_url
from sidecar.relaying.proxy import Manners
from sidecar.settings import UsageError
from sidecar.transport.tls import Presented, Trust
from sidecar.transport.upstream import Target, parse_target
from sidecar.usage.usage_policy import MODES, Mode
from slo.objective import Spec
from slo.sight import Watched, watched
from slo.signals import CLASS_HEADER

T = TypeVar("T")

_FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
_THIS_MACHINE = frozenset(("127.0.0.1", "::1", "localhost", "0.0.0.0", "::"))  # noqa: S104  words, not an address


@dataclass(frozen=True, slots=True)
class Scrape:
    """Whether and how the engine's own metrics are read; `url` None is the server's own page."""

    on: bool = True
    url: str | None = None
    engine: str = "auto"
    interval_s: float = limits.SCRAPE_INTERVAL_S


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line decided. `upstream` None: no request passes, the engine's page alone is read."""

    upstream: Target | None
    listen: Address
    admin: Address
    service: str
    version: str
    export: ExportSettings
    spec: Spec | None = None
    spec_paths: tuple[Path, ...] = ()
    scrape: Scrape = field(default_factory=Scrape)
    manners: Manners = field(default_factory=Manners)
    class_header: str = CLASS_HEADER
    max_models: int = limits.MAX_MODELS
    sample_ratio: float = 1.0
    connect_s: float = limits.CONNECT_S
    drain_s: float = limits.DRAIN_S
    admin_token: str | None = None
    inject_usage: Mode = "auto"
    shed: Shedding = "shadow"
    gpu: bool = True
    visible_gpus: str | None = None
    presented: Presented | None = None
    trust: Trust = field(default_factory=Trust)
    watched: Watched | None = None
    workers: int = 1
    log_level: str = "info"
    log_format: str = "text"

    def plan(self) -> Plan:
        """The telemetry that this makes, as a new instance."""
        return Plan(
            service=self.service,
            version=self.version,
            source="engine" if self.upstream is None else "proxy",
            export=self.export,
            spec=self.spec,
            spec_paths=self.spec_paths,
            class_header=self.class_header,
            max_models=self.max_models,
            sample_ratio=self.sample_ratio,
            shed=self.shed,
            scrape=self.scrape.on,
            gpu=self.gpu,
            visible_gpus=self.visible_gpus,
        )


def options_of(given: argparse.Namespace, environ: Mapping[str, str]) -> Options:
    """The options that flags, environment and files give. Raises UsageError."""
    upstream, scraped = _places(given)
    _check_words(given)
    if not _FIELD_NAME.fullmatch(given.class_header):
        raise UsageError(f"--class-header {given.class_header}: no header can have this name: as {CLASS_HEADER}")
    listen, admin = settings.address("--listen", given.listen), settings.address("--admin", given.admin)
    for flag, address in (("--listen", listen), ("--admin", admin)):
        if upstream is not None and _is_at(address, upstream):
            raise UsageError(f"{flag} {address} is the --upstream itself, and would ask itself: choose another address")
    paths = settings.spec_paths(given.slo, environ)
    files = _watched(given, paths)
    named = bool(given.slo or environ.get("FIRSTTOKEN_SLO"))
    service, spec = settings.service(
        given.service or environ.get("OTEL_SERVICE_NAME"), settings.load(paths), strict=named
    )
    token = settings.token(given.token_file, admin, insecure=given.insecure)
    return Options(
        upstream=upstream,
        listen=listen,
        admin=admin,
        service=service,
        version=settings.version(),
        export=_export(given, environ),
        spec=spec,
        spec_paths=tuple(paths),
        scrape=scraped,
        manners=Manners(
            host=upstream.authority.encode() if upstream is not None and given.host_header == "upstream" else None,
            drain_disconnected=given.on_disconnect == "drain",
            token=None if token is None else token.encode(),
            max_body_bytes=_whole("--max-body", given.max_body),
        ),
        class_header=given.class_header,
        max_models=_whole("--max-models", given.max_models, high=10_000),
        sample_ratio=settings.number("--sample", given.sample, low=0, high=1),
        connect_s=settings.number("--connect-timeout", given.connect_timeout, low=0.01),
        drain_s=settings.number("--drain-timeout", given.drain_timeout, low=0),
        inject_usage=given.inject_usage,
        shed=given.shed,
        gpu=given.gpu == "auto",
        visible_gpus=environ.get("CUDA_VISIBLE_DEVICES"),
        admin_token=token,
        presented=tls_options.presented(given, listen),
        trust=tls_options.trust(given, environ, https=_is_https(given.upstream) or _is_https(scraped.url)),
        watched=files,
        workers=_workers(given.workers, upstream),
        log_level=given.log_level,
        log_format=given.log_format,
    )


def _places(given: argparse.Namespace) -> tuple[Target | None, Scrape]:
    """The server to stand before, and the page to read."""
    named = None if given.scrape == "off" else given.scrape
    if given.upstream is None and named is None:
        raise UsageError(
            "--upstream URL is missing: the server to stand before, as http://127.0.0.1:8000; "
            "or give --scrape URL alone, to read an engine's metrics page and pass no request"
        )
    upstream = None if given.upstream is None else _parsed("--upstream", parse_target, given.upstream)
    if named is not None:
        _parsed("--scrape", split_url, named)
    if given.engine != scrape.AUTO and given.engine not in scrape.ENGINES:
        raise UsageError(f"--engine {given.engine} is unknown: use auto or one of {', '.join(sorted(scrape.ENGINES))}")
    if upstream is None and given.engine != scrape.AUTO and scrape.ENGINES[given.engine].metrics_path is None:
        raise UsageError(f"--engine {given.engine} has no metrics page to scrape: stand before it with --upstream URL")
    interval_s = settings.number("--scrape-interval", given.scrape_interval, low=0.1)
    return upstream, Scrape(on=given.scrape != "off", url=named, engine=given.engine, interval_s=interval_s)


def _is_at(address: Address, target: Target) -> bool:
    """Whether a server's URL leads to an address of our own, as far as their words tell."""
    if isinstance(address, UnixPath):
        return address == target.unix
    same_host = address.host == target.host or {address.host, target.host} <= _THIS_MACHINE
    return target.unix is None and address.port == target.port != 0 and same_host


def _parsed(flag: str, parse: Callable[[str], T], word: str) -> T:
    try:
        return parse(word)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from None


def _is_https(url: str | None) -> bool:
    return url is not None and url.lower().startswith("https:")


def _watched(given: argparse.Namespace, specs: list[Path]) -> Watched | None:
    """The files that `--watch-slo` looks at: all that a reload reads."""
    if not given.watch_slo:
        return None
    if not specs:
        raise UsageError("--watch-slo: there is no slo.yaml here: name the one to watch with --slo FILE")
    clients = (given.tls_cert, given.tls_key, given.tls_client_ca)
    certificates = (*clients, given.upstream_ca, given.upstream_cert, given.upstream_key)
    return watched([*specs, *(Path(name) for name in certificates if name is not None)])


def _whole(flag: str, word: str, *, high: float = 1e15) -> int:
    """A whole number from 1 to `high`."""
    number = settings.number(flag, word, low=1, high=high)
    if not number.is_integer():
        raise UsageError(f"{flag} {word}: write a whole number")
    return int(number)


def _workers(word: str, upstream: Target | None) -> int:
    count = _whole("--workers", word, high=limits.MAX_WORKERS)
    if count > 1 and upstream is None:
        raise UsageError("--workers share out requests, and without --upstream URL there are none: leave it out")
    return count


def _check_words(given: argparse.Namespace) -> None:
    """Flags that take one of a few words."""
    for flag, word, right in (
        ("--host-header", given.host_header, ("keep", "upstream")),
        ("--inject-usage", given.inject_usage, MODES),
        ("--shed", given.shed, SHEDDING),
        ("--on-disconnect", given.on_disconnect, ("cancel", "drain")),
        ("--gpu", given.gpu, ("auto", "off")),
    ):
        if word not in right:
            raise UsageError(f"{flag} {word} is unknown: use {', '.join(right[:-1])} or {right[-1]}")


def _export(given: argparse.Namespace, environ: Mapping[str, str]) -> ExportSettings:
    try:
        export = otlp_settings.read(environ, endpoint=given.otlp_endpoint)
    except ValueError as error:
        raise UsageError(str(error)) from None
    for lane in filter(None, (export.traces, export.metrics)):
        for variable, file in (
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", lane.certificate),
            ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", lane.client_certificate),
            ("OTEL_EXPORTER_OTLP_CLIENT_KEY", lane.client_key),
        ):
            if file is not None:
                settings.readable(f"{variable}={file}", file)
    return export
