"""What stands on the terminal."""

import io

from rich.console import Console

from capacity.certify.report import doing, progress, report
from capacity.certify.trial import AskAlone, AskFlood, AskRun
from tests.capacity.certify.test_result import BRACKET, result


def printed(*, width: int = 200, **given: object) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(report(result(*BRACKET, **given)))  # type: ignore[arg-type]
    return out.getvalue()


def test_the_verdict_comes_first_and_probes_stand_in_order_of_rate() -> None:
    lines = printed(peak_rps=6.0).splitlines()
    assert lines[0].startswith("5 requests/s certified, 8 refuted by tpot")
    assert [line.split()[:2] for line in lines[2:5]] == [["5", "certified"], ["6", "unresolved"], ["8", "refuted"]]
    text = " ".join(lines)
    assert "4.0 requests in the system, 95 % of the time at most 7" in text
    assert "a peak of 6 requests/s leaves -20% of the certified rate free" in text


def test_progress_on_a_pipe_is_a_line_for_each_thing_asked() -> None:
    out = io.StringIO()
    with progress(Console(file=out, width=200), 0, 60) as show:
        for ask in (AskAlone(50), AskAlone(100), AskFlood(), AskRun(1, 5.0, "empty", 100)):
            show(ask, 3, 1.0)
    assert out.getvalue().splitlines() == ["requests alone", "flood", "run 1, 5 requests/s from empty"]


def test_progress_on_a_terminal_says_how_long_it_may_take() -> None:
    out = io.StringIO()
    with progress(Console(file=out, width=200, force_terminal=True), 20, 600) as show:
        show(AskFlood(), 3, 10.0)
    assert "at most 10m left" in out.getvalue() or "at most 9m" in out.getvalue()
    assert doing(AskFlood()) in out.getvalue()
