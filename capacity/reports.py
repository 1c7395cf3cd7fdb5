"""Where a report goes besides the terminal: the flags `--html` and `--png` that certify, size and batch share."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from capacity.errors import WorkloadError
from capacity.options import add_flag, writable, write
from capacity.report.html import html
from capacity.report.page import Page
from capacity.report.png import png, refuse_undrawable
from slo.output import is_stream

NAMED = ("trace", "workload", "capacity", "json", "html", "png")
"""Flags of certify, size and batch that name a file: those that are read, then those that are written."""


def add_report_flags(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    """`--html` and `--png`."""
    add_flag(parser, environ, "--html", metavar="FILE", help="write the result as a page that needs nothing else")
    add_flag(parser, environ, "--png", metavar="FILE", help="write the same page as a picture, for a ticket")


@dataclass(frozen=True, slots=True)
class Reports:
    """The files that are asked for, None where one is not."""

    html: Path | None
    png: Path | None

    def write(self, page: Page) -> None:
        """Have the report in them. Raises WorkloadError."""
        if self.html is not None:
            write("--html", self.html, html(page))
        if self.png is not None:
            write("--png", self.png, png(page))


def reports(args: argparse.Namespace) -> Reports:
    """The files that the flags name, found writable, and a picture drawable, before a long run rather than after it:
    none of them the one of `--json`, or one that is read. Raises WorkloadError."""
    given = {f"--{name}": getattr(args, name, None) for name in NAMED}
    _refuse_one_file_twice(given)
    if args.png is not None:
        refuse_undrawable()
    return Reports(
        None if args.html is None else writable("--html", Path(args.html)),
        None if args.png is None else writable("--png", Path(args.png)),
    )


def _refuse_one_file_twice(named: Mapping[str, str | None]) -> None:
    """A result would take the place of another, or of the requests that it comes from."""
    flags: dict[Path, str] = {}
    for flag, name in named.items():
        if name is None or is_stream(path := Path(name)):
            continue
        if (other := flags.setdefault(path.resolve(), flag)) != flag:
            raise WorkloadError(f"{flag} {name} is the file of {other} too: name two")
