"""An answer on the terminal, and as one sentence."""

from collections.abc import Iterator, Mapping

from rich.console import Group
from rich.table import Table

from capacity.sizing.result import Result


def report(result: Result) -> Group:
    """The answer for people."""
    return Group(
        result.sentence(), _table(result), *_reasons(result), *(f"warning: {one}" for one in result.warnings())
    )


def _table(result: Result) -> Table:
    table = Table(box=None, pad_edge=False)
    names = [one.name for one in result.replica.allowed]
    for heading in ("replicas", *names, *(f"{name} by Poisson" for name in names), ""):
        table.add_column(heading, justify="left" if not heading else "right")
    said = result.said()
    for candidate in result.sized.candidates:
        shares = (f"{share:.2%}" for share in (*candidate.replay, *candidate.poisson))
        table.add_row(str(candidate.replicas), *shares, said.get(candidate.replicas, ""))
    budgets = (f"{one.budget:.2%}" for one in result.replica.allowed)
    table.add_row("may miss", *budgets, *("" for _ in names), "")
    return table


def _reasons(result: Result) -> Iterator[str]:
    peak, sized = result.sized.peak, result.sized
    yield (
        f"peak {peak.peak_rps:.3g} requests/s (mean {peak.mean_rps:.3g}), {peak.at_once:.3g} in the system; "
        f"arrivals clump {peak.dispersion:.3g} times as Poisson's would"
    )
    yield (
        f"headroom {peak.headroom:.0%}: {peak.uncertainty:.0%} for what is not known of the capacity, "
        f"{peak.burst:.0%} for bursts; by the peak alone {sized.by_peak} replicas"
    )
    if not result.is_for_bursts:  # otherwise that is warned of
        yield f"at its peak the demand is {result.load_at_peak:.0%} of what {sized.needed} replicas are certified for"
    yield hours_text(result.gpu_hours)


def hours_text(hours: Mapping[str, float]) -> str:
    """GPU-hours in words."""
    text = f"{hours['a_day']:.0f} GPU-hours a day, {hours['a_day_by_poisson']:.0f} if sized by Poisson"
    a_million = hours.get("a_million_output_tokens")
    return text if a_million is None else f"{text}; {a_million:.3g} for a million tokens out"
