"""What slo.yaml promises, as a dashboard draws it: limits of charts, views of burn, quantiles, and words. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from slo import words
from slo.burn import Tier, factor_text, tiers
from slo.objective import STATE_SIGNALS, Objective, Spec
from slo.quantity import duration_text, plain

QUANTILES = (Decimal("0.5"), Decimal("0.95"), Decimal("0.99"))
MAX_BURN_COLUMNS = 4


@dataclass(frozen=True, slots=True)
class Limit:
    """A value that one objective sets on a chart, and how it is written there; objective '' is the service itself."""

    service: str
    objective: str
    value: Decimal
    text: str


@dataclass(frozen=True, slots=True)
class BurnView:
    """One chart of burn: over `long_s`, beside it over `short_s`, against the factors of the tiers of that name."""

    tier: str
    long_s: int
    short_s: int
    limits: tuple[Limit, ...]


def burn_views(specs: Sequence[Spec]) -> tuple[BurnView, ...]:
    """A view for every pair of windows that alerts look at, shortest first. An objective whose period is too short
    for any tier is looked at over its period."""
    found: dict[tuple[int, int, str], list[Limit]] = {}
    for spec, objective in each(specs):
        own = tiers(objective)
        for tier in own:
            found.setdefault((tier.long_s, tier.short_s, tier.name), []).append(_factor(spec, objective, tier))
        if not own:
            found.setdefault((objective.window, objective.window, "no tier"), [])
    return tuple(
        BurnView(name, long_s, short_s, tuple(limits)) for (long_s, short_s, name), limits in sorted(found.items())
    )


def burn_columns_s(specs: Sequence[Spec]) -> tuple[int, ...]:
    """The windows of a table of burn: those that most objectives are alerted on, ascending."""
    counts: dict[int, int] = {}
    for _, objective in each(specs):
        for tier in tiers(objective):
            counts[tier.long_s] = counts.get(tier.long_s, 0) + 1
    common = sorted(counts, key=lambda window_s: (-counts[window_s], window_s))[:MAX_BURN_COLUMNS]
    return tuple(sorted(common))


def thresholds(specs: Sequence[Spec], signal: str) -> tuple[Limit, ...]:
    """The thresholds of all objectives of a signal: seconds, a share, or a count."""
    return tuple(
        Limit(spec.service, objective.name, objective.threshold, f"at most {words.limit(objective)}")
        for spec, objective in each(specs)
        if objective.signal == signal and objective.threshold is not None
    )


def values(limits: Sequence[Limit]) -> tuple[Decimal, ...]:
    """The distinct values of limits, ascending."""
    return tuple(sorted({limit.value for limit in limits}))


def quantiles(specs: Sequence[Spec], signal: str) -> tuple[Decimal, ...]:
    """The median, p95 and p99, and every percentile that is promised of the signal; ascending."""
    promised = {objective.goal for _, objective in each(specs) if objective.signal == signal}
    return tuple(sorted({*QUANTILES, *promised}))


def quantile_name(quantile: Decimal) -> str:
    """`p99.9` of 0.999."""
    return f"p{plain(quantile * 100)}"


def periods_s(specs: Sequence[Spec]) -> tuple[int, ...]:
    """The periods of all objectives, longest first."""
    return tuple(sorted({objective.window for _, objective in each(specs)}, reverse=True))


def of_time(specs: Sequence[Spec]) -> tuple[str, ...]:
    """Names of the objectives that judge time rather than requests."""
    judges_time = {
        is_time: {objective.name for _, objective in each(specs) if (objective.signal in STATE_SIGNALS) is is_time}
        for is_time in (True, False)
    }
    return tuple(sorted(judges_time[True] - judges_time[False]))


def factors_in_words(view: BurnView) -> str:
    """Which objectives alert above which burn, as a sentence; '' when none does."""
    by_text: dict[str, list[str]] = {}
    for limit in view.limits:
        by_text.setdefault(limit.text, []).append(f"{limit.service} {limit.objective}")
    return "".join(f" {text[0].upper()}{text[1:]}: {', '.join(names)}." for text, names in by_text.items())


def contract(specs: Sequence[Spec]) -> str:
    """Every objective with its promise and its alerts, as a Markdown table."""
    lines = ["| Service | Objective | Promise | Alerts when the burn is above |", "|---|---|---|---|"]
    for spec, objective in each(specs):
        told = "; ".join(f"{factor_text(t)} over {duration_text(t.long_s)} ({t.notify})" for t in tiers(objective))
        lines.append(f"| {spec.service} | {objective.name} | {words.promise(objective)} | {told or 'none'} |")
    return "\n".join(lines)


def each(specs: Sequence[Spec]) -> Iterator[tuple[Spec, Objective]]:
    """Every objective with its service."""
    for spec in specs:
        for objective in spec.objectives:
            yield spec, objective


def _factor(spec: Spec, objective: Objective, tier: Tier) -> Limit:
    return Limit(spec.service, objective.name, tier.factor, f"{tier.notify} above {factor_text(tier)}")
