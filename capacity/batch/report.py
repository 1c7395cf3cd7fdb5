"""A search for the batch on the terminal: how far it is while it runs, and what was found."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console, Group
from rich.table import Table

from capacity.batch.remaining import remaining_s
from capacity.batch.result import Result
from capacity.batch.search import Plan, Probe
from capacity.batch.sitting import Account, OnAsk
from capacity.batch.trial import Ask, AskHeld
from capacity.batch.verdict import ERROR
from capacity.certify.report import missed_text
from capacity.progress import progress as shown
from slo.quantity import about_text

HEADINGS = ("batch", "load", "verdict", "requests", "missed", "of", "objective")
POOR_FIT = 0.2
LEFT = ("load", "verdict", "objective")


@contextmanager
def progress(console: Console, plan: Plan, *, now_s: Callable[[], float] = monotonic) -> Iterator[OnAsk]:
    """What is being asked, and about how long all of it may still take."""
    began_s = now_s()
    with shown(console) as tell:

        def show(ask: Ask, account: Account) -> None:
            left = about_text(remaining_s(plan, account.runs, ask, now_s() - began_s))
            tell(said(ask), f"{ask.requests} requests", f"about {left} left")

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
        lines += [
            *_fit(result),
            *_poor_fit(result),
            _table(result),
            "full: as many requests outstanding as the batch has places",
        ]
        lines += [f"{server}: {flags}" for server, flags in result.flags.items()]
        lines += [*change_lines(result), *memory_lines(result)]
    return Group(*lines)


def _fit(result: Result) -> Iterator[str]:
    assert result.outcome is not None
    found = result.outcome.fit
    held = next(iter(p.mix for p in found.points))
    yield (
        f"a step takes {1000 * found.a:.3g} ms and {1000 * found.each_s(held):.3g} ms for each sequence, "
        f"within {found.largest_residual():.0%}; it predicts {result.outcome.predicted}"
    )


def _poor_fit(result: Result) -> Iterator[str]:
    assert result.outcome is not None
    off = result.outcome.fit.largest_residual()
    if off > POOR_FIT:
        yield (
            f"warning: a run was {off:.0%} off the fit, so steps are no straight line, or the server was not alone: "
            "trust the verdicts of the runs, not what is predicted"
        )


def _table(result: Result) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in HEADINGS:
        is_left = heading in LEFT
        table.add_column(
            heading, justify="left" if is_left else "right", no_wrap=heading not in ("verdict", "objective")
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
    yield "full" if probe.kind == "held" else f"{probe.rate_rps:.3g}/s"
    yield verdict_text(probe)
    yield f"{one.requests:,}"
    yield missed_text(one.share, low, high)
    yield f"{100 * goals[place].budget:.3g}%"
    yield probe.verdict.binding


def verdict_text(probe: Probe) -> str:
    """The verdict in a word or two."""
    if probe.is_too_short:
        return "too short to tell"
    return ("kept" if probe.verdict.is_kept else "broken") + ("" if probe.verdict.is_sure else ", unsure")


def change_lines(result: Result) -> Iterator[str]:
    """What is to be expected of the chosen batch, and the way back."""
    change = result.change
    if change is not None:
        more = f"{abs(change.more_ends):.1%} {'more' if change.more_ends >= 0 else 'fewer'}"
        yield (
            f"from {change.before} to {change.after}: a full server ends {more} requests, and a step takes "
            f"{1000 * change.step_s:.3g} ms for {1000 * change.step_before_s:.3g} ms"
        )
        yield f"the way back is {change.before}"


def memory_lines(result: Result) -> Iterator[str]:
    """What the KV cache must hold, and what should be known of the runs."""
    kv = result.kv
    yield f"KV cache: {kv['blocks']} blocks of {kv['block_size']} tokens, so that preemption stays rare" + (
        "" if kv["max_sequences"] is None else f"; {kv['tokens']} tokens hold {kv['max_sequences']} sequences"
    )
    probes = () if result.outcome is None else result.outcome.probes
    if any(probe.is_client_late for probe in probes):
        yield "warning: this client sent late in some runs; give it a machine of its own"
