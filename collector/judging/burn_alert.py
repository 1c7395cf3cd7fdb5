"""What receivers are told of a burn or a spent budget: an alert's labels, and its figures in words (DESIGN 4.6)."""

from dataclasses import dataclass
from typing import Literal

from collector.judging.track import Track
from collector.values import alerting
from collector.values.alerting import AlertKey, Wanted
from collector.values.verdicts import BudgetRow
from collector.windowing.events import Held
from slo import burn
from slo.burn import Tier
from slo.promql import LONG_WINDOW_LABEL, SHORT_WINDOW_LABEL
from slo.quantity import about_text, duration_text, percent_text
from slo.signals import SIGNALS
from slo.trouble import BUDGET_EXHAUSTED
from slo.words import breach


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of an alert: what its long window holds, at which burn, and what is left."""

    held: Held
    rate: float
    budget: BudgetRow


def key(track: Track, tier: Tier) -> AlertKey:
    """Whose alert a tier's is."""
    name = SIGNALS[track.objective.signal].alert
    return AlertKey(name, track.environment, track.spec.service, track.model, track.objective.name, tier.name)


def burning(track: Track, tier: Tier, state: Literal["pending", "firing"], *, figures: Figures) -> Wanted:
    """The alert of a tier that pends or fires."""
    of = key(track, tier)
    return Wanted(of, state, _labels(track, of, tier), _burn_annotations(track, of, tier, figures))


def exhausted(track: Track, budget: BudgetRow) -> Wanted | None:
    """The ticket for a spent budget; none while too little of the period is known."""
    if budget.remaining > 0 or budget.coverage < burn.MIN_COVERAGE_EXHAUSTED:
        return None
    of = AlertKey(BUDGET_EXHAUSTED, track.environment, track.spec.service, track.model, track.objective.name)
    window = duration_text(track.objective.window)
    return Wanted(
        of,
        "firing",
        _labels(track, of, None),
        alerting.annotations(
            summary=f"Objective {track.objective.name} of {track.spec.service} has spent its error budget.",
            description=(
                f"{_subject(track)}: {budget.bad} of {budget.good + budget.bad} events of the last {window} were bad "
                f"({breach(track.objective)}); {budget.allowance:.0f} may be. Budget left: {_share(budget.remaining)}."
            ),
            runbook_url=track.objective.runbook_url or alerting.runbook(of.name),
        ),
    )


def _labels(track: Track, of: AlertKey, tier: Tier | None) -> alerting.Pairs:
    routed: dict[str, str | None] = {"severity": "warning", "notify": "ticket"}
    if tier is not None:
        routed = {"severity": tier.severity, "notify": tier.notify}
        routed |= {LONG_WINDOW_LABEL: duration_text(tier.long_s), SHORT_WINDOW_LABEL: duration_text(tier.short_s)}
    return alerting.labels(of, {**track.objective.labels, **routed, "owner": track.objective.owner})


def _burn_annotations(track: Track, of: AlertKey, tier: Tier, figures: Figures) -> alerting.Pairs:
    long, held, budget = duration_text(tier.long_s), figures.held, figures.budget
    ends = "no bad event came in the last hour"
    if budget.exhausted_in_s is not None:
        gone_in = about_text(budget.exhausted_in_s)
        ends = "it is spent" if budget.exhausted_in_s == 0 else f"at the last hour's rate it ends in {gone_in}"
    return alerting.annotations(
        summary=(
            f"Objective {track.objective.name} of {track.spec.service} burns its error budget too fast "
            f"(tier {tier.name}, over {long})."
        ),
        description=(
            f"{_subject(track)}: {held.bad} of {held.good + held.bad} events of the last {long} were bad "
            f"({breach(track.objective)}; {percent_text(track.objective.allowed_bad)} may be). "
            f"Burn {figures.rate:.2f}, alert above {burn.factor_text(tier)}. "
            f"Budget left: {_share(budget.remaining)}; {ends}."
        ),
        runbook_url=track.objective.runbook_url or alerting.runbook(of.name),
    )


def _subject(track: Track) -> str:
    environment = f" in {track.environment}" if track.environment else ""
    return f"{track.spec.service}{environment}, model {track.model}"


def _share(fraction: float) -> str:
    return f"{100 * fraction:.1f}%"
