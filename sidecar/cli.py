"""`firsttoken sidecar`: the command line, and the environment behind each flag.

A flag wins over its environment variable `FIRSTTOKEN_<FLAG>`, that over the default; the standard `OTEL_*` variables
say where telemetry goes. Exit codes: 0 ended by a signal, 1 its workers do not start, 2 usage or bad input, with one
line on stderr saying what, where and what would be right. The rooms behind are imported once the line is understood.
"""

import argparse
import os
import signal
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

from sidecar import limits, log, settings
from sidecar.settings import UsageError
from slo.signals import CLASS_HEADER

if TYPE_CHECKING:
    from sidecar.configuration.options import Options

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
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to read again, it must not be the end
    import asyncio

    import uvloop

    from sidecar.serving.lifecycle import tell_loop_faults
    from sidecar.serving.scrape_only import ScrapeOnly
    from sidecar.serving.service import Sidecar
    from sidecar.transport.listener import ListenError
    from sidecar.workers.workers import Workers, WorkersError

    async def run() -> None:
        tell_loop_faults()
        serving = Workers if options.workers > 1 else Sidecar
        attach = ScrapeOnly if options.upstream is None else serving
        await attach(options, asyncio.get_running_loop()).run()

    try:
        uvloop.run(run())
    except (ListenError, UsageError) as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2
    except WorkersError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 1
    return 0


def parser(environ: Mapping[str, str]) -> argparse.ArgumentParser:
    """The flags; a default is the environment's where it has one."""
    flags = _Parser(prog=PROGRAM, description="Streaming reverse proxy that measures an LLM server beside its bytes.")

    def variable(name: str) -> str:
        return "FIRSTTOKEN_" + name.upper().replace("-", "_")

    def flag(name: str, default: str | None, meaning: str, metavar: str = "X") -> None:
        value, shown = environ.get(variable(name), default), f" (default {default})" if default else ""
        flags.add_argument(f"--{name}", default=value, metavar=metavar, help=meaning + shown)

    def switch(name: str, meaning: str) -> None:
        on = settings.switch(variable(name), environ.get(variable(name), ""))
        flags.add_argument(f"--{name}", action="store_true", default=on, help=meaning)

    flag("upstream", None, "the server to stand before, also unix:/PATH; without one only --scrape is read", "URL")
    flag("listen", "127.0.0.1:8001", "address of the proxy, also unix:/PATH", "HOST:PORT")
    flag("admin", "127.0.0.1:9464", "address of /metrics, /healthz and /readyz, also unix:/PATH", "HOST:PORT")
    flags.add_argument(
        "--slo",
        action="append",
        metavar="FILE",
        help="slo.yaml, or a folder of them; may be repeated (default ./slo.yaml, if there is one)",
    )
    flag("service", None, "service.name; else OTEL_SERVICE_NAME, else the sole service of the spec", "NAME")
    flag("engine", "auto", "what the server is", "NAME")
    flag("scrape", None, "metrics page of the engine (default the upstream's own, if known); off reads none", "URL")
    flag("scrape-interval", f"{limits.SCRAPE_INTERVAL_S:g}", "seconds between two reads of that page", "SECONDS")
    flag("otlp-endpoint", None, "base URL for OTLP; else OTEL_EXPORTER_OTLP_ENDPOINT, else nothing is sent", "URL")
    flag("gpu", "auto", "read GPUs through NVML where there are any, those of CUDA_VISIBLE_DEVICES if set", "auto|off")
    flag("inject-usage", "auto", "ask the server for token counts and hide them from who did not ask", "auto|on|off")
    flag(
        "shed", "shadow", "refuse streams that would wait past their TTFT threshold, or only say which", "shadow|on|off"
    )
    flag("sample", "1.0", "share of spans exported; requests that broke an objective always are", "RATIO")
    flag("host-header", "keep", "keep the client's Host, or send the upstream's", "keep|upstream")
    flag("class-header", CLASS_HEADER, "header that names a class, from loopback or with the token", "NAME")
    flag("max-models", str(limits.MAX_MODELS), "models with a label of their own; the rest are `other`", "N")
    flag("max-body", str(limits.MAX_BODY_BYTES), "largest request body in bytes", "BYTES")
    flag("on-disconnect", "cancel", "when a client leaves: cancel at the server or let its answer end", "cancel|drain")
    flag("workers", "1", "processes that share the requests behind one admin address, where all are summed up", "N")
    flag("connect-timeout", f"{limits.CONNECT_S:g}", "seconds to connect to the upstream", "SECONDS")
    flag("drain-timeout", f"{limits.DRAIN_S:g}", "seconds that requests in flight have after SIGTERM", "SECONDS")
    flag("token-file", None, "file with the token that a non-loopback admin address asks for", "FILE")
    switch("insecure", "allow a non-loopback admin address without a token")
    flag("tls-cert", None, "certificate for clients, with what leads to its authority (PEM)", "FILE")
    flag("tls-key", None, "its key, without a password (PEM)", "FILE")
    flag("tls-client-ca", None, "authorities that a client's own certificate must come from (PEM)", "FILE")
    flag("upstream-ca", None, "authorities of the upstream's certificate (PEM; default the system's)", "FILE")
    flag("upstream-cert", None, "certificate of our own for an upstream that asks for one (PEM)", "FILE")
    flag("upstream-key", None, "its key, without a password (PEM)", "FILE")
    flag("upstream-server-name", None, "name in the upstream's certificate (default its host)", "NAME")
    switch("upstream-insecure", "believe the upstream whatever its certificate says")
    switch("watch-slo", "look at slo.yaml and the certificates every 5 s, and reload as SIGHUP does")
    flag("log-level", "info", "debug, info, warning or error", "LEVEL")
    flag("log-format", "text", "text or json", "FORMAT")
    flags.add_argument("--version", action="version", version=f"firsttoken {settings.version()}")
    return flags


def read(argv: list[str], environ: Mapping[str, str]) -> "Options":
    """The options that flags, environment and files give. Raises UsageError."""
    given = parser(environ).parse_args(argv)
    log.set_up(PROGRAM, level=given.log_level, form=given.log_format)

    from sidecar.configuration.options import options_of

    return options_of(given, environ)
