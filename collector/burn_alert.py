"""What receivers are told of a burn or a spent budget: an alert's labels, and its figures in words (DESIGN 4.6)."""

from dataclasses import dataclass
from typing import Literal

from collector import alerting
from collector.alerting import AlertKey, Wanted
from collector.events import Held
from collector.track import Track
from collector.verdicts import BudgetRow
from slo import burn
from slo.burn import Tier
from slo.quantity import duration_text, percent_text, plain
from slo.signals import SIGNALS
from slo.trouble import BUDGET_EXHAUSTED


@dataclass(frozen=True, slots=True)
class Told:
    """The figures of an alert: what its long window holds, at which burn, and what is left."""

    held: Held
    rate: float
    budget: BudgetRow


def key(track: Track, tier: Tier) -> AlertKey:
    """Whose alert a tier's is."""
    name = SIGNALS[track.objective.signal].alert
    return AlertKey(name, track.environment, track.spec.service, track.model, track.objective.name, tier.name)


def burning(track: Track, tier: Tier, state: Literal["pending", "firing"], *, told: Told) -> Wanted:
    """The alert of a tier that pends or fires."""
    of = key(track, tier)
    return Wanted(of, state, _labels(track, of, tier), _burn_annotations(track, of, tier, told))


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
                f"({_promise(track)}); {budget.allowance:.0f} may be. Budget left: {_share(budget.remaining)}."
            ),
            runbook_url=track.objective.runbook_url or alerting.runbook(of.name),
        ),
    )


def _labels(track: Track, of: AlertKey, tier: Tier | None) -> alerting.Pairs:
    routed: dict[str, str | None] = {"severity": "warning", "notify": "ticket"}
    if tier is not None:
        routed = {"severity": tier.severity, "notify": tier.notify}
        routed |= {"long_window": duration_text(tier.long_s), "short_window": duration_text(tier.short_s)}
    return alerting.labels(of, {**track.objective.labels, **routed, "owner": track.objective.owner})


def _burn_annotations(track: Track, of: AlertKey, tier: Tier, told: Told) -> alerting.Pairs:
    long, held, budget = duration_text(tier.long_s), told.held, told.budget
    ends = "no bad event came in the last hour"
    if budget.exhausted_in_s is not None:
        ends = "it is spent" if budget.exhausted_in_s == 0 else f"it ends in {_span(budget.exhausted_in_s)}"
    return alerting.annotations(
        summary=(
            f"Objective {track.objective.name} of {track.spec.service} burns its error budget too fast "
            f"(tier {tier.name}, over {long})."
        ),
        description=(
            f"{_subject(track)}: {held.bad} of {held.good + held.bad} events of the last {long} were bad "
            f"({_promise(track)}; {percent_text(track.objective.allowed_bad)} may be). Burn {told.rate:.2f}, "
            f"alert above {burn.factor_text(tier)}. Budget left: {_share(budget.remaining)}; {ends}."
        ),
        runbook_url=track.objective.runbook_url or alerting.runbook(of.name),
    )


def _subject(track: Track) -> str:
    environment = f" in {track.environment}" if track.environment else ""
    return f"{track.spec.service}{environment}, model {track.model}"


def _promise(track: Track) -> str:
    """What a bad event is, in words."""
    signal, threshold = SIGNALS[track.objective.signal], track.objective.threshold
    if threshold is None:
        return f"{signal.title}: no answer"
    texts = {"duration": duration_text(threshold), "share": percent_text(threshold)}
    return f"{signal.title} over {texts.get(signal.threshold, plain(threshold))}"


def _share(fraction: float) -> str:
    return f"{100 * fraction:.1f}%"


def _span(seconds: float) -> str:
    """A time as people say it, to two units."""
    minutes = int(seconds // 60)
    for unit, size, below in (("d", 1440, "h"), ("h", 60, "m")):
        if minutes >= size:
            return f"{minutes // size}{unit} {minutes % size // (60 if below == 'h' else 1)}{below}"
    return f"{minutes}m" if minutes else f"{seconds:.0f}s"
