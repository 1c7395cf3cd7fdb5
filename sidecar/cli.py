"""`firsttoken sidecar`: the command line, and the environment behind each flag.

A flag wins over its environment variable `FIRSTTOKEN_<FLAG>`, that over the default; the standard `OTEL_*` variables
say where telemetry goes. Exit codes: 0 ended by a signal, 2 usage or bad input, with one line on stderr saying what,
where and what would be right. The rooms behind are imported only once the line is understood.
"""

import argparse
import importlib.metadata
import json
import logging
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from sidecar import limits

if TYPE_CHECKING:
    from sidecar.service import Address, Options
    from slo.objective import Spec

PROGRAM = "firsttoken sidecar"
DEFAULT_SLO = Path("slo.yaml")
DEFAULT_SERVICE = "unknown_service"
LOOPBACK = ("localhost", "::1")


class UsageError(Exception):
    """Bad input; the message is one line for the user."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {PROGRAM} --help)")


def main(argv: list[str] | None = None) -> int:
    """Run the sidecar until a signal; the exit code."""
    try:
        options = read(sys.argv[1:] if argv is None else argv, os.environ)
    except UsageError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2
    return serve(options)


def serve(options: "Options") -> int:
    """Run with these options; the exit code."""
    import asyncio

    import uvloop

    from sidecar.service import ListenError, Sidecar

    async def life() -> None:
        await Sidecar(options, asyncio.get_running_loop()).run()

    try:
        uvloop.run(life())
    except ListenError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2
    return 0


def parser(environ: Mapping[str, str]) -> argparse.ArgumentParser:
    """The flags; a default is the environment's where it has one."""
    flags = _Parser(prog=PROGRAM, description="Streaming reverse proxy that measures an LLM server beside its bytes.")

    def flag(name: str, default: str | None, meaning: str, metavar: str = "X") -> None:
        variable = "FIRSTTOKEN_" + name.upper().replace("-", "_")
        shown = f" (default {default})" if default else ""
        flags.add_argument(f"--{name}", default=environ.get(variable, default), metavar=metavar, help=meaning + shown)

    flag("upstream", None, "the server to stand before", "URL")
    flag("listen", "127.0.0.1:8001", "address of the proxy", "HOST:PORT")
    flag("admin", "127.0.0.1:9464", "address of /metrics, /healthz and /readyz", "HOST:PORT")
    flags.add_argument("--slo", action="append", metavar="FILE", help="slo.yaml, or a folder of them; may be repeated")
    flag("service", None, "service.name; else OTEL_SERVICE_NAME, else the sole service of the spec", "NAME")
    flag("engine", "auto", "what the server is", "NAME")
    flag("scrape", None, "metrics page of the engine (default the upstream's own, if known); off reads none", "URL")
    flag("scrape-interval", f"{limits.SCRAPE_INTERVAL_S:g}", "seconds between two reads of that page", "SECONDS")
    flag("otlp-endpoint", None, "base URL for OTLP; else OTEL_EXPORTER_OTLP_ENDPOINT, else nothing is sent", "URL")
    flag("sample", "1.0", "share of spans exported; requests that broke an objective always are", "RATIO")
    flag("host-header", "keep", "keep the client's Host, or send the upstream's", "keep|upstream")
    flag("class-header", "x-firsttoken-class", "header that names a request's class, read from loopback only", "NAME")
    flag("max-models", str(limits.MAX_MODELS), "models with a label of their own; the rest are `other`", "N")
    flag("max-body", str(limits.MAX_BODY_BYTES), "largest request body in bytes", "BYTES")
    flag("connect-timeout", f"{limits.CONNECT_S:g}", "seconds to connect to the upstream", "SECONDS")
    flag("drain-timeout", f"{limits.DRAIN_S:g}", "seconds that requests in flight have after SIGTERM", "SECONDS")
    flag("token-file", None, "file with the token that a non-loopback admin address asks for", "FILE")
    flags.add_argument("--insecure", action="store_true", help="allow a non-loopback admin address without a token")
    flag("log-level", "info", "debug, info, warning or error", "LEVEL")
    flag("log-format", "text", "text or json", "FORMAT")
    flags.add_argument("--version", action="version", version=f"firsttoken {version()}")
    return flags


def version() -> str:
    """The version of the installed distribution."""
    try:
        return importlib.metadata.version("firsttoken")
    except importlib.metadata.PackageNotFoundError:
        return "0"


def read(argv: list[str], environ: Mapping[str, str]) -> "Options":
    """The options that flags, environment and files give. Raises UsageError."""
    given = parser(environ).parse_args(argv)
    if given.upstream is None:
        raise UsageError("--upstream URL is missing: the server to stand before, as http://127.0.0.1:8000")
    _set_up_log(given.log_level, given.log_format)
    paths = _spec_paths(given.slo, environ)

    from sidecar import otlp_settings, scrape
    from sidecar.poller import split_url
    from sidecar.proxy import Manners
    from sidecar.service import Options, Scrape
    from sidecar.upstream import parse_target

    try:
        upstream = parse_target(given.upstream)
        export = otlp_settings.read(environ, endpoint=given.otlp_endpoint)
        if given.scrape not in (None, "off"):
            split_url(given.scrape)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if given.engine != "auto" and given.engine not in scrape.ENGINES:
        raise UsageError(f"--engine {given.engine} is unknown: use auto or one of {', '.join(sorted(scrape.ENGINES))}")
    if given.host_header not in ("keep", "upstream"):
        raise UsageError(f"--host-header {given.host_header} is unknown: use keep or upstream")
    named = bool(given.slo or environ.get("FIRSTTOKEN_SLO"))
    service, spec = _service(given.service or environ.get("OTEL_SERVICE_NAME"), _load(paths), strict=named)
    return Options(
        upstream=upstream,
        listen=_address("--listen", given.listen),
        admin=_address("--admin", given.admin),
        service=service,
        version=version(),
        export=export,
        spec=spec,
        spec_paths=tuple(paths),
        scrape=Scrape(
            on=given.scrape != "off",
            url=None if given.scrape == "off" else given.scrape,
            engine=given.engine,
            interval_s=_number("--scrape-interval", given.scrape_interval, low=0.1),
        ),
        manners=Manners(
            host=upstream.authority.encode() if given.host_header == "upstream" else None,
            max_body_bytes=int(_number("--max-body", given.max_body, low=1)),
        ),
        class_header=given.class_header,
        max_models=int(_number("--max-models", given.max_models, low=1, high=10_000)),
        sample_ratio=_number("--sample", given.sample, low=0, high=1),
        connect_s=_number("--connect-timeout", given.connect_timeout, low=0.01),
        drain_s=_number("--drain-timeout", given.drain_timeout, low=0),
        admin_token=_token(given.token_file, _address("--admin", given.admin), insecure=given.insecure),
    )


def _number(flag: str, value: str, *, low: float, high: float = 1e15) -> float:
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not low <= number <= high:
        bound = f"from {low:g} to {high:g}" if high < 1e15 else f"of at least {low:g}"
        raise UsageError(f"{flag} {value}: write a number {bound}")
    return number


def _address(flag: str, value: str) -> "Address":
    from sidecar.service import Address

    host, colon, port = value.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"{flag} {value}: write HOST:PORT, as 127.0.0.1:8001")
    return Address(host, int(port))


def _token(file: str | None, admin: "Address", *, insecure: bool) -> str | None:
    """The admin token. A non-loopback address needs one, or an explicit --insecure."""
    if file is not None:
        try:
            token = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--token-file {file} cannot be read: {error}") from None
        if not token:
            raise UsageError(f"--token-file {file} is empty: put the token there")
        return token
    if not insecure and admin.host not in LOOPBACK and not admin.host.startswith("127."):
        raise UsageError(f"--admin {admin} is not loopback: give --token-file FILE, or --insecure if that is meant")
    return None


def _spec_paths(named: list[str] | None, environ: Mapping[str, str]) -> list[Path]:
    """The spec's files: a missing default is no spec, a missing named one is a fault that loading reports."""
    if named is None and (value := environ.get("FIRSTTOKEN_SLO")):
        named = value.split(os.pathsep)
    if named is not None:
        return [Path(name) for name in named]
    return [DEFAULT_SLO] if DEFAULT_SLO.exists() else []


def _load(paths: list[Path]) -> "tuple[Spec, ...]":
    from slo.objective import load
    from slo.source import SpecError

    try:
        return load(paths)
    except SpecError as error:
        raise UsageError("; ".join(map(str, error.problems))) from None


def _service(name: str | None, specs: "tuple[Spec, ...]", *, strict: bool) -> "tuple[str, Spec | None]":
    """The service and its spec. `strict`: the spec was named, so that a service it does not describe is a mistake."""
    described = ", ".join(spec.service for spec in specs)
    if name is None and len(specs) > 1:
        raise UsageError(f"the spec describes several services ({described}): choose one with --service")
    if name is None:
        return (specs[0].service, specs[0]) if specs else (DEFAULT_SERVICE, None)
    spec = next((spec for spec in specs if spec.service == name), None)
    if spec is None and specs:
        message = f"service {name} is not in the spec, which describes {described}"
        if strict:
            raise UsageError(f"{message}: correct --service or --slo")
        logging.getLogger(__name__).warning("%s: nothing is judged", message)
    return name, spec


class _JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        return json.dumps({"at": stamp, "level": record.levelname.lower(), "message": record.getMessage()})


def _set_up_log(level: str, form: str) -> None:
    if level not in ("debug", "info", "warning", "error"):
        raise UsageError(f"--log-level {level} is unknown: use debug, info, warning or error")
    if form not in ("text", "json"):
        raise UsageError(f"--log-format {form} is unknown: use text or json")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _JsonLines() if form == "json" else logging.Formatter(f"{PROGRAM}: %(levelname)s: %(message)s")
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
