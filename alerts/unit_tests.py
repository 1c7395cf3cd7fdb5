"""promtool unit tests, made with the rules and shipped with them: `firsttoken alerts check DIR` runs them.

Traffic is drawn in segments, from which the samples of the sidecar's counters are written; verdicts are asked of
`ALERTS`, the series by which the rule engine says what fires, so that a test holds the verdict and not its wording.
Of every objective the fastest tier is tried, all objectives side by side on timelines of their own:

    burn      good events only, then bad only, then good again     silent, then fires for `*` and the model, then ends
    silence   good, then bad only, then no event at all            fires, and still does when the short window is past
    episodes  what has misled alerts before (see `episodes`)       those fire that must, and no others
    hang      overdue requests and no token for a minute           `LLMEngineStalled` within two minutes

The slower tiers have a file of their own, at a cadence that lets promtool walk through hours: a share of bad events
between what the second tier needs and what the fastest needs makes the second fire, and never the fastest.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from alerts.episodes import FIRING, SILENT, Pace, episodes
from alerts.group import Group
from alerts.rules import Target
from alerts.traffic import Segment, drawn
from slo import promql
from slo.burn import Tier, tiers
from slo.objective import Objective, Spec
from slo.promql import INSTANCE_LABEL
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
from slo.trouble import ENGINE_STALLED, STALLED_AGE_S, STALLED_OVERDUE

MODEL = "model-a"
INSTANCE = {INSTANCE_LABEL: "sidecar-1:9464", "job": "firsttoken"}
MIN_EVENTS_A_STEP = 20
MAX_STEP_S = 60
SLOW_STEP_S = 120
SLOW_EVENTS = 1000
APART = Decimal("1.2")
"""How far the bad shares that two tiers need must lie apart for traffic between them."""
LOOKS_AFTER = 6
"""So many steps after a spike the silent episodes are looked at, for its end would hide a false start."""
HANG_STEP_S = 15
HANG_PAGE_S = 120


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
    if fastest:
        scenarios.append(_episodes(spec, fastest, target))
    return _file(groups, rules_file, step_s, scenarios)


def slow_tests(spec: Spec, groups: Sequence[Group], rules_file: str) -> dict[str, object] | None:
    """The test file of the slower tiers of a service; None where no objective has two that traffic can tell apart."""
    pairs = [(objective, *_two_fastest(objective)) for objective in spec.objectives if len(tiers(objective)) > 1]
    apart = [pair for pair in pairs if pair[1].bad_share_needed >= APART * pair[2].bad_share_needed]
    if not apart:
        return None
    step_s = min(min(SLOW_STEP_S, first.short_s // 2) for _, first, _ in apart)
    timelines = [_slow(objective, first, second, step_s) for objective, first, second in apart]
    scenario = _scenario(spec, timelines, step_s)
    quiet = [
        _firing(spec, replace(timeline, tier=first), timeline.verdicts[-1][0], is_firing=False)
        for timeline, (_, first, _) in zip(timelines, apart, strict=True)
    ]
    checks = scenario["promql_expr_test"]
    assert isinstance(checks, list)
    return _file(groups, rules_file, step_s, [scenario | {"promql_expr_test": [*checks, *quiet]}])


def _two_fastest(objective: Objective) -> tuple[Tier, Tier]:
    first, second, *_ = sorted(tiers(objective), key=lambda tier: (tier.long_s, tier.short_s))
    return first, second


def _slow(objective: Objective, first: Tier, second: Tier, step_s: int) -> Timeline:
    share = (first.bad_share_needed + second.bad_share_needed) / 2
    bad = math.ceil(SLOW_EVENTS * share)
    detection_s = second.detection_s(share)
    assert detection_s is not None
    steps = math.ceil(1.1 * float(detection_s) / step_s) + 3
    early_s, fired_s = math.floor(float(detection_s) / step_s / 2) * step_s, steps * step_s
    segments = (Segment(steps, good=SLOW_EVENTS - bad, bad=bad),)
    return Timeline(objective, second, step_s, segments, ((early_s, False), (fired_s, True)))


def _file(
    groups: Sequence[Group], rules_file: str, step_s: int, scenarios: Sequence[Mapping[str, object]]
) -> dict[str, object]:
    return {
        "rule_files": [rules_file],
        "evaluation_interval": duration_text(step_s),
        "group_eval_order": [group.name for group in groups],
        "tests": list(scenarios),
    }


def _episodes(spec: Spec, fastest: Sequence[tuple[Objective, Tier]], target: Target) -> dict[str, object]:
    """The episodes of every objective, at the finest step of all: a coarser one is drawn in more of them."""
    paces = [_until_firing(tier, target) for _, tier in fastest]
    step_s = min(pace.step_s for pace in paces)
    series, checks = [], []
    for (objective, tier), pace in zip(fastest, paces, strict=True):
        fine = _finer(pace, step_s)
        for counted in episodes(fine):
            labels = dict(counted.labels) | {LABELS[RESULT]: counted.result} | _of(objective)
            series.append({"series": _series(spec, SLO_EVENTS.prometheus, labels), "values": counted.values})
        any_of_them = _firing_by_model(spec, objective, tier, {f"{MODEL_LABEL}!=": ALL_MODELS})
        silent = _firing_by_model(spec, objective, tier, {f"{MODEL_LABEL}=~": "|".join(SILENT)})
        after = (fine.healthy + steps for steps in range(1, LOOKS_AFTER + 1))
        checks.append(_asked(any_of_them, fine.healthy * step_s, ()))
        checks += (_asked(silent, steps * step_s, ()) for steps in after)
        checks.append(_asked(any_of_them, fine.steps * step_s, FIRING))
    longest = max(_finer(pace, step_s).steps for pace in paces)
    heartbeat = {"series": _series(spec, HEARTBEAT.prometheus, {}), "values": f"0+{step_s}x{longest}"}
    return {"interval": duration_text(step_s), "input_series": [heartbeat, *series], "promql_expr_test": checks}


def _finer(pace: Pace, step_s: int) -> Pace:
    each = pace.step_s // step_s
    return Pace(pace.healthy * each, pace.burning * each, step_s, pace.events)


def _firing_by_model(spec: Spec, objective: Objective, tier: Tier, models: Mapping[str, str]) -> str:
    """How many alerts of the tier fire, by model, among those that match."""
    matchers = {
        "alertname": SIGNALS[objective.signal].alert,
        "alertstate": "firing",
        promql.TIER_LABEL: tier.name,
        **models,
    }
    return f"count by ({MODEL_LABEL}) ({promql.ALERTS}{promql.of_objective(spec, objective, matchers)})"


def _asked(expr: str, at_s: int, models: Sequence[str]) -> dict[str, object]:
    """That the expression gives one for each of these models, and nothing else; '' is a series without the label."""
    labels = [promql.selector({MODEL_LABEL: model} if model else {}) for model in models]
    return {
        "expr": expr,
        "eval_time": duration_text(at_s),
        "exp_samples": [{"labels": text, "value": 1} for text in labels],
    }


def _burn(objective: Objective, tier: Tier, target: Target) -> Timeline:
    pace = _until_firing(tier, target)
    healthy, burning, step_s, events = pace.healthy, pace.burning, pace.step_s, pace.events
    recovering = math.ceil(tier.short_s / step_s) + 4
    early_s = (healthy + math.floor(tier.long_s * tier.bad_share_needed / step_s / 2)) * step_s
    fired_s = (healthy + burning) * step_s
    verdicts = ((early_s, False), (fired_s, True), (fired_s + recovering * step_s, False))
    segments = (Segment(healthy, good=events), Segment(burning, bad=events), Segment(recovering, good=events))
    return Timeline(objective, tier, step_s, segments, verdicts)


def _silence(objective: Objective, tier: Tier, target: Target) -> Timeline:
    pace = _until_firing(tier, target)
    healthy, burning, step_s, events = pace.healthy, pace.burning, pace.step_s, pace.events
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


def _until_firing(tier: Tier, target: Target) -> Pace:
    """How long it takes a tier to fire.

    A tier is detected after L * f * (1 - target) of only bad events however long it was healthy before (what a young
    window lacks in good events, coverage takes away), but not before these lie in two spans; a tenth and three steps
    are added for `increase`'s extrapolation and the cadence.
    """
    step_s = max(target.interval_s(tier.short_s), min(tier.short_s // 5, MAX_STEP_S))
    span_s = tier.spread_s or step_s
    detection_s = max(float(tier.long_s * tier.bad_share_needed), 2 * span_s)
    healthy = math.ceil(tier.long_s / step_s / 6) + 2
    burning = math.ceil(1.1 * detection_s / step_s) + 3
    return Pace(healthy, burning, step_s, max(MIN_EVENTS_A_STEP, 2 * tier.min_bad_events))


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
        "promql_expr_test": [
            _firing(spec, timelines[index], at_s, is_firing=verdicts[index][at_s]) for at_s, index in checks
        ],
    }


def _firing(spec: Spec, timeline: Timeline, at_s: int, *, is_firing: bool) -> dict[str, object]:
    expr = _firing_by_model(spec, timeline.objective, timeline.tier, {})
    return _asked(expr, at_s, sorted((ALL_MODELS, MODEL)) if is_firing else [])


def _counters(spec: Spec, timeline: Timeline, step_s: int) -> Iterator[tuple[str, str]]:
    each, labels = timeline.step_s // step_s, {MODEL_LABEL: MODEL} | _of(timeline.objective)
    for result in (GOOD, BAD):
        name = _series(spec, SLO_EVENTS.prometheus, labels | {LABELS[RESULT]: result})
        yield name, drawn([(segment.steps * each, getattr(segment, result)) for segment in timeline.segments])


def _of(objective: Objective) -> dict[str, str]:
    return {promql.OBJECTIVE_LABEL: objective.name, promql.HASH_LABEL: objective.hash}


def _hang(spec: Spec) -> dict[str, object]:
    """Four requests overdue from the start, the last token's age growing with time, and no event of any kind."""
    steps = HANG_PAGE_S // HANG_STEP_S
    overdue = _series(spec, OVERDUE.prometheus, {MODEL_LABEL: MODEL, LABELS[SIGNAL]: "ttft"})
    firing = promql.ALERTS + promql.of_service(spec, alertname=ENGINE_STALLED, alertstate="firing")
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
