"""`firsttoken status [--watch] [URL]`: the collector's objectives in the terminal.

Exit codes: 0 every objective is within its budget, 1 one burns or has none left, 2 no collector answers there.
With --watch it shows until Ctrl-C, and that is what it then found last.
"""

import os
import sys
import time
from collections.abc import Mapping

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from firsttoken.errors import FirstTokenError, UsageError
from firsttoken.http_json import ask_json
from firsttoken.status_reply import Status, read
from firsttoken.status_table import render
from slo.flags import Parser, variable
from slo.quantity import QuantityError, duration_s

DEFAULT_URL = "http://127.0.0.1:4318"
STATUS_PATH = "/api/v1/status"


def main(argv: list[str] | None = None) -> int:
    """Run `firsttoken status ...`; returns the exit code."""
    args = _parser(os.environ).parse_args(argv)
    console = Console(highlight=False)
    try:
        interval_s = _seconds(args.interval)
        found = _watch(args.url, interval_s, console) if args.watch else _once(args.url, console)
    except FirstTokenError as error:
        print(f"firsttoken status: {error}", file=sys.stderr)
        return 2
    return 1 if found.is_troubled else 0


def ask(url: str) -> Status:
    """The status of the collector at a URL, with or without the path. Raises UnreachableError."""
    return read(ask_json(url.rstrip("/").removesuffix(STATUS_PATH) + STATUS_PATH))


def _once(url: str, console: Console) -> Status:
    status = ask(url)
    console.print(render(status, console.width))
    return status


def _watch(url: str, interval_s: float, console: Console) -> Status:
    status = ask(url)
    try:
        with Live(console=console, auto_refresh=False, screen=console.is_terminal) as live:
            while True:
                stamp = Text(f"{url}  {time.strftime('%H:%M:%S')}  every {interval_s:g} s, Ctrl-C ends", "dim")
                live.update(Group(stamp, render(status, console.width)), refresh=True)
                time.sleep(interval_s)
                status = ask(url)
    except KeyboardInterrupt:
        return status


def _seconds(text: str) -> float:
    try:
        return float(duration_s(text))
    except QuantityError as error:
        raise UsageError(f"--interval {error}") from None


def _parser(environ: Mapping[str, str]) -> Parser:
    parser = Parser(
        prog="firsttoken status",
        description="Show a collector's objectives. Exit 0: all within budget, 1: one burns or is spent, 2: no answer.",
    )
    url = environ.get(variable("url"), DEFAULT_URL)
    parser.add_argument("url", nargs="?", default=url, metavar="URL", help="the collector (%(default)s)")
    parser.add_argument("--watch", action="store_true", help="show until Ctrl-C")
    interval = environ.get(variable("--interval"), "2s")
    parser.add_argument("--interval", default=interval, metavar="DURATION", help="of --watch (%(default)s)")
    parser.add_version()
    return parser
