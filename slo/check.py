"""What `slo check` says of a spec: for each burn alert what it needs and how fast it is, and what is left unwatched.

Facts are values; how they are laid out on a terminal or as JSON is the command's business.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from slo.burn import Tier, factor_text, left_out, tiers
from slo.chance import Traffic, false_alerts
from slo.labels import RESERVED
from slo.objective import Objective, PromptBytes, Spec
from slo.quantity import about_text, duration_text, percent_text, plain
from slo.signals import SIGNALS
from slo.words import promise

BAD_SHARES = (Decimal(1), Decimal("0.5"), Decimal("0.2"))
"""Constant shares of bad events at which a tier's time to detection is shown."""
ALWAYS = 30 * 86400.0
"""What stands in JSON, which knows no infinity, for an alert that should fire all the time: one a second."""
LONG_TOKEN_S = 300
"""Nobody waits so long for one token: the unit is a slip, as 500m for 500ms."""
KEPT = Decimal("0.5")
"""How much of what an objective allows is bad, of the service that false alerts are reckoned for: it keeps its promise
with room to spare."""


@dataclass(frozen=True, slots=True)
class TierFacts:
    """One tier: seconds to detection by bad share, and the false alerts to expect in 30 days. These are None without
    traffic, and for the seconds of an engine's state, of which a bad one is seldom alone."""

    tier: Tier
    detection_s: tuple[Decimal | None, ...]
    reset_s: Decimal | None
    false_alerts: float | None

    def mapping(self) -> dict[str, object]:
        """The facts as JSON: numbers in seconds, events and shares."""
        tier = self.tier
        return {
            "tier": tier.name,
            "long_window_s": tier.long_s,
            "short_window_s": tier.short_s,
            "notify": tier.notify,
            "severity": tier.severity,
            "factor": float(tier.factor),
            "bad_share_needed": float(tier.bad_share_needed),
            "min_bad_events": tier.min_bad_events,
            "detection_s": {
                percent_text(share): None if seconds is None else float(seconds)
                for share, seconds in zip(BAD_SHARES, self.detection_s, strict=True)
            },
            "reset_s": None if self.reset_s is None else float(self.reset_s),
            "budget_spent": float(tier.budget_spent),
            "false_alerts_30d": None
            if self.false_alerts is None or math.isinf(self.false_alerts)
            else self.false_alerts,
        }


def facts(objective: Objective, per_s: Decimal | None) -> tuple[TierFacts, ...]:
    """The objective's tiers; with traffic (events a second) also how often each rings for nothing."""
    return tuple(
        TierFacts(
            tier,
            tuple(tier.detection_s(share) for share in BAD_SHARES),
            tier.reset_s(Decimal(1)),
            _false_alerts(objective, tier, per_s),
        )
        for tier in tiers(objective)
    )


def _false_alerts(objective: Objective, tier: Tier, per_s: Decimal | None) -> float | None:
    if per_s is None or not _judges_requests(objective):
        return None
    return false_alerts(tier, Traffic(float(per_s), float(objective.allowed_bad * KEPT)))


def _judges_requests(objective: Objective) -> bool:
    return SIGNALS[objective.signal].threshold in ("duration", "none")


def mapping(spec: Spec, per_s: Decimal | None) -> dict[str, object]:
    """The whole check of a service as JSON."""
    return {
        "service": spec.service,
        "environment": spec.environment,
        "spec_hash": spec.hash,
        "objectives": [
            {
                "objective": objective.name,
                "signal": objective.signal,
                "promise": promise(objective),
                "target": float(objective.goal),
                "window_s": objective.window,
                "tiers": [fact.mapping() for fact in facts(objective, per_s)],
            }
            for objective in spec.objectives
        ],
        "warnings": list(warnings(spec, per_s)),
    }


HEADINGS = (
    "tier",
    "windows",
    "notify",
    "burn over",
    "bad over",
    "bad events",
    *(f"at {percent_text(share)} bad" for share in BAD_SHARES),
    "ends after",
    "spends",
)
FALSE_ALERTS = "false in 30d"


def headings(per_s: Decimal | None) -> tuple[str, ...]:
    """What stands over the cells of `row`."""
    return HEADINGS if per_s is None else (*HEADINGS, FALSE_ALERTS)


def row(fact: TierFacts, per_s: Decimal | None) -> Iterator[str]:
    """The facts as people read them."""
    tier = fact.tier
    yield tier.name
    yield f"{duration_text(tier.long_s)}/{duration_text(tier.short_s)}"
    yield tier.notify
    yield factor_text(tier)
    yield percent_text(round(tier.bad_share_needed, 4))
    yield f">= {tier.min_bad_events}"
    yield from map(_about, fact.detection_s)
    yield _about(fact.reset_s)
    yield percent_text(round(tier.budget_spent, 3))
    if per_s is not None:
        yield "-" if fact.false_alerts is None else _times(fact.false_alerts)


def warnings(spec: Spec, per_s: Decimal | None = None) -> Iterator[str]:
    """What a spec leaves unwatched though nothing in it is wrong."""
    by_signal = {name: [o for o in spec.objectives if o.signal == name] for name in SIGNALS}
    if by_signal["ttft"] and not by_signal["e2e"]:
        yield (
            f"service {spec.service} has no e2e objective: requests that do not stream have no first token, "
            "and only availability judges them"
        )
    if gap := _uncovered_bytes(by_signal["ttft"]):
        yield f"no ttft objective of service {spec.service} covers prompts of {gap}"
    for objective in spec.objectives:
        longest = objective.threshold or Decimal(0)
        if objective.signal in ("ttft", "tpot") and longest >= LONG_TOKEN_S:
            yield (
                f"objective {objective.name} lets a token take {duration_text(longest)}: "
                "m is minutes and h hours, milliseconds are written ms"
            )
        yield from _tier_warnings(objective, per_s)
        for label in objective.labels:
            if label in RESERVED:
                yield (
                    f"label {label} of objective {objective.name} is one that alerts have already, and alerts build "
                    "refuses it: rename it"
                )


def _tier_warnings(objective: Objective, per_s: Decimal | None) -> Iterator[str]:
    found = tiers(objective)
    if not found:
        yield (
            f"objective {objective.name} has no burn alert: its window, {duration_text(objective.window)}, is shorter "
            "than every default tier: give it alerts.tiers"
        )
    for tier in left_out(objective):
        yield (
            f"objective {objective.name} has no tier {tier.name}: at burn {factor_text(tier)} it would need "
            f"{percent_text(tier.bad_share_needed)} bad, more than there can be: give it alerts.tiers"
        )
    for tier in found:
        if tier.factor < 1:
            yield (
                f"tier {tier.name} of objective {objective.name} fires from {percent_text(tier.bad_share_needed)} bad "
                f"on, though {percent_text(objective.allowed_bad)} may be: give it alerts.tiers, or a higher target"
            )
        if tier.budget_spent >= 1:
            spent, long = percent_text(round(tier.budget_spent, 3)), duration_text(tier.long_s)
            yield (
                f"tier {tier.name} of objective {objective.name} fires when {spent} of the budget is spent: {long} is "
                f"too long a window for a period of {duration_text(tier.period_s)}: give it alerts.tiers"
            )
        if per_s is not None and _judges_requests(objective) and per_s * tier.long_s < tier.min_bad_events:
            yield (
                f"tier {tier.name} of objective {objective.name} cannot fire at that traffic: it needs "
                f"{tier.min_bad_events} bad events, and {duration_text(tier.long_s)} sees "
                f"{plain(round(per_s * tier.long_s, 1))} in all: lower alerts.min_bad_events, or add synthetic traffic"
            )


def _uncovered_bytes(objectives: list[Objective]) -> str | None:
    """The first range of prompt sizes that no objective judges, as text; None when there is none, or no objective."""
    ranges = [o.match.prompt_bytes or PromptBytes() for o in objectives]
    reach = 0
    for judged in sorted(ranges, key=lambda judged: judged.at_least):
        if judged.at_least > reach:
            return f"{reach} to {judged.at_least} bytes"
        if judged.below is None:
            return None
        reach = max(reach, judged.below)
    return f"{reach} bytes and more" if ranges else None


def _about(seconds: Decimal | None) -> str:
    return "never" if seconds is None else about_text(seconds)


def _times(expected: float) -> str:
    if math.isinf(expected):
        return "always"
    return "< 0.01" if expected < 0.01 else f"{expected:.2f}" if expected < 10 else f"{expected:.0f}"
