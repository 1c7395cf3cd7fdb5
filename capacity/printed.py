"""What a command has found, on its standard output."""

import os
from collections.abc import Iterable
from datetime import UTC, datetime

from rich.console import Console

PIPE_WIDTH = 200


def paper() -> Console:
    """Where results are printed: names as they stand, which may look like markup; lines and tables are not cut in a
    pipe, which has no width of its own."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console


def moment_text(at_s: float) -> str:
    """A moment in UTC, to the minute, as reports say when they were made."""
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M} UTC"


def print_left_out(console: Console, why_not: Iterable[str]) -> None:
    """Which objectives were not judged, and why."""
    for one in why_not:
        console.print(f"left out: {one}")
