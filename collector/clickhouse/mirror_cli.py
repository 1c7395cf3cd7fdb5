"""`firsttoken collector mirror`: keeps a ClickHouse up to what a collector's database counted, until a signal.

A process of its own, beside a collector or anywhere that reaches both: a collector does not wait for ClickHouse, and
goes on without it. What is missing is found from the two databases alone (`mirror`), so a mirror may end at any moment
and begin again. Exit codes: 0 ended by a signal, or all was sent (`--once`); 2 usage, a faulty spec, or a database that
cannot be used.
"""

import asyncio
import math
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy.engine import URL

from collector.clickhouse.engine import checked, has_password, opened
from collector.clickhouse.mirror import Mirror
from collector.errors import CollectorError, UnavailableError, UnusableDatabaseError, UsageError
from collector.options import content, named_database
from slo import objective, quantity
from slo.flags import Parser, variable
from slo.objective import Spec
from slo.quantity import DAY_S, HOUR_S
from slo.source import SpecError

PROGRAM = "firsttoken collector mirror"
DATABASE, EVERY = "sqlite:///firsttoken.db", "10s"
LOOKS = ((DAY_S, None), (HOUR_S, DAY_S), (0, 900))
"""(how often, how far back), in seconds: late data may be of any age, most is of minutes. None: all that is kept."""
MAX_ORIGIN_LETTERS = 63
FALLEN = (
    "{} rows hold less than was sent of them and are left alone: was the database restored from a backup? Then leave "
    "it so, or give it another --origin and delete what the old one sent"
)


@dataclass(frozen=True, slots=True)
class Settings:
    """All that a mirror runs by."""

    database: URL
    clickhouse: str
    origin: str
    specs: Sequence[Spec]
    every_s: int
    is_once: bool


def main(argv: list[str] | None = None) -> int:
    """Mirror a database; the exit code."""
    typed = sys.argv[1:] if argv is None else argv
    try:
        asyncio.run(_run(settings(typed, os.environ)))
    except SpecError as error:
        print(f"{PROGRAM}: {'; '.join(map(str, error.problems))}", file=sys.stderr)
    except CollectorError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
    else:
        return 0
    return 2


def settings(typed: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """The settings of a command line. Raises `UsageError`, or `SpecError` for a faulty spec."""
    flags = parser(environ).parse_args(typed)
    clickhouse = _clickhouse(flags.clickhouse, flags.clickhouse_file, typed)
    if not flags.origin or len(flags.origin) > MAX_ORIGIN_LETTERS:
        raise UsageError(
            f"--origin NAME: name this database, in up to {MAX_ORIGIN_LETTERS} letters, and never otherwise"
        )
    try:
        every_s = quantity.whole_seconds(flags.every)
    except quantity.QuantityError as error:
        raise UsageError(f"--every: {error}") from None
    return Settings(
        database=named_database(flags, typed),
        clickhouse=clickhouse,
        origin=flags.origin,
        specs=objective.load(flags.slo) if flags.slo else (),
        every_s=every_s,
        is_once=flags.once,
    )


def parser(environ: Mapping[str, str]) -> Parser:
    """The flags; a default is the environment's where it has one."""
    flags = Parser(
        prog=PROGRAM,
        description="Send what a collector's database counted to ClickHouse, exactly once, until a signal. Its tables "
        "are made by what `firsttoken collector schema --dialect clickhouse` prints.",
    )

    def flag(name: str, default: str | None, meaning: str, metavar: str) -> None:
        shown = f" (default {default})" if default else ""
        flags.add_argument(
            f"--{name}", default=environ.get(variable(name)) or default, metavar=metavar, help=meaning + shown
        )

    flag("database", DATABASE, "the collector's: a path, or the URL of an SQLite or PostgreSQL database", "URL")
    flag("database-file", None, "file that holds the database's URL, where that has a password", "FILE")
    flag("clickhouse", None, "where to send to, as clickhouse://user@host:8123/database", "URL")
    flag("clickhouse-file", None, "file that holds that URL, where it has a password", "FILE")
    flag("origin", None, "the database's name in ClickHouse, which it keeps for good", "NAME")
    flag("every", EVERY, "how often to look for what is new", "TIME")
    usual = [one for one in environ.get(variable("slo"), "").split(os.pathsep) if one]
    told = "slo.yaml, or a folder of such, to judge by in ClickHouse; may be repeated"
    flags.add_argument("--slo", action="append", default=usual, metavar="FILE", help=told)
    flags.add_argument("--once", action="store_true", help="end when all is sent")
    flags.add_version()
    return flags


def _clickhouse(url: str | None, file: str | None, typed: Sequence[str]) -> str:
    if file is not None:
        return checked(content("--clickhouse-file", file))
    if url is None:
        raise UsageError("--clickhouse URL is missing: write clickhouse://user@host:8123/database")
    if has_password(checked(url)) and any(url in word for word in typed):
        raise UsageError(
            "--clickhouse holds a password: put the URL into a file (--clickhouse-file) or the environment"
        )
    return url


async def _run(wanted: Settings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with opened(wanted.clickhouse) as engine:
        mirror = Mirror(wanted.database, engine, origin=wanted.origin)
        mirror.tell(wanted.specs)
        if wanted.is_once:
            await _send_all(mirror, stop)
        else:
            await go_on(mirror, stop, every_s=wanted.every_s)


async def _send_all(mirror: Mirror, stop: asyncio.Event) -> None:
    """Send until nothing is missing: what an insert of a mirror before this one was given for is found then."""
    while not stop.is_set():
        sent = await mirror.send(stopped=stop.is_set)
        print(f"sent {sent}", flush=True)
        if not sent.total:
            return


async def go_on(mirror: Mirror, stop: asyncio.Event, *, every_s: float) -> None:
    """Send what is new until a signal. What was there once and is away now is waited for."""
    looked_s = [-math.inf] * len(LOOKS)  # by a clock that nobody sets
    voice = _Voice()
    while not stop.is_set():
        now_s = time.monotonic()
        due = next(place for place, (often_s, _) in enumerate(LOOKS) if now_s - looked_s[place] >= often_s)
        far_s = LOOKS[due][1]
        try:
            since_s = 0 if far_s is None else int(time.time()) - far_s
            sent = await mirror.send(since_s=since_s, stopped=stop.is_set)
        except (UnavailableError, UnusableDatabaseError) as error:
            if isinstance(error, UnusableDatabaseError) and looked_s[-1] == -math.inf:
                raise
            voice.tell(f"{error}: tried again every {every_s:g} s")
        else:
            voice.tell(FALLEN.format(sent.fallen) if sent.fallen else "")
            looked_s[due:] = [now_s] * len(looked_s[due:])
        await _waited(stop, every_s)


class _Voice:
    """Tells people what is wrong once, and once when it is over."""

    def __init__(self) -> None:
        self._told = ""

    def tell(self, wrong: str) -> None:
        if wrong != self._told:
            print(f"{PROGRAM}: {wrong or 'all is well again'}", file=sys.stderr, flush=True)
            self._told = wrong


async def _waited(stop: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
