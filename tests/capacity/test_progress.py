"""What is told while a command runs."""

import io

from rich.console import Console

from capacity.progress import EVERY_S, progress


def test_into_a_file_goes_a_line_for_each_thing_and_one_now_and_then() -> None:
    out, now_s = io.StringIO(), 0.0
    with progress(Console(file=out, width=200), now_s=lambda: now_s) as tell:
        for second in range(71):
            now_s = float(second)
            tell("run 1" if second < 65 else "run 2", f"{second} requests", "1m left")
    assert EVERY_S == 30
    assert out.getvalue().splitlines() == [
        "run 1; 1m left",
        "run 1: 30 requests; 1m left",
        "run 1: 60 requests; 1m left",
        "run 2; 1m left",
    ]


def test_a_terminal_has_one_line_that_is_drawn_anew() -> None:
    out = io.StringIO()
    with progress(Console(file=out, width=200, force_terminal=True)) as tell:
        tell("run 1", "3 requests", "1m left")
        tell("run 1", "4 requests", "1m left")
    assert "run 1: 4 requests; 1m left" in out.getvalue()


def test_quiet_is_quiet() -> None:
    out = io.StringIO()
    with progress(Console(file=out, quiet=True)) as tell:
        tell("run 1", "3 requests", "1m left")
    assert out.getvalue() == ""
