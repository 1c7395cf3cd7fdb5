"""`firsttoken collector`: the command line, and the environment behind each flag.

A flag wins over its environment variable `FIRSTTOKEN_<FLAG>`, that over the default; an empty variable counts as not
set. Exit codes: 0 ended by a signal, 2 usage or bad input, with one line on stderr that says what, where and what would
be right. Passwords come from files or the environment, never from the command line, where every user of the machine can
read them. The rooms behind are imported only once the line is understood.
"""

import argparse
import json
import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import NoReturn

from collector.clickhouse import definitions
from collector.errors import CollectorError, UsageError
from collector.options import GRPC, OFF, settings, switched_on, version
from collector.storage import ddl
from slo.flags import variable
from slo.source import SpecError

PROGRAM = "firsttoken collector"
LEVELS = ("debug", "info", "warning", "error")
FORMS = ("text", "json")
CLICKHOUSE = "clickhouse"
_TALKATIVE = ("alembic", "httpx", "httpcore", "sqlalchemy", "uvicorn", "asyncio")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {PROGRAM} --help)")


def main(argv: list[str] | None = None) -> int:
    """Collect until a signal, print the schema, or mirror a database; the exit code."""
    typed = sys.argv[1:] if argv is None else argv
    if typed[:1] == ["mirror"]:
        from collector.clickhouse.mirror_cli import main as mirror

        return mirror(list(typed[1:]))
    try:
        return _print_schema(typed[1:]) if typed[:1] == ["schema"] else _collect(typed)
    except SpecError as error:
        print(f"{PROGRAM}: {'; '.join(map(str, error.problems))}", file=sys.stderr)
    except CollectorError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
    return 2


def _collect(typed: Sequence[str]) -> int:
    flags = parser(os.environ).parse_args(typed)
    _log_to_stderr(flags.log_level, flags.log_format)
    wanted = settings(flags, typed=typed)

    from collector.running import run

    run(wanted)
    return 0


def _print_schema(typed: Sequence[str]) -> int:
    flags = _Parser(prog=f"{PROGRAM} schema", description="Print the statements that make the tables.")
    dialects = sorted({*ddl.DIALECTS, CLICKHOUSE})
    flags.add_argument("--dialect", choices=dialects, default="sqlite", help="default %(default)s")
    flags.add_argument("--cluster", metavar="NAME", help="replicated and in shards, of a cluster of ClickHouse")
    wanted = flags.parse_args(typed)
    if wanted.cluster is not None and wanted.dialect != CLICKHOUSE:
        raise UsageError(f"--cluster is of ClickHouse: use --dialect {CLICKHOUSE}")
    print(definitions.script(wanted.cluster) if wanted.dialect == CLICKHOUSE else ddl.ddl(wanted.dialect))
    return 0


def parser(environ: Mapping[str, str]) -> argparse.ArgumentParser:
    """The flags; a default is the environment's where it has one."""
    flags = _Parser(
        prog=PROGRAM,
        description="OTLP in, SQL out: rolling percentiles, burn rates, budgets, a status page, one page an incident.",
        epilog=f"{PROGRAM} schema --dialect sqlite|postgresql|clickhouse prints the tables. {PROGRAM} mirror sends "
        "what a database counted to ClickHouse.",
    )

    def flag(name: str, default: str | None, meaning: str, metavar: str) -> None:
        shown = f" (default {default})" if default else ""
        value = environ.get(variable(name)) or default
        flags.add_argument(f"--{name}", default=value, metavar=metavar, help=meaning + shown)

    def several(name: str, default: list[str], meaning: str, metavar: str, *, parted_by: str) -> None:
        value = environ.get(variable(name))
        usual = [part.strip() for part in value.split(parted_by)] if value else default
        flags.add_argument(
            f"--{name}", action=_Several, default=usual, metavar=metavar, help=f"{meaning}; may be repeated"
        )

    def switch(name: str, meaning: str) -> None:
        is_on = switched_on(variable(name), environ.get(variable(name), ""))
        flags.add_argument(f"--{name}", action="store_true", default=is_on, help=meaning)

    several("slo", ["slo.yaml"], "slo.yaml, or a folder of such (default ./slo.yaml)", "FILE", parted_by=os.pathsep)
    flag("database", "sqlite:///firsttoken.db", "a path, or the URL of an SQLite or PostgreSQL database", "URL")
    flag("database-file", None, "file that holds the database's URL, where that has a password", "FILE")
    flag("listen", "127.0.0.1:4318", "address of OTLP/HTTP, /metrics and the status page", "HOST:PORT")
    flag("grpc", None, f"address of OTLP/gRPC, or {OFF} (default {GRPC}; done without where it is taken)", "HOST:PORT")
    flag("tick", "10s", "how often everything is evaluated; also the finest step kept", "TIME")
    several("alertmanager", [], "Alertmanager to tell of alerts", "URL", parted_by=",")
    flag("webhook", None, "where to POST alerts in Alertmanager's webhook form, without an Alertmanager", "URL")
    flag("external-url", None, "where people reach this collector, for links in alerts", "URL")
    flag("max-series", "10000", "series kept apart; data of further ones goes to model `other`", "N")
    flag("retention", "35d", "how long counts are kept, if that is longer than every window", "TIME")
    flag("drain-timeout", "10s", "how long requests in hand may take after SIGTERM", "TIME")
    flag("token-file", None, "file with the token that every request must carry", "FILE")
    switch("insecure", "listen beyond loopback without a token")
    flag("tls-cert", None, "certificate of both listeners, with what leads to its authority (PEM)", "FILE")
    flag("tls-key", None, "its key, without a password (PEM)", "FILE")
    flag("tls-client-ca", None, "authorities that a client's own certificate must come from (PEM)", "FILE")
    switch("watch-slo", "look at slo.yaml and the certificates every 5 s, and reload as SIGHUP does")
    flag("log-level", "info", ", ".join(LEVELS), "LEVEL")
    flag("log-format", "text", " or ".join(FORMS), "FORM")
    flags.add_argument("--version", action="version", version=f"firsttoken {version()}")
    return flags


class _Several(argparse.Action):
    """Collects values; the first one typed replaces the default instead of joining it."""

    def __call__(self, _: object, namespace: argparse.Namespace, value: object, __: object = None) -> None:
        typed = getattr(namespace, f"_{self.dest}", [])
        typed.append(value)
        setattr(namespace, f"_{self.dest}", typed)
        setattr(namespace, self.dest, typed)


class _JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)


def _log_to_stderr(level: str, form: str) -> None:
    if level not in LEVELS:
        raise UsageError(f"--log-level {level} is unknown: use {', '.join(LEVELS)}")
    if form not in FORMS:
        raise UsageError(f"--log-format {form} is unknown: use {' or '.join(FORMS)}")
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter(f"{PROGRAM}: %(levelname)s: %(message)s")
    handler.setFormatter(_JsonLines() if form == "json" else text)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _TALKATIVE:
        # They log addresses with whatever stands in them, and a line a request.
        logging.getLogger(name).setLevel(logging.WARNING)
