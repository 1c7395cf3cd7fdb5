"""`firsttoken slo replay FILE --database URL`: what this spec would have cost over the stored past.

Reads a collector's database, also while it runs, and writes nothing. Exit codes: 0 it was replayed, 2 usage, a faulty
spec, or a database that cannot be read.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime

from rich.console import Console
from sqlalchemy.engine import URL

from collector.errors import CollectorError, UsageError
from collector.options import named_database
from collector.replaying import replay, replay_past
from collector.replaying.replay_report import WIDTH, Replay, as_json, as_table, clock
from collector.storage.read_only import read_only
from slo import objective
from slo.flags import Parser, variable
from slo.objective import Spec
from slo.quantity import QuantityError, whole_seconds
from slo.source import SpecError

PROGRAM = "firsttoken slo replay"
DATABASE = "sqlite:///firsttoken.db"


def main(argv: list[str] | None = None) -> int:
    """Replay a spec over a database; the exit code."""
    typed = sys.argv[1:] if argv is None else argv
    flags = parser(os.environ).parse_args(typed)
    try:
        found = replayed(
            objective.load(flags.files),
            named_database(flags, typed),
            since=flags.since,
            until=flags.until,
        )
    except SpecError as error:
        print(f"{PROGRAM}: {'; '.join(map(str, error.problems))}", file=sys.stderr)
        return 2
    except CollectorError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2
    if flags.json:
        print(json.dumps(as_json(found), indent=2, allow_nan=False))
        return 0
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH  # a pipe has no width of its own
    console.print(as_table(found, console.width))
    return 0


def parser(environ: Mapping[str, str]) -> Parser:
    """The flags; a default is the environment's where it has one."""
    flags = Parser(
        prog=PROGRAM,
        description="What a spec would have cost over the past that a collector has stored: budgets, pages and "
        "tickets, beside those that really were. Only reads, also while the collector runs.",
    )
    database = environ.get(variable("database"), DATABASE)
    flags.add_argument("files", nargs="+", metavar="FILE", help="slo.yaml, or a folder of such files")
    flags.add_argument("--database", default=database, metavar="URL", help=f"of the collector ({DATABASE})")
    file = environ.get(variable("database-file"))
    flags.add_argument("--database-file", default=file, metavar="FILE", help="file that holds the database's URL")
    when = "a moment (epoch seconds or RFC 3339), or how long ago, as 7d"
    since, until = environ.get(variable("from")), environ.get(variable("to"))
    flags.add_argument("--from", dest="since", default=since, metavar="WHEN", help=f"{when}; else as far as it reaches")
    flags.add_argument("--to", dest="until", default=until, metavar="WHEN", help="the same; else up to the last figure")
    flags.add_argument("--json", action="store_true", help="print one JSON object")
    flags.add_version()
    return flags


def replayed(specs: Sequence[Spec], database: URL, *, since: str | None, until: str | None) -> Replay:
    """Replay the specs over what the database holds. Raises `CollectorError`."""
    read = asyncio.run(read_only(database, lambda connection: replay_past.read(connection, specs)))
    from_s = read.from_s if since is None else max(moment_s("--from", since, now_s=read.to_s), read.from_s)
    to_s = read.to_s if until is None else min(moment_s("--to", until, now_s=read.to_s), read.to_s)
    if from_s >= to_s:
        raise UsageError(
            "nothing is stored between --from and --to: it holds "
            + (f"{clock(read.from_s)} to {clock(read.to_s)}" if read.to_s else "nothing yet")
        )
    when = replay.moments(read.pasts, to_s=to_s)
    reports = [replay.replayed(past, when, from_s=from_s, to_s=to_s) for past in read.pasts]
    return Replay(from_s, to_s, reports, read.untold, read.fired)


def moment_s(flag: str, text: str, *, now_s: int) -> int:
    """Whole epoch seconds of a moment, or of a length of time before `now_s`."""
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        return now_s - whole_seconds(text)
    except QuantityError:
        pass
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        read = None
    if read is None or read.tzinfo is None:
        raise UsageError(f"{flag} {text}: write epoch seconds, 2026-11-30T08:00:00Z, or how long ago, as 7d")
    return int(read.timestamp())
