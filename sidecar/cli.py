"""`firsttoken sidecar`: the command line, and the environment behind each flag.

A flag wins over its environment variable `FIRSTTOKEN_<FLAG>`, that over the default; the standard `OTEL_*` variables
say where telemetry goes. Exit codes: 0 ended by a signal, 2 usage or bad input, with one line on stderr saying what,
where and what would be right. The rooms behind are imported only once the line is understood.
"""

import argparse
import json
import logging
import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

from sidecar import limits
from sidecar.settings import UsageError, readable, version
from sidecar.settings import address as _address
from sidecar.settings import load as _load
from sidecar.settings import number as _number
from sidecar.settings import service as _service
from sidecar.settings import spec_paths as _spec_paths
from sidecar.settings import token as _token

if TYPE_CHECKING:
    from sidecar.otlp_settings import ExportSettings
    from sidecar.service import Options

PROGRAM = "firsttoken sidecar"


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

    from sidecar.life import ListenError
    from sidecar.scrape_only import ScrapeOnly
    from sidecar.service import Sidecar

    async def life() -> None:
        attach = Sidecar if options.upstream is not None else ScrapeOnly
        await attach(options, asyncio.get_running_loop()).run()

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

    flag("upstream", None, "the server to stand before; without one only --scrape is read", "URL")
    flag("listen", "127.0.0.1:8001", "address of the proxy", "HOST:PORT")
    flag("admin", "127.0.0.1:9464", "address of /metrics, /healthz and /readyz", "HOST:PORT")
    flags.add_argument("--slo", action="append", metavar="FILE", help="slo.yaml, or a folder of them; may be repeated")
    flag("service", None, "service.name; else OTEL_SERVICE_NAME, else the sole service of the spec", "NAME")
    flag("engine", "auto", "what the server is", "NAME")
    flag("scrape", None, "metrics page of the engine (default the upstream's own, if known); off reads none", "URL")
    flag("scrape-interval", f"{limits.SCRAPE_INTERVAL_S:g}", "seconds between two reads of that page", "SECONDS")
    flag("otlp-endpoint", None, "base URL for OTLP; else OTEL_EXPORTER_OTLP_ENDPOINT, else nothing is sent", "URL")
    flag("gpu", "auto", "read GPUs through NVML where there are any, those of CUDA_VISIBLE_DEVICES if set", "auto|off")
    flag("inject-usage", "auto", "ask the server for token counts and hide them from who did not ask", "auto|on|off")
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


def read(argv: list[str], environ: Mapping[str, str]) -> "Options":
    """The options that flags, environment and files give. Raises UsageError."""
    given = parser(environ).parse_args(argv)
    scraped = given.scrape not in (None, "off")
    if given.upstream is None and not scraped:
        raise UsageError(
            "--upstream URL is missing: the server to stand before, as http://127.0.0.1:8000; "
            "or give --scrape URL alone, to read an engine's metrics page and pass no request"
        )
    _set_up_log(given.log_level, given.log_format)
    paths = _spec_paths(given.slo, environ)

    from sidecar import otlp_settings, scrape
    from sidecar.poller import split_url
    from sidecar.proxy import Manners
    from sidecar.service import Options, Scrape
    from sidecar.upstream import parse_target
    from sidecar.usage_policy import MODES

    try:
        upstream = None if given.upstream is None else parse_target(given.upstream)
        export = otlp_settings.read(environ, endpoint=given.otlp_endpoint)
        if scraped:
            split_url(given.scrape)
    except ValueError as error:
        raise UsageError(str(error)) from None
    _check_files(export)
    if given.engine != "auto" and given.engine not in scrape.ENGINES:
        raise UsageError(f"--engine {given.engine} is unknown: use auto or one of {', '.join(sorted(scrape.ENGINES))}")
    if upstream is None and given.engine != "auto" and scrape.ENGINES[given.engine].metrics_path is None:
        raise UsageError(f"--engine {given.engine} has no metrics page to scrape: stand before it with --upstream URL")
    if given.host_header not in ("keep", "upstream"):
        raise UsageError(f"--host-header {given.host_header} is unknown: use keep or upstream")
    if given.inject_usage not in MODES:
        raise UsageError(f"--inject-usage {given.inject_usage} is unknown: use auto, on or off")
    if given.gpu not in ("auto", "off"):
        raise UsageError(f"--gpu {given.gpu} is unknown: use auto or off")
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
            host=upstream.authority.encode() if upstream is not None and given.host_header == "upstream" else None,
            max_body_bytes=int(_number("--max-body", given.max_body, low=1)),
        ),
        class_header=given.class_header,
        max_models=int(_number("--max-models", given.max_models, low=1, high=10_000)),
        sample_ratio=_number("--sample", given.sample, low=0, high=1),
        connect_s=_number("--connect-timeout", given.connect_timeout, low=0.01),
        drain_s=_number("--drain-timeout", given.drain_timeout, low=0),
        inject_usage=given.inject_usage,
        gpu=given.gpu == "auto",
        visible_gpus=environ.get("CUDA_VISIBLE_DEVICES"),
        admin_token=_token(given.token_file, _address("--admin", given.admin), insecure=given.insecure),
    )


def _check_files(export: "ExportSettings") -> None:
    for lane in filter(None, (export.traces, export.metrics)):
        readable("OTEL_EXPORTER_OTLP_CERTIFICATE", lane.certificate)
        readable("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", lane.client_certificate)
        readable("OTEL_EXPORTER_OTLP_CLIENT_KEY", lane.client_key)


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
