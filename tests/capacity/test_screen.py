"""What a load shows."""

import io

from rich.console import Console

from capacity import screen
from capacity.load import Progress
from capacity.record import Load, Record
from capacity.summary import summarise

RECORDS = (
    Record("m", 0.0, 1.0, "ok", 0.0, 0.001, 0.25, 0.85, 9, 7, 200),
    Record("m", 1.0, 2.0, "timeout", 1.02, 1.021),
)


def shown(*records: Record) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(screen.report(summarise(Load("http://x:1", 0.0, 2.0, 2, records))))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_report_says_what_came_of_the_requests_and_when() -> None:
    text = shown(*RECORDS)
    assert "2 of 2 requests sent in 2.0 s: 1 ok, 1 timeout" in text
    assert "offered 1.00/s, completed 0.50/s" in text
    ttft = next(line for line in text.splitlines() if line.startswith("TTFT, from when due"))
    assert ttft.split()[-6:] == ["250.0", "250.0", "250.0", "250.0", "250.0", "1"]
    assert next(line for line in text.splitlines() if line.startswith("TPOT")).split()[1] == "100.0"


def test_a_late_client_is_warned_of_and_a_punctual_one_is_not() -> None:
    assert "warning: this client sent late" in shown(*RECORDS)
    assert "warning" not in shown(RECORDS[0])


def test_a_load_without_requests_shows_dashes() -> None:
    assert "0 of 2 requests sent in 2.0 s: none" in shown()


def test_a_bar_shows_on_a_terminal_and_a_line_in_a_pipe() -> None:
    for is_terminal in (True, False):
        console = Console(file=io.StringIO(), force_terminal=is_terminal, width=100, legacy_windows=False)
        with screen.progress(console, 41.0) as show:
            show(Progress(5.0, 7, 4, 1))
            show(Progress(36.0, 9, 8, 1))
        assert isinstance(console.file, io.StringIO)
        shown = console.file.getvalue()
        assert "9 sent, 1 open, 1 failed" in shown if is_terminal else shown == "load; 5s left\n"
