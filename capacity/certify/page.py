"""A certification as a page: the verdict, each rate with what it missed, and the runs behind it as curves over load."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from capacity.certify.account import Kept
from capacity.certify.evidence import Evidence
from capacity.certify.report import missed_text, notes
from capacity.certify.result import Result
from capacity.certify.run_table import fact, good_share, run_table
from capacity.certify.search import Probe
from capacity.certify.sensitivity import NAMES, name_of
from capacity.printed import moment_text
from capacity.report.chart import Axis, Chart, Dot, Dots, Hue, Line, Mark, Rule
from capacity.report.drawing import value_text
from capacity.report.page import Facts, Mood, Page, Part, Table, Words
from slo.objective import LATENCY_SIGNALS
from slo.quantity import duration_text, percent_text

HUES: Mapping[str, Hue] = {"certified": "good", "refuted": "bad", "unresolved": "soft"}
MOODS: Mapping[str, Mood] = {"certified": "good", "not_certifiable": "bad"}
LEAST_SHARE, LEAST_PART = 1e-3, 1e-2
"""Of requests that miss, and of a budget that is spent: what is less, or none, is drawn here on a logarithmic axis."""
WORTH = "Worth: how many requests that know nothing of each other say as much."
ASIDE = 0.12
"""How far objectives stand beside each other where they share a workload."""
HUE_OF: Sequence[Hue] = ("first", "second", "third")
LOAD = Axis("requests/s offered", from_zero=False)
Rows = Sequence[tuple[float, Kept]]


def page_of(result: Result, settings: dict[str, object]) -> Page:
    """The report."""
    parts: list[Part] = [_figures(result)]
    if result.outcome is not None and result.outcome.probes:
        probes = sorted(result.outcome.probes, key=lambda probe: probe.rate_rps)
        runs = list(_runs(result, probes))
        parts += [_missed(result, probes), _latency(runs), _goodput(runs), _crowd(runs)]
        parts += [*_sensitivity(result), _table(result, probes), run_table(result)]
    said = list(notes(result))
    parts += [Words("What else was seen", said)] if said else []
    title = f"Capacity of {settings.get('model')} at {settings.get('target')}"
    settings = {"made": moment_text(result.at_s), **settings}
    return Page(title, result.sentence(), MOODS.get(result.verdict, "warn"), [*parts, _settings(settings)])


def _figures(result: Result) -> Facts:
    outcome = result.outcome
    certified = None if outcome is None else outcome.certified
    refuted = None if outcome is None else outcome.refuted
    ceiling = result.account.ceiling
    at_once = result.concurrency.get("mean")
    pairs = [
        ("certified", "none" if certified is None else f"{certified.rate_rps:.3g}/s"),
        ("refuted", "none" if refuted is None else f"{refuted.rate_rps:.3g}/s"),
        ("limited by", result.binding or "unknown"),
        ("ceiling", "unknown" if ceiling is None else f"{ceiling.rate_rps:.3g}/s"),
        ("in the system", f"{at_once:.3g}" if isinstance(at_once, float) else "unknown"),
    ]
    if result.headroom is not None:
        pairs.append(("headroom", f"{result.headroom:.0%}"))
    return Facts("", pairs, are_large=True)


def _missed(result: Result, probes: Sequence[Probe]) -> Chart:
    """The part of its budget that the binding objective spends, by rate, with its confidence interval."""
    name = result.binding
    place = next(place for place, goal in enumerate(result.goals) if goal.name == name)
    budget = result.goals[place].budget
    kinds: dict[str, list[Dot]] = {}
    for probe in probes:
        found = probe.found[place]
        low, high = found.interval(result.rigour.error)
        says = f"{probe.rate_rps:.3g}/s {probe.state}: {found.share:.2%} missed ({low:.2%}-{high:.2%}), {probe.why}"
        dot = Dot(probe.rate_rps, max(found.share, LEAST_SHARE), says, max(low, LEAST_SHARE), max(high, LEAST_SHARE))
        kinds.setdefault(probe.state, []).append(dot)
    curve = [(probe.rate_rps, max(probe.found[place].share, LEAST_SHARE)) for probe in probes]
    marks: list[Mark] = [Line("", curve, "soft", is_dashed=True), Rule("budget", budget, "bad")]
    marks += [Dots(state, dots, HUES[state]) for state, dots in kinds.items()]
    if result.account.ceiling is not None:
        marks.append(Rule("ceiling", result.account.ceiling.rate_rps, "soft", is_upright=True))
    axis = Axis("share that misses", "share", is_log=True)
    says = "Bars are what the true share lies within, at 95 % confidence."
    return Chart(f"Requests that miss {name}, by load", LOAD, axis, tuple(marks), says)


def _runs(result: Result, probes: Sequence[Probe]) -> Iterator[tuple[float, Kept]]:
    """The run from empty of each rate, in order of the rate."""
    for probe in probes:
        kept = result.account.runs.get(probe.runs[0])
        if kept is not None and kept.facts:
            yield probe.rate_rps, kept


def _latency(runs: Rows) -> Chart:
    lines = []
    for signal, hue in zip(LATENCY_SIGNALS, HUE_OF, strict=True):
        points = [(rate, value) for rate, kept in runs if (value := fact(kept, "summary", signal, "p95")) is not None]
        lines.append(Line(signal, points, hue))
    axis = Axis("p95", "seconds", is_log=True)
    return Chart("p95 by load", LOAD, axis, tuple(lines), "Counted from when each request was due.")


def _goodput(runs: Rows) -> Chart:
    good = [(rate, rate * good_share(kept)) for rate, kept in runs]
    done = [(rate, value) for rate, kept in runs if (value := fact(kept, "summary", "completed_rps")) is not None]
    marks = (
        Line("offered", [(rate, rate) for rate, _ in runs], "soft", is_dashed=True),
        Line("answered", done, "second"),
        Line("good", good, "good"),
    )
    says = "Good: every objective that speaks of the request is kept."
    return Chart("Throughput and goodput", LOAD, Axis("requests/s"), marks, says)


def _crowd(runs: Rows) -> Chart:
    kinds: tuple[tuple[str, str, Hue], ...] = (("mean", "mean", "first"), ("95 % of the time", "p95", "second"))
    lines = []
    for name, key, hue in kinds:
        points = [(rate, value) for rate, kept in runs if (value := fact(kept, "concurrency", key)) is not None]
        lines.append(Line(name, points, hue))
    little = [
        Dot(rate, value, f"{rate:.3g}/s: {value:.3g} by Little's law")
        for rate, kept in runs
        if (value := fact(kept, "concurrency", "by_little")) is not None
    ]
    marks: tuple[Mark, ...] = (*lines, Dots("by Little's law", little, "third"))
    says = "Where the two means part, the run was not steady."
    return Chart("Requests in the system", LOAD, Axis("requests"), marks, says)


def _sensitivity(result: Result) -> Iterator[Chart]:
    """The part of each budget that is spent at the certified rate, by workload; nothing where none was tried."""
    outcome = result.outcome
    if outcome is None or outcome.certified is None or not outcome.varied:
        return
    stated = (NAMES["stated"], outcome.certified.found)
    tried = [stated, *((name_of(one.variation, result.shared_words), one.found) for one in outcome.varied)]
    judged = [place for place, goal in enumerate(result.goals) if not goal.is_watched]
    marks: list[Mark] = [Rule("budget", 1.0, "bad")]
    for number, place in enumerate(judged):
        aside = (number - (len(judged) - 1) / 2) * ASIDE
        dots = [_spent(result, place, at + aside, *one) for at, one in enumerate(tried)]
        marks.append(Dots(result.goals[place].name, dots, HUE_OF[number % len(HUE_OF)]))
    x = Axis("workload", names=tuple(name for name, _ in tried))
    y = Axis("part of its budget", "share", is_log=True)
    title = f"Other workloads at {outcome.certified.rate_rps:.3g} requests/s"
    yield Chart(title, x, y, tuple(marks), "Above the line an objective is broken. Bars are 95 % confidence.")


def _spent(result: Result, place: int, at: float, name: str, found: Sequence[Evidence]) -> Dot:
    goal, one = result.goals[place], found[place]
    low, high = one.interval(result.rigour.error)
    part, least, most = (max(value / goal.budget, LEAST_PART) for value in (one.share, low, high))
    return Dot(at, part, f"{name}: {goal.name} missed by {one.share:.2%} of {one.requests:,} requests", least, most)


def _table(result: Result, probes: Sequence[Probe]) -> Table:
    headings = ("req/s", "verdict", "requests", *(goal.name for goal in result.goals), "worth", *_latencies())
    rows, marked = [], set()
    certified = None if result.outcome is None else result.outcome.certified
    for number, probe in enumerate(probes):
        shares = (missed_text(one.share, *one.interval(result.rigour.error)) for one in probe.found)
        kept = result.account.runs.get(probe.runs[0])
        p95 = ("-" if value is None else value_text(value, "seconds") for value in _p95(kept))
        requests, worth = max(one.requests for one in probe.found), min(one.worth for one in probe.found)
        rows.append((f"{probe.rate_rps:.3g}", probe.state, f"{requests:,}", *shares, f"{worth:,.0f}", *p95))
        if probe is certified:
            marked.add(number)
    budgets = ", ".join(f"{goal.name} {goal.budget:.3%}" for goal in result.goals)
    notes = [probe.why for probe in probes]
    return Table("Rates that were tried", headings, rows, frozenset(marked), f"Budgets: {budgets}. {WORTH}", notes)


def _latencies() -> Iterator[str]:
    return (f"{signal} p95" for signal in LATENCY_SIGNALS)


def _p95(kept: Kept | None) -> Iterator[float | None]:
    for signal in LATENCY_SIGNALS:
        yield None if kept is None else fact(kept, "summary", signal, "p95")


def _settings(settings: dict[str, object]) -> Facts:
    kept = settings.get("objectives")
    said = settings | {"objectives": [_objective(one) for one in kept]} if isinstance(kept, list) else settings
    return Facts("Settings", [(name.replace("_", " "), _words(value)) for name, value in said.items()])


def _objective(kept: Mapping[str, object]) -> str:
    """An objective as it is kept, in a few words."""
    goal = percent_text(Decimal(str(kept.get("percentile", kept.get("target")))))
    threshold = kept.get("threshold")
    return f"{kept['name']} {goal}" + (f" within {duration_text(Decimal(str(threshold)))}" if threshold else "")


def _words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_words(one)}" for name, one in value.items())
    if isinstance(value, list):
        return "; ".join(_words(one) for one in value) or "none"
    if value in (None, ""):
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
