"""`firsttoken status [--watch] [URL]`: the collector's objectives in the terminal.

Exit codes: 0 every objective shown is within its budget, 1 one burns or has none left, 2 no collector answers there, or
nothing it keeps is what was asked for.
With --watch it shows until Ctrl-C, and that is what it then found last; a collector that is away for a while is waited
for, with what it last said still on the screen.
"""

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from firsttoken.errors import FirstTokenError, UnreachableError, UsageError
from firsttoken.http_json import NOTHING_ASKED, Access, ask_json
from firsttoken.status_reply import Status, read
from firsttoken.status_screen import screen
from firsttoken.status_table import render
from firsttoken.token_file import token_of
from slo.flags import Parser, variable
from slo.quantity import QuantityError, duration_s

DEFAULT_URL = "http://127.0.0.1:4318"
STATUS_PATH = "/api/v1/status"
FILTERS = ("service", "objective", "model", "environment")
FILES = (
    ("token-file", "the token that the collector asks for"),
    ("tls-ca", "who signed the collector's certificate, where this machine does not know it"),
    ("tls-cert", "our own certificate, for a collector that asks for one"),
    ("tls-key", "its key, where it is another file"),
)


@dataclass(frozen=True, slots=True)
class Question:
    """Whom to ask, and about what."""

    url: str
    filters: Mapping[str, str]
    access: Access = NOTHING_ASKED

    @property
    def whole_url(self) -> str:
        base = self.url.rstrip("/").removesuffix(STATUS_PATH) + STATUS_PATH
        return f"{base}?{urlencode(self.filters)}" if self.filters else base


def main(argv: list[str] | None = None) -> int:
    """Run `firsttoken status ...`; returns the exit code."""
    args = _parser(os.environ).parse_args(argv)
    console = Console(highlight=False)
    try:
        interval_s = _seconds(args.interval)
        filters = {name: value for name in FILTERS if (value := getattr(args, name)) is not None}
        files = (getattr(args, name) or "" for name in ("tls_ca", "tls_cert", "tls_key"))
        question = Question(_url(args.url), filters, Access(token_of("--token-file", args.token_file), *files))
        found = _watch(question, interval_s, console) if args.watch else _once(question, console)
    except FirstTokenError as error:
        print(f"firsttoken status: {error}", file=sys.stderr)
        return 2
    return 1 if found.is_troubled else 0


def _url(text: str) -> str:
    """The address as it was typed, before a path is put behind it; one with an @ is never repeated."""
    if "@" not in text and not text.startswith(("http://", "https://")):
        raise UsageError(f"{text} is no URL: write http://HOST:PORT")
    return text


def ask(url: str) -> Status:
    """The status of the collector at a URL, with or without the path. Raises UnreachableError."""
    return _asked(Question(url, {}))


def _asked(question: Question) -> Status:
    return read(ask_json(question.whole_url, access=question.access))


def _once(question: Question, console: Console) -> Status:
    status = _asked(question)
    if question.filters and not status.objectives:
        named = " ".join(f"--{name} {value}" for name, value in question.filters.items())
        raise UsageError(f"no objective at {question.url} matches {named}: without them it shows all there are")
    console.print(render(status, console.width))
    return status


def _watch(question: Question, interval_s: float, console: Console) -> Status:
    status = _asked(question)
    lost: UnreachableError | None = None
    try:
        with Live(console=console, auto_refresh=False, screen=console.is_terminal) as live:
            while True:
                head = _head(question.url, interval_s, lost)
                live.update(Group(head, _shown(status, console, head)), refresh=True)
                time.sleep(interval_s)
                try:
                    status, lost = _asked(question), None
                except UnreachableError as error:
                    lost = error
    except KeyboardInterrupt:
        return status


def _shown(status: Status, console: Console, head: Text) -> RenderableType:
    """All of it where it goes to a file; on a terminal what fits under the head."""
    if not console.is_terminal:
        return render(status, console.width)
    return screen(status, console, height=console.height - len(console.render_lines(head, pad=False)))


def _head(url: str, interval_s: float, lost: UnreachableError | None) -> Text:
    if lost is not None:
        return Text(f"as it was: {lost}; asked again every {interval_s:g} s, Ctrl-C ends", "bold red")
    return Text(f"{url}  {time.strftime('%H:%M:%S')}  every {interval_s:g} s, Ctrl-C ends", "dim")


def _seconds(text: str) -> float:
    try:
        return float(duration_s(text))
    except QuantityError as error:
        raise UsageError(f"--interval {error}") from None


def _parser(environ: Mapping[str, str]) -> Parser:
    parser = Parser(
        prog="firsttoken status",
        description="Show a collector's objectives and alerts. Exit 0: all within budget, 1: one burns or is spent, "
        "2: no answer, or no such objective.",
    )
    url = environ.get(variable("url")) or DEFAULT_URL
    parser.add_argument("url", nargs="?", default=url, metavar="URL", help="the collector (%(default)s)")
    parser.add_argument(
        "--watch", action="store_true", help="show until Ctrl-C, and wait for a collector that restarts"
    )
    interval = environ.get(variable("--interval")) or "2s"
    parser.add_argument("--interval", default=interval, metavar="DURATION", help="how often --watch asks (%(default)s)")
    for name in FILTERS:
        parser.add_argument(
            f"--{name}", default=environ.get(variable(name)) or None, metavar="NAME", help=f"only this {name}"
        )
    for name, about in FILES:
        parser.add_argument(f"--{name}", default=environ.get(variable(name)), metavar="FILE", help=about)
    parser.add_version()
    return parser
