"""A load on the terminal: a bar while it runs, a table when it has."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from capacity.load import Progress as LoadProgress
from capacity.progress import EVERY_S
from capacity.progress import progress as shown
from capacity.summary import Quantiles, Summary
from slo.quantity import about_text


@contextmanager
def progress(console: Console, seconds: float) -> Iterator[Callable[[LoadProgress], None]]:
    """A bar over the load's length with time left; on a pipe a line now and then."""
    if not console.is_terminal:
        with shown(console) as tell:

            def write(now: LoadProgress) -> None:
                if now.elapsed_s >= EVERY_S:  # a short load needs no words
                    tell("load", _note(now), f"{about_text(max(seconds - now.elapsed_s, 1))} left")

            yield write
        return
    bar = Progress(
        TextColumn("load"),
        BarColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task("load", total=seconds, note="")

    def show(now: LoadProgress) -> None:
        bar.update(task, completed=min(now.elapsed_s, seconds), note=_note(now))

    with bar:
        yield show


def _note(now: LoadProgress) -> str:
    return f"{now.sent} sent, {now.sent - now.done} open, {now.failed} failed"


def report(summary: Summary) -> Group:
    """The summary for people."""
    table = Table(box=None, pad_edge=False)
    for heading in ("ms", "p50", "p90", "p95", "p99", "max", "count"):
        table.add_column(heading, justify="left" if heading == "ms" else "right", no_wrap=True)
    for title, row in (
        ("TTFT, from when due", summary.ttft),
        ("TTFT, from written", summary.hop_ttft),
        ("TPOT", summary.tpot),
        ("e2e", summary.e2e),
        ("client late by", summary.late),
    ):
        table.add_row(title, *_cells(row))
    outcomes = ", ".join(f"{count} {name}" for name, count in summary.outcomes.items()) or "none"
    rates = f"offered {summary.offered_rps:.2f}/s, completed {summary.completed_rps:.2f}/s"
    lines = [
        f"{summary.sent} of {summary.planned} requests sent in {summary.seconds:.1f} s: {outcomes}",
        f"{rates}, {summary.output_tokens_per_s:.0f} output tokens/s",
    ]
    if summary.is_client_late:
        lines.append("warning: this client sent late; the load was not the one asked for (see client late by)")
    return Group(*lines, table)


def _cells(row: Quantiles) -> Iterator[str]:
    for value in (row.p50, row.p90, row.p95, row.p99, row.max):
        yield "-" if value is None else f"{value * 1000:.1f}"
    yield str(row.count)
