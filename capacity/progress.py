"""How far a long command is: one line drawn anew on a terminal; where nobody watches, lines now and then."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.status import Status

EVERY_S = 30.0
"""Into a file or a pipe goes a line for each thing that is begun, and one so often while it goes on."""

Tell = Callable[[str, str, str], None]
"""Told what is being done, how far it is, and how long all of it may still take."""


@contextmanager
def progress(console: Console, *, now_s: Callable[[], float] = monotonic) -> Iterator[Tell]:
    """Show what is told; nothing where the console is quiet."""
    begun, shown_s = "", 0.0

    def write(doing: str, far: str, left: str) -> None:
        nonlocal begun, shown_s
        if doing != begun:
            console.print(f"{doing}; {left}")
        elif now_s() >= shown_s + EVERY_S:
            console.print(f"{doing}: {far}; {left}")
        else:
            return
        begun, shown_s = doing, now_s()

    if not console.is_terminal:
        yield write
        return
    with Status("", console=console) as status:
        yield lambda doing, far, left: status.update(f"{doing}: {far}; {left}")
