"""The recordings of one objective: counts per window, and the ratios that come from them (DESIGN 4.6, 5).

Windows up to three days are `increase` of the sidecar's own counters: exact but for its extrapolation, whole across a
gap in scraping or a restart of Prometheus, and fresh at every evaluation. A longer window is the last three days of
these plus the hours before them, read from the hourly increases that were recorded: counts are added, ratios never
averaged, and a 28 d budget costs 600 samples instead of 160,000 an instance. Up to an hour between the two parts is
left out.

A hash is judged while some instance exports it. When no instance exports any hash of the objective (all are down, or
their scrapes fail) those judged last stay judged, so that silence neither clears nor moves a verdict; a reload stops
exporting the old hash, which leaves all windows at once.
"""

from collections.abc import Iterator

from alerts.group import Recording
from slo import promql
from slo.burn import FINE_WINDOW_S, Tier, pace_window_s, windows_s
from slo.objective import Objective, Spec
from slo.promql import COUNT_KEY, SERVICE_KEY, VERDICT_KEY, by, of_objective, on
from slo.quantity import HOUR_S, MINUTE_S, duration_text
from slo.signals import ALL_MODELS, BAD, HEARTBEAT, LABELS, MODEL_LABEL, RESULT, SERVICE_LABEL, SIGNAL

RESULT_LABEL = LABELS[RESULT]
HASH_KEY = tuple(label for label in COUNT_KEY if label != MODEL_LABEL)
EACH_MODEL = {f"{MODEL_LABEL}!=": ALL_MODELS}

FINE_LOOK_S = 6 * HOUR_S
COARSE_SPAN_S = 300
LOOKS = 720
"""Most points that a window longer than `FINE_LOOK_S` is sampled at to see when telemetry was there."""


def look_step_s(window_s: int, tick_s: int) -> int:
    """Seconds between two looks into a window for the presence of telemetry."""
    if window_s < FINE_WINDOW_S:
        return tick_s
    if window_s <= FINE_LOOK_S:
        return MINUTE_S
    return -(-window_s // LOOKS // MINUTE_S) * MINUTE_S


def telemetry_rule(spec: Spec, window_s: int, tick_s: int) -> Recording:
    """Share of the window in which a heartbeat of any instance of the service was there."""
    step_s = look_step_s(window_s, tick_s)
    heard = f"group {by(SERVICE_KEY)} ({HEARTBEAT.prometheus}{promql.of_service(spec)})"
    looks = f"[{duration_text(window_s)}:{duration_text(step_s)}]"
    share = f"count_over_time(({heard}){looks}) / {promql.number(window_s / step_s)}"
    return Recording(promql.telemetry(window_s), f"clamp_max({share}, 1)", {SERVICE_LABEL: spec.service})


def series_rules(spec: Spec, objective: Objective, tick_s: int) -> tuple[Recording, ...]:
    """Which hashes are judged, and since when each series is known; every other rule of the objective reads these."""
    own = _labels(spec, objective)
    events = promql.events(spec, objective)
    last_judged = f"{promql.JUDGED}{of_objective(spec, objective)}"
    held = f"{promql.slo_total(_longest_direct_s(objective))}{of_objective(spec, objective)}"
    judged = (
        f"group {by(HASH_KEY)} ({events})\n"
        f"or\n"
        f"{last_judged}\n"
        f"  unless {on(HASH_KEY[:-1])} {events}\n"
        f"  and {on(HASH_KEY)} {held}"
    )
    first = f"{promql.FIRST_SEEN}{of_objective(spec, objective, EACH_MODEL)}"
    return (
        Recording(promql.JUDGED, judged, own),
        Recording(promql.FIRST_SEEN, _judged(spec, objective, _first_seen(spec, objective, tick_s)), own),
        Recording(promql.FIRST_SEEN, f"min {by(HASH_KEY)} ({first})", own | {MODEL_LABEL: ALL_MODELS}),
    )


def recorded_windows_s(objective: Objective) -> tuple[int, ...]:
    """The windows of an objective that its period can fill, and the hour, which runbooks ask of any."""
    return tuple(sorted({w for w in windows_s(objective) if w <= objective.window} | {HOUR_S}))


def window_rules(spec: Spec, objective: Objective, window_s: int) -> tuple[Recording, ...]:
    """Events, bad events, bad share and burn of one window, per model and over all models."""
    direct = window_s <= promql.DIRECT_MAX_S
    counts = _direct_counts(spec, objective, window_s) if direct else _long_counts(spec, objective, window_s)
    own, selector = _labels(spec, objective), of_objective(spec, objective)
    bad, total = promql.slo_bad(window_s) + selector, promql.slo_total(window_s) + selector
    ratio = promql.error_ratio(window_s)
    return (
        *counts,
        Recording(ratio, f"max {by(VERDICT_KEY)} (\n  {bad}\n  / ({total} > 0)\n)", own),
        Recording(promql.burn_rate(window_s), f"{ratio}{selector} / {promql.number(objective.allowed_bad)}", own),
    )


def spans_windows_s(tier: Tier) -> tuple[int, ...]:
    """The windows whose bad spans a tier asks for: the long one, and where that is looked at coarsely the short too.

    Bad events in two minutes of a long window lie in two coarse spans, or in one; a tier that starts burns in the
    short window as well, so the one span is there, where minutes are told apart.
    """
    return (tier.long_s,) if tier.long_s <= FINE_LOOK_S else (tier.short_s, tier.long_s)


def spans_rules(spec: Spec, objective: Objective, window_s: int, tick_s: int) -> tuple[Recording, ...]:
    """In how many spans (ticks of a short window, minutes, five minutes from 6 h on) a bad counter grew anywhere.

    The counter is compared with itself one span earlier, at whole spans of the clock: nothing falls between two looks
    and nothing is extrapolated. A counter that fell (a restart) has not grown.
    """
    own = _labels(spec, objective)
    bad = promql.events(spec, objective, {RESULT_LABEL: BAD})
    span_s = tick_s if window_s < FINE_WINDOW_S else MINUTE_S if window_s <= FINE_LOOK_S else COARSE_SPAN_S
    span, window = duration_text(span_s), duration_text(window_s)

    def grew(key: tuple[str, ...]) -> str:
        return f"count_over_time((\n  count {by(key)} ({bad} > {bad} offset {span})\n)[{window}:{span}])"

    return (
        Recording(promql.bad_spans(window_s), grew(COUNT_KEY), own),
        Recording(promql.bad_spans(window_s), grew(HASH_KEY), own | {MODEL_LABEL: ALL_MODELS}),
    )


def coverage_rule(spec: Spec, objective: Objective, window_s: int) -> Recording:
    """Share of the window that is known: the lesser of the service's telemetry and the series' own age.

    An elastic service may be silent: only age counts there. So it does where no heartbeat was ever seen, for counters
    are telemetry too.
    """
    first = promql.FIRST_SEEN + of_objective(spec, objective)
    age = f"clamp_max((time() - {first}) / {window_s}, 1)"
    if spec.elastic:
        return Recording(promql.coverage(window_s), age, _labels(spec, objective))
    heard = promql.telemetry(window_s) + promql.of_service(spec)
    per_service = f"{on(SERVICE_KEY)} group_left ()"
    lesser = f"{age} <= {per_service} {heard}\nor\n0 * {first} + {per_service} {heard}\nor\n{age}"
    return Recording(promql.coverage(window_s), lesser, _labels(spec, objective))


def budget_rules(spec: Spec, objective: Objective) -> tuple[Recording, ...]:
    """The period's allowance A, the share of it left, and the time to its end at the last hour's rate (DESIGN 5).

    A = (1 - target) * total(P) / age: a young series has the budget of a whole period at the traffic seen so far.
    """
    own, selector, period_s = _labels(spec, objective), of_objective(spec, objective), objective.window
    bad, total = promql.slo_bad(period_s) + selector, promql.slo_total(period_s) + selector
    minute = f"floor({promql.FIRST_SEEN}{selector} / {MINUTE_S}) * {MINUTE_S}"
    age = f"clamp_max((time() - {minute}) / {period_s}, 1)"
    lately_s = pace_window_s(objective)
    allowance = promql.BUDGET_ALLOWANCE + selector
    remaining = f"1 - {bad} / ({allowance} > 0)\n  or\n  1 + 0 * {allowance}"
    bad_per_s = f"({promql.slo_bad(lately_s)}{selector} > 0) / clamp_max(time() - {minute}, {lately_s})"
    spent = f"0 * ({allowance} - {bad} <= 0 and {allowance} > 0)"
    exhausted_in = f"clamp_min({allowance} - {bad}, 0) / ({bad_per_s})\n  or\n  {spent}"
    verdict = f"min {by(VERDICT_KEY)}"
    return (
        Recording(promql.BUDGET_ALLOWANCE, f"{promql.number(objective.allowed_bad)} * {total}\n/ {age}", own),
        Recording(promql.BUDGET_REMAINING, f"{verdict} (\n  {remaining}\n)", own),
        Recording(promql.BUDGET_EXHAUSTED_IN, f"{verdict} (\n  {exhausted_in}\n)", own),
    )


def promise_rules(spec: Spec, objective: Objective) -> tuple[Recording, ...]:
    """Target and threshold as series, so that dashboards draw them from the spec and from nowhere else."""
    own = promql.service_labels(spec) | _labels(spec, objective) | {LABELS[SIGNAL]: objective.signal}
    target = Recording(promql.OBJECTIVE_TARGET, f"vector({promql.number(objective.goal)})", own)
    if objective.threshold is None:
        return (target,)
    return target, Recording(promql.OBJECTIVE_THRESHOLD, f"vector({promql.number(objective.threshold)})", own)


def _longest_direct_s(objective: Objective) -> int:
    return max(window for window in recorded_windows_s(objective) if window <= promql.DIRECT_MAX_S)


def _labels(spec: Spec, objective: Objective) -> dict[str, str]:
    """What tells the rules of one objective from those of another: the series carry the same."""
    return {SERVICE_LABEL: spec.service, promql.OBJECTIVE_LABEL: objective.name}


def _judged(spec: Spec, objective: Objective, expr: str) -> str:
    return f"(\n{_indented(expr)}\n)\nand {on(HASH_KEY)} {promql.JUDGED}{of_objective(spec, objective)}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _first_seen(spec: Spec, objective: Objective, tick_s: int) -> str:
    """The earliest time at which the series is seen in the period: near times finely, far ones coarsely."""
    window_s = objective.window
    # A young series' age caps its coverage of the short windows too, which are looked at tick by tick.
    near = [look_s for look_s in recorded_windows_s(objective) if look_s < FINE_WINDOW_S][-1:]
    near += [look_s for look_s in (FINE_LOOK_S, promql.DIRECT_MAX_S) if look_s < window_s]
    if window_s <= promql.DIRECT_MAX_S:
        near.append(window_s)
    counters = f"min {by(COUNT_KEY)} (timestamp({promql.events(spec, objective)}))"
    looks = [(counters, look_s, look_step_s(look_s, tick_s)) for look_s in near]
    if window_s > promql.DIRECT_MAX_S:
        hourly = promql.slo_total(HOUR_S) + of_objective(spec, objective, EACH_MODEL)
        looks.append((f"timestamp({hourly})", window_s, HOUR_S))
    return "min without (look) (\n" + "\n  or\n".join(f"  {_look(*look)}" for look in looks) + "\n)"


def _look(seen_at: str, window_s: int, step_s: int) -> str:
    window = duration_text(window_s)
    earliest = f"min_over_time(({seen_at})[{window}:{duration_text(step_s)}])"
    return f'label_replace({earliest}, "look", "{window}", "", "")'


def _direct_counts(spec: Spec, objective: Objective, window_s: int) -> Iterator[Recording]:
    """Counts from the counters. Before the first bad event its series may not exist: that is 0 bad, not unknown."""
    own, every = _labels(spec, objective), _labels(spec, objective) | {MODEL_LABEL: ALL_MODELS}
    each = of_objective(spec, objective, EACH_MODEL)
    bad_name, total_name = promql.slo_bad(window_s), promql.slo_total(window_s)

    def increase(more: dict[str, str]) -> str:
        events = promql.events(spec, objective, more)
        return f"sum {by(COUNT_KEY)} (increase({events}[{duration_text(window_s)}]))"

    bad = f"{increase({RESULT_LABEL: BAD})}\nor\n0 * {total_name}{each}"
    yield Recording(total_name, _judged(spec, objective, increase({})), own)
    yield Recording(total_name, f"sum {by(HASH_KEY)} ({total_name}{each})", every)
    yield Recording(bad_name, _judged(spec, objective, bad), own)
    yield Recording(bad_name, f"sum {by(HASH_KEY)} ({bad_name}{each})", every)


def _long_counts(spec: Spec, objective: Objective, window_s: int) -> Iterator[Recording]:
    """Counts of more than three days: those three, and before them the hours as they were recorded."""
    selector = of_objective(spec, objective)
    head_s = promql.DIRECT_MAX_S
    tail_range = f"[{duration_text(window_s - head_s)}:1h] offset {duration_text(head_s)}"
    for record in (promql.slo_total, promql.slo_bad):
        head = record(head_s) + selector
        tail = f"sum_over_time({record(HOUR_S)}{selector}{tail_range})"
        both = f"({head} or 0 * {tail})\n+\n({tail} or 0 * {head})"
        yield Recording(record(window_s), _judged(spec, objective, both), _labels(spec, objective))
