"""A certification on the terminal: how far it is while it runs, and what was found."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console, Group
from rich.table import Table

from capacity.certify import judge
from capacity.certify.endpoint import Progress
from capacity.certify.result import LITTLE_OFF, Result
from capacity.certify.search import Probe, Varied
from capacity.certify.sensitivity import name_of
from capacity.certify.trial import Ask, AskAlone, AskFlood
from capacity.progress import progress as shown
from slo.quantity import about_text

HEADINGS = ("req/s", "verdict", "requests", "worth", "objective", "missed", "of")
LEFT = ("verdict", "objective")


@contextmanager
def progress(console: Console, spent_s: float, most_s: float) -> Iterator[Progress]:
    """What is being asked, and how long all of it may still take, where so much was spent on it before."""
    seconds_of: dict[str, float] = {}

    with shown(console) as tell:

        def show(ask: Ask, judged: int, seconds: float) -> None:
            if not isinstance(ask, AskFlood):  # a flood is short, and no part of the time that a search may spend
                seconds_of[doing(ask)] = seconds
            left_s = max(most_s - spent_s - sum(seconds_of.values()), 1)
            tell(doing(ask), f"{judged} requests, {about_text(seconds)}", f"at most {about_text(left_s)} left")

        yield show


def doing(ask: Ask) -> str:
    """What is being asked, in words."""
    if isinstance(ask, AskAlone):
        return "requests alone"
    if isinstance(ask, AskFlood):
        return "flood"
    of = f"from {ask.start}" if ask.variation == "stated" else f"with {ask.variation}"
    return f"run {ask.number}, {ask.rate_rps:.3g} requests/s {of}"


def report(result: Result) -> Group:
    """The result for people."""
    lines: list[str | Table] = [result.sentence()]
    if result.outcome is not None and result.outcome.probes:
        lines += [_table(result), *_unresolved(result)]
    return Group(*lines, *notes(result))


def notes(result: Result) -> Iterator[str]:
    """What there is to say beside the verdict."""
    yield from _crowd(result.concurrency)
    yield from _headroom(result)
    yield from _at_certified(result)
    yield from _warnings(result)


def _table(result: Result) -> Table:
    """A row for each objective of each rate: a column for each would not fit a terminal."""
    table = Table(box=None, pad_edge=False)
    for heading in HEADINGS:
        is_left = heading in LEFT
        table.add_column(heading, justify="left" if is_left else "right", no_wrap=heading != "objective")
    assert result.outcome is not None
    for probe in sorted(result.outcome.probes, key=lambda probe: probe.rate_rps):
        for row in _probe_rows(result, probe):
            table.add_row(*row)
    return table


def _probe_rows(result: Result, probe: Probe) -> Iterator[tuple[str, ...]]:
    requests, worth = max(one.requests for one in probe.found), min(one.worth for one in probe.found)
    first = f"{probe.rate_rps:.3g}", probe.state, f"{requests:,}", f"{worth:,.0f}"
    for place, (goal, one) in enumerate(zip(result.goals, probe.found, strict=True)):
        missed = missed_text(one.share, *one.interval(result.rigour.error))
        yield (*(first if not place else [""] * len(first)), goal.name, missed, f"{100 * goal.budget:.3g}%")


def missed_text(share: float, low: float, high: float) -> str:
    """A share of requests, and what the true one lies within."""
    within = f"{low:.2%}-{high:.2%}" if low else f"≤ {high:.2%}"
    return f"{share:.2%} ({within})"


def _unresolved(result: Result) -> Iterator[str]:
    """Why rates stayed unresolved, and what would settle them."""
    assert result.outcome is not None
    for probe in sorted(result.outcome.probes, key=lambda probe: probe.rate_rps):
        if probe.state == "unresolved":
            wanted = result.flags_to_tell(probe.needs, probe.rate_rps)
            yield f"{probe.rate_rps:.3g}/s is unresolved: {probe.why}" + (f" ({wanted} would)" if wanted else "")


def _crowd(concurrency: Mapping[str, object]) -> Iterator[str]:
    mean, p95, little, residual = (concurrency.get(name) for name in ("mean", "p95", "by_little", "residual"))
    if isinstance(mean, float) and isinstance(residual, float):
        yield f"at the certified rate {mean:.1f} requests in the system, 95 % of the time at most {p95:.0f}"
        yield f"by Little's law {little:.1f}, {residual:.0%} apart" + (
            ": not a steady state" if residual > LITTLE_OFF else ""
        )


def _headroom(result: Result) -> Iterator[str]:
    if result.headroom is None:
        return
    peak, part = f"a peak of {result.peak_rps:.3g} requests/s", f"{abs(result.headroom):.0%}"
    if result.headroom >= 0:
        yield f"{peak} leaves {part} of the certified rate free"
    else:
        yield f"{peak} is {part} more than the certified rate"


def _at_certified(result: Result) -> Iterator[str]:
    """What the certified rate spends of the budgets, and what other workloads would."""
    outcome = result.outcome
    if outcome is None or outcome.certified is None:
        return
    part, name = judge.binding(result.goals, outcome.certified.found)
    if part:
        yield f"at the certified rate {name} spends the largest part of its budget, {part:.0%}"
    else:
        yield "at the certified rate no request missed an objective"
    for one in outcome.varied:
        yield f"with {name_of(one.variation, result.shared_words)}: {_spent(result, one)}"


def _spent(result: Result, varied: Varied) -> str:
    """What another workload makes of the budgets, and how sure that is."""
    part, name = judge.binding(result.goals, varied.found)
    if not part:
        return "no request missed an objective"
    if judge.refuted_by(result.goals, varied.found, error=result.rigour.error):
        return f"{name} spends {part:.0%} of its budget, too much"
    return f"{name} spends {part:.0%} of its budget" + (", from too few requests to be sure" if part > 1 else "")


def _warnings(result: Result) -> Iterator[str]:
    if any(kept.looks[-1].is_client_late for kept in result.account.runs.values()):
        yield "warning: this client sent late in some runs; give it a machine of its own"
    for goal in result.goals:
        if goal.is_watched and result.outcome is not None and result.outcome.certified is not None:
            place = result.goals.index(goal)
            one = result.outcome.certified.found[place]
            yield f"{goal.name}: {one.bad} of {one.requests} bad; watched, its budget is too small to be certified"
