"""A certification as a page: the verdict, each rate with what it missed, and the runs behind it as curves over load."""

from collections.abc import Iterator, Mapping, Sequence

from capacity.certify.account import Kept
from capacity.certify.evidence import WARM_UP_SHARE
from capacity.certify.report import notes
from capacity.certify.result import Result
from capacity.certify.search import Probe
from capacity.report.chart import Axis, Chart, Dot, Dots, Hue, Line, Mark, Rule
from capacity.report.drawing import value_text
from capacity.report.page import Facts, Mood, Part, Table, Words, page

HUES: Mapping[str, Hue] = {"certified": "good", "refuted": "bad", "unresolved": "soft"}
MOODS: Mapping[str, Mood] = {"certified": "good", "not_certifiable": "bad"}
SIGNALS = ("ttft", "tpot", "e2e")
LEAST_SHARE = 1e-3
LOAD = Axis("requests/s offered", from_zero=False)
Rows = Sequence[tuple[float, Kept]]


def page_of(result: Result, settings: Mapping[str, object]) -> str:
    """The document."""
    parts: list[Part] = [_figures(result)]
    if result.outcome is not None and result.outcome.probes:
        probes = sorted(result.outcome.probes, key=lambda probe: probe.rate_rps)
        runs = list(_runs(result, probes))
        parts += [_missed(result, probes), _latency(runs), _goodput(runs), _crowd(runs), _table(result, probes)]
    said = list(notes(result))
    parts += [Words("What else was seen", said)] if said else []
    title = f"Capacity of {settings.get('model')} at {settings.get('target')}"
    return page(title, result.sentence(), MOODS.get(result.verdict, "warn"), [*parts, _settings(settings)])


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
    hues: Sequence[Hue] = ("first", "second", "third")
    lines = []
    for signal, hue in zip(SIGNALS, hues, strict=True):
        points = [(rate, value) for rate, kept in runs if (value := _fact(kept, "summary", signal, "p95")) is not None]
        lines.append(Line(signal, points, hue))
    axis = Axis("p95", "seconds", is_log=True)
    return Chart("p95 by load", LOAD, axis, tuple(lines), "Counted from when each request was due.")


def _goodput(runs: Rows) -> Chart:
    good = [(rate, rate * good_share(kept)) for rate, kept in runs]
    done = [(rate, value) for rate, kept in runs if (value := _fact(kept, "summary", "completed_rps")) is not None]
    marks = (
        Line("offered", [(rate, rate) for rate, _ in runs], "soft", is_dashed=True),
        Line("answered", done, "second"),
        Line("good", good, "good"),
    )
    says = "Good: every objective that speaks of the request is kept."
    return Chart("Throughput and goodput", LOAD, Axis("requests/s"), marks, says)


def good_share(kept: Kept) -> float:
    """The share of requests that no objective calls bad, once the start of the run is over."""
    begin = len(kept.bad[0]) // WARM_UP_SHARE
    verdicts = list(zip(*(text[begin:] for text in kept.bad), strict=True))
    return sum("1" not in one for one in verdicts) / len(verdicts) if verdicts else 0.0


def _crowd(runs: Rows) -> Chart:
    kinds: tuple[tuple[str, str, Hue], ...] = (("mean", "mean", "first"), ("95 % of the time", "p95", "second"))
    lines = []
    for name, key, hue in kinds:
        points = [(rate, value) for rate, kept in runs if (value := _fact(kept, "concurrency", key)) is not None]
        lines.append(Line(name, points, hue))
    little = [
        Dot(rate, value, f"{rate:.3g}/s: {value:.3g} by Little's law")
        for rate, kept in runs
        if (value := _fact(kept, "concurrency", "by_little")) is not None
    ]
    marks: tuple[Mark, ...] = (*lines, Dots("by Little's law", little, "third"))
    says = "Where the two means part, the run was not steady."
    return Chart("Requests in the system", LOAD, Axis("requests"), marks, says)


def _table(result: Result, probes: Sequence[Probe]) -> Table:
    headings = ("req/s", "verdict", "requests", *(goal.name for goal in result.goals), "worth", *_latencies())
    rows, marked = [], set()
    certified = None if result.outcome is None else result.outcome.certified
    for number, probe in enumerate(probes):
        shares = (_share(one.share, *one.interval(result.rigour.error)) for one in probe.found)
        kept = result.account.runs.get(probe.runs[0])
        p95 = ("-" if value is None else value_text(value, "seconds") for value in _p95(kept))
        requests, worth = max(one.requests for one in probe.found), min(one.worth for one in probe.found)
        rows.append((f"{probe.rate_rps:.3g}", probe.state, f"{requests:,}", *shares, f"{worth:,.0f}", *p95))
        if probe is certified:
            marked.add(number)
    budgets = ", ".join(f"{goal.name} {goal.budget:.3%}" for goal in result.goals)
    notes = [probe.why for probe in probes]
    return Table("Rates that were tried", headings, rows, frozenset(marked), f"Budgets: {budgets}.", notes)


def _share(share: float, low: float, high: float) -> str:
    return f"{share:.2%} (≤ {high:.2%})" if not low else f"{share:.2%} ({low:.2%}-{high:.2%})"


def _latencies() -> Iterator[str]:
    return (f"{signal} p95" for signal in SIGNALS)


def _p95(kept: Kept | None) -> Iterator[float | None]:
    for signal in SIGNALS:
        yield None if kept is None else _fact(kept, "summary", signal, "p95")


def _fact(kept: Kept, *way: str) -> float | None:
    found: object = kept.facts
    for name in way:
        found = found.get(name) if isinstance(found, dict) else None
    return float(found) if isinstance(found, int | float) else None


def _settings(settings: Mapping[str, object]) -> Facts:
    return Facts("Settings", [(name.replace("_", " "), _words(value)) for name, value in settings.items()])


def _words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_words(one)}" for name, one in value.items())
    if isinstance(value, list):
        return "; ".join(_words(one) for one in value) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
