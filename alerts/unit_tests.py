"""promtool unit tests, made with the rules and shipped with them: `firsttoken alerts check DIR` runs them.

Traffic is drawn in segments, from which the samples of the sidecar's counters are written; verdicts are asked of
`ALERTS`, the series by which the rule engine says what fires, so that a test holds the verdict and not its wording.
Of every objective the fastest tier is tried, all objectives side by side on timelines of their own:

    burn      good events only, then bad only, then good again     silent, then fires for `*` and the model, then ends
    silence   good, then bad only, then no event at all            fires, and still does when the short window is past
    hang      overdue requests and no token for a minute           `LLMEngineStalled` within two minutes
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from alerts.group import Group
from alerts.rules import Target
from alerts.state_alert import INSTANCE_LABEL, STALLED_AGE_S, STALLED_OVERDUE
from slo import promql
from slo.burn import Tier, tiers
from slo.objective import Objective, Spec
from slo.quantity import duration_text
from slo.signals import (
    ALL_MODELS,
    BAD,
    GOOD,
    HEARTBEAT,
    LABELS,
    LAST_TOKEN_AGE,
    MODEL_LABEL,
    OVERDUE,
    RESULT,
    SIGNAL,
    SIGNALS,
    SLO_EVENTS,
)

MODEL = "model-a"
INSTANCE = {INSTANCE_LABEL: "sidecar-1:9464", "job": "firsttoken"}
MIN_EVENTS_A_STEP = 20
MAX_STEP_S = 60
HANG_STEP_S = 15
HANG_PAGE_S = 120


@dataclass(frozen=True, slots=True)
class Segment:
    """`steps` samples, each higher than the one before by so many good and bad events."""

    steps: int
    good: int = 0
    bad: int = 0


@dataclass(frozen=True, slots=True)
class Timeline:
    """An objective's traffic in a scenario, a sample every `step_s`, and when its alert fires (True) or not."""

    objective: Objective
    tier: Tier
    step_s: int
    segments: tuple[Segment, ...]
    verdicts: tuple[tuple[int, bool], ...]


def service_tests(spec: Spec, groups: Sequence[Group], rules_file: str, target: Target) -> dict[str, object]:
    """The test file of a service. promtool runs all groups at one cadence, in the order in which they stand."""
    fastest = [(o, min(tiers(o), key=lambda t: (t.long_s, t.short_s))) for o in spec.objectives if tiers(o)]
    burns = [_burn(objective, tier, target) for objective, tier in fastest]
    silences = [_silence(objective, tier, target) for objective, tier in fastest]
    step_s = min((timeline.step_s for timeline in burns), default=HANG_STEP_S)
    scenarios = [_hang(spec), *(_scenario(spec, kind, step_s) for kind in (burns, silences) if kind)]
    return {
        "rule_files": [rules_file],
        "evaluation_interval": duration_text(step_s),
        "group_eval_order": [group.name for group in groups],
        "tests": scenarios,
    }


def _burn(objective: Objective, tier: Tier, target: Target) -> Timeline:
    healthy, burning, step_s, events = _until_firing(tier, target)
    recovering = math.ceil(tier.short_s / step_s) + 4
    early_s = (healthy + math.floor(tier.long_s * tier.bad_share_needed / step_s / 2)) * step_s
    fired_s = (healthy + burning) * step_s
    verdicts = ((early_s, False), (fired_s, True), (fired_s + recovering * step_s, False))
    segments = (Segment(healthy, good=events), Segment(burning, bad=events), Segment(recovering, good=events))
    return Timeline(objective, tier, step_s, segments, verdicts)


def _silence(objective: Objective, tier: Tier, target: Target) -> Timeline:
    healthy, burning, step_s, events = _until_firing(tier, target)
    silent = math.ceil(tier.short_s / step_s) + 4
    fired_s = (healthy + burning) * step_s
    verdicts = ((fired_s, True), (fired_s + silent * step_s, True))
    return Timeline(
        objective,
        tier,
        step_s,
        (Segment(healthy, good=events), Segment(burning, bad=events), Segment(silent)),
        verdicts,
    )


def _until_firing(tier: Tier, target: Target) -> tuple[int, int, int, int]:
    """Steps of health, steps of only bad events that fire, a step's seconds and events.

    A tier is detected after L * f * (1 - target) of only bad events however long it was healthy before (what a young
    window lacks in good events, coverage takes away), but not before these lie in two spans; a tenth and three steps
    are added for `increase`'s extrapolation and the cadence.
    """
    step_s = max(target.interval_s(tier.short_s), min(tier.short_s // 5, MAX_STEP_S))
    span_s = tier.spread_s or step_s
    detection_s = max(float(tier.long_s * tier.bad_share_needed), 2 * span_s)
    healthy = math.ceil(tier.long_s / step_s / 6) + 2
    return healthy, math.ceil(1.1 * detection_s / step_s) + 3, step_s, max(MIN_EVENTS_A_STEP, 2 * tier.min_bad_events)


def _scenario(spec: Spec, timelines: Sequence[Timeline], step_s: int) -> dict[str, object]:
    """Objectives side by side. Samples come at the finest step of all; a coarser timeline is drawn in more of them."""
    length = max(sum(segment.steps for segment in timeline.segments) * timeline.step_s for timeline in timelines)
    heartbeat = _series(spec, HEARTBEAT.prometheus, {}), f"0+{step_s}x{math.ceil(length / step_s)}"
    series = [heartbeat, *(counter for timeline in timelines for counter in _counters(spec, timeline, step_s))]
    checks = sorted((at_s, index) for index, timeline in enumerate(timelines) for at_s, _ in timeline.verdicts)
    verdicts = [dict(timeline.verdicts) for timeline in timelines]
    return {
        "interval": duration_text(step_s),
        "input_series": [{"series": name, "values": values} for name, values in series],
        "promql_expr_test": [_firing(spec, timelines[index], at_s, verdicts[index][at_s]) for at_s, index in checks],
    }


def _firing(spec: Spec, timeline: Timeline, at_s: int, is_firing: bool) -> dict[str, object]:
    matchers = {
        "alertname": SIGNALS[timeline.objective.signal].alert,
        "alertstate": "firing",
        promql.TIER_LABEL: timeline.tier.name,
    }
    firing = promql.ALERTS + promql.of_objective(spec, timeline.objective, matchers)
    models = sorted((ALL_MODELS, MODEL)) if is_firing else []
    return {
        "expr": f"count by ({MODEL_LABEL}) ({firing})",
        "eval_time": duration_text(at_s),
        "exp_samples": [{"labels": promql.selector({MODEL_LABEL: model}), "value": 1} for model in models],
    }


def _counters(spec: Spec, timeline: Timeline, step_s: int) -> Iterator[tuple[str, str]]:
    objective, each = timeline.objective, timeline.step_s // step_s
    labels = {
        MODEL_LABEL: MODEL,
        promql.OBJECTIVE_LABEL: objective.name,
        promql.HASH_LABEL: objective.hash,
    }
    for result in (GOOD, BAD):
        name = _series(spec, SLO_EVENTS.prometheus, labels | {LABELS[RESULT]: result})
        yield name, drawn([(segment.steps * each, getattr(segment, result)) for segment in timeline.segments])


def drawn(segments: Sequence[tuple[int, int]]) -> str:
    """A counter's samples in promtool's notation: from 0, so many steps of so much each, one segment after another."""
    value, parts = 0, ["0"]
    for steps, increment in segments:
        if steps > 0:
            parts.append(f"{value + increment}+{increment}x{steps - 1}")
            value += increment * steps
    return " ".join(parts)


def _hang(spec: Spec) -> dict[str, object]:
    """Four requests overdue from the start, the last token's age growing with time, and no event of any kind."""
    steps = HANG_PAGE_S // HANG_STEP_S
    overdue = _series(spec, OVERDUE.prometheus, {MODEL_LABEL: MODEL, LABELS[SIGNAL]: "ttft"})
    firing = promql.ALERTS + promql.of_service(spec, alertname="LLMEngineStalled", alertstate="firing")
    paged = {"labels": promql.selector({INSTANCE_LABEL: INSTANCE[INSTANCE_LABEL]}), "value": 1}
    checks: list[tuple[int, list[object]]] = [(STALLED_AGE_S - HANG_STEP_S, []), (HANG_PAGE_S, [paged])]
    return {
        "interval": duration_text(HANG_STEP_S),
        "input_series": [
            {"series": overdue, "values": f"{STALLED_OVERDUE + 1}x{steps}"},
            {"series": _series(spec, LAST_TOKEN_AGE.prometheus, {}), "values": f"0+{HANG_STEP_S}x{steps}"},
        ],
        "promql_expr_test": [
            {
                "expr": f"count by ({INSTANCE_LABEL}) ({firing})",
                "eval_time": duration_text(at_s),
                "exp_samples": expected,
            }
            for at_s, expected in checks
        ],
    }


def _series(spec: Spec, name: str, labels: Mapping[str, str]) -> str:
    return name + promql.selector(promql.service_labels(spec) | INSTANCE | dict(labels))
