"""A certification on the terminal: how far it is while it runs, and what was found."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console, Group
from rich.status import Status
from rich.table import Table

from capacity.certify import judge
from capacity.certify.endpoint import Progress
from capacity.certify.result import LITTLE_OFF, Result
from capacity.certify.search import Probe
from capacity.certify.trial import Ask, AskAlone, AskFlood
from slo.quantity import about_text


@contextmanager
def progress(console: Console, spent_s: float, most_s: float) -> Iterator[Progress]:
    """A line that says what is being asked, and about how long all of it may still take; on a pipe a line for each."""
    shown: list[str] = []
    with Status("", console=console) as status:

        def show(ask: Ask, judged: int, seconds: float) -> None:
            if not console.is_terminal:
                if [doing(ask)] != shown[-1:]:
                    shown.append(doing(ask))
                    console.print(doing(ask))
                return
            left = about_text(max(most_s - spent_s - seconds, 1))
            status.update(f"{doing(ask)}: {judged} requests, {about_text(seconds)}; at most {left} left")

        yield show


def doing(ask: Ask) -> str:
    """What is being asked, in words."""
    if isinstance(ask, AskAlone):
        return "requests alone"
    if isinstance(ask, AskFlood):
        return "flood"
    return f"run {ask.number}, {ask.rate_rps:.3g} requests/s from {ask.start}"


def report(result: Result) -> Group:
    """The result for people."""
    lines: list[str | Table] = [result.sentence()]
    if result.outcome is not None and result.outcome.probes:
        lines.append(_table(result))
    return Group(*lines, *notes(result))


def notes(result: Result) -> Iterator[str]:
    """What there is to say beside the verdict."""
    yield from _crowd(result.concurrency)
    yield from _headroom(result)
    yield from _warnings(result)


def _table(result: Result) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("req/s", "verdict", "requests", *(goal.name for goal in result.goals), "worth", "at once", "why"):
        table.add_column(heading, justify="left" if heading in ("verdict", "why") else "right", no_wrap=True)
    assert result.outcome is not None
    for probe in sorted(result.outcome.probes, key=lambda probe: probe.rate_rps):
        table.add_row(*_row(result, probe))
    return table


def _row(result: Result, probe: Probe) -> Iterator[str]:
    yield f"{probe.rate_rps:.3g}"
    yield probe.state
    yield str(max(one.requests for one in probe.found))
    for one in probe.found:
        low, high = one.interval(result.rigour.error)
        yield f"{one.share:.2%} ({low:.2%}-{high:.2%})"
    yield f"{min(one.worth for one in probe.found):.0f}"
    kept = result.account.runs.get(probe.runs[0])
    yield "-" if kept is None else f"{kept.looks[-1][2]:.1f}"
    yield probe.why


def _crowd(concurrency: Mapping[str, object]) -> Iterator[str]:
    mean, p95, little, residual = (concurrency.get(name) for name in ("mean", "p95", "by_little", "residual"))
    if isinstance(mean, float) and isinstance(residual, float):
        yield f"at the certified rate {mean:.1f} requests in the system, 95 % of the time at most {p95:.0f}"
        yield f"by Little's law {little:.1f}, {residual:.0%} apart" + (
            ": not a steady state" if residual > LITTLE_OFF else ""
        )


def _headroom(result: Result) -> Iterator[str]:
    if result.headroom is not None:
        yield f"a peak of {result.peak_rps:.3g} requests/s leaves {result.headroom:.0%} of the certified rate free"


def _warnings(result: Result) -> Iterator[str]:
    if any(kept.looks[-1][3] for kept in result.account.runs.values()):
        yield "warning: this client sent late in some runs; give it a machine of its own"
    for goal in result.goals:
        if goal.is_watched and result.outcome is not None and result.outcome.certified is not None:
            place = result.goals.index(goal)
            one = result.outcome.certified.found[place]
            yield f"{goal.name}: {one.bad} of {one.requests} bad; watched, its budget is too small to be certified"
    if result.outcome is not None and result.outcome.certified is not None:
        part, name = judge.binding(result.goals, result.outcome.certified.found)
        yield f"at the certified rate {name} spends most of its budget, {part:.0%}"
