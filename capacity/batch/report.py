"""A search for the batch on the terminal: how far it is while it runs, and what was found."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console, Group
from rich.status import Status
from rich.table import Table

from capacity.batch.result import Result
from capacity.batch.search import Probe
from capacity.batch.sitting import Account, OnAsk
from capacity.batch.trial import Ask, AskHeld
from capacity.batch.verdict import ERROR
from slo.quantity import about_text

HEADINGS = ("batch", "load", "verdict", "requests", "bad", "objective")
USUAL_RUNS = 20
"""About how many runs a search takes: 8 to calibrate, 4 with other lengths, 3 of the step, 5 of the wait."""


@contextmanager
def progress(console: Console) -> Iterator[OnAsk]:
    """A line that says what is being asked, and about how long it may still take; on a pipe a line for each run."""
    shown: list[str] = []
    began_s = monotonic()
    with Status("", console=console) as status:

        def show(ask: Ask, account: Account) -> None:
            doing = said(ask)
            if not console.is_terminal:
                if [doing] != shown[-1:]:
                    shown.append(doing)
                    console.print(doing)
                return
            done = max(len(account.runs), 1)
            each_s = (monotonic() - began_s) / done
            left = about_text(max(USUAL_RUNS - done, 1) * each_s)
            status.update(f"run {len(account.runs) + 1}, {doing}: {ask.requests} requests; about {left} left")

        yield show


def said(ask: Ask) -> str:
    """What is being asked, in words."""
    if isinstance(ask, AskHeld):
        with_what = "" if ask.mix == "stated" else f" with {ask.mix}"
        return f"batch {ask.batch}, as many outstanding{with_what}"
    return f"batch {ask.batch}, {ask.rate_rps:.3g} requests/s"


def report(result: Result) -> Group:
    """The result for people."""
    lines: list[str | Table] = [result.sentence()]
    if result.outcome is not None:
        lines += [*_fit(result), _table(result)]
        lines += [f"{server}: {flags}" for server, flags in result.flags.items()]
        lines += memory_lines(result)
    return Group(*lines)


def _fit(result: Result) -> Iterator[str]:
    assert result.outcome is not None
    found = result.outcome.fit
    held = next(iter(p.mix for p in found.points))
    yield (
        f"a step takes {1000 * found.a:.3g} ms and {1000 * found.each_s(held):.3g} ms for each sequence, "
        f"within {found.largest_residual():.0%}; it predicts {result.outcome.predicted}"
    )


def _table(result: Result) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in HEADINGS:
        table.add_column(
            heading, justify="left" if heading in ("load", "verdict", "objective") else "right", no_wrap=True
        )
    for row in table_rows(result):
        table.add_row(*row)
    return table


def table_rows(result: Result) -> list[tuple[str, ...]]:
    """A row of text for each probe: those with as many outstanding first, by batch."""
    probes = () if result.outcome is None else result.outcome.probes
    ordered = sorted(probes, key=lambda probe: (probe.kind, probe.batch, probe.rate_rps))
    return [tuple(_row(result, probe)) for probe in ordered]


def _row(result: Result, probe: Probe) -> Iterator[str]:
    goals = result.plan.held_goals if probe.kind == "held" else result.plan.open_goals
    place = [goal.name for goal in goals].index(probe.verdict.binding)
    one = probe.verdict.found[place]
    low, high = one.interval(ERROR)
    yield str(probe.batch)
    yield "as many outstanding" if probe.kind == "held" else f"{probe.rate_rps:.3g} requests/s"
    yield verdict_text(probe)
    yield str(one.requests)
    yield f"{one.share:.1%} ({low:.1%}-{high:.1%}) of {goals[place].budget:.1%}"
    yield probe.verdict.binding


def verdict_text(probe: Probe) -> str:
    """The verdict in a word or two."""
    if probe.is_too_short:
        return "too short to tell"
    return ("kept" if probe.verdict.is_kept else "broken") + ("" if probe.verdict.is_sure else ", unsure")


def memory_lines(result: Result) -> Iterator[str]:
    """What the KV cache must hold, and what should be known of the runs."""
    kv = result.kv
    yield f"KV cache: {kv['blocks']} blocks of {kv['block_size']} tokens, so that preemption stays rare" + (
        "" if kv["max_sequences"] is None else f"; {kv['tokens']} tokens hold {kv['max_sequences']} sequences"
    )
    probes = () if result.outcome is None else result.outcome.probes
    if any(probe.is_client_late for probe in probes):
        yield "warning: this client sent late in some runs; give it a machine of its own"
