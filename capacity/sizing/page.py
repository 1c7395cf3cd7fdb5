"""A sizing as a page: the answer, the demand over time, and what fewer and more replicas would do."""

from collections.abc import Mapping

import numpy as np

from capacity.report.chart import Axis, Chart, Line, Rule
from capacity.report.page import Facts, Mood, Page, Part, Table, Words
from capacity.sizing.report import hours_text
from capacity.sizing.result import Result

BINS = 240
LEAST_SHARE = 1e-4


def page_of(result: Result, settings: Mapping[str, object]) -> Page:
    """The report."""
    warnings = list(result.warnings())
    mood: Mood = "warn" if result.sized.by_poisson < result.sized.by_replay else "good"
    words: list[Part] = [Words("To be careful about", warnings)] if warnings else []
    parts: tuple[Part, ...] = (
        _figures(result),
        _over_time(result),
        _by_replicas(result),
        _table(result),
        *words,
        _basis(result, str(settings.get("made"))),
    )
    return Page("Replicas for a demand", result.sentence(), mood, parts)


def _figures(result: Result) -> Facts:
    found = result.sized
    return Facts(
        "",
        (
            ("replicas", str(found.replicas)),
            ("by replay", str(found.by_replay)),
            ("by the peak", str(found.by_peak)),
            ("by Poisson", str(found.by_poisson)),
            ("headroom", f"{found.peak.headroom:.0%}"),
            ("used at the peak", f"{result.load_at_peak:.0%}"),
            ("limits first", found.binding),
        ),
        are_large=True,
    )


def _over_time(result: Result) -> Chart:
    """Requests a second over the demand, and how many such requests the answer is certified for."""
    times_s = result.demand.grown(result.terms.growth).times_s
    span_s = float(times_s[-1])
    counts, edges = np.histogram(times_s, bins=min(BINS, max(times_s.size // 10, 10)), range=(0, span_s))
    width_s = span_s / counts.size
    points = list(zip((edges[:-1] / 60).tolist(), (counts / width_s).tolist(), strict=True))
    each_rps = result.measured.certified_rps / result.work
    marks = (
        Line(f"demand, by {width_s:.3g} s", points),
        Rule(f"{result.sized.needed} replicas, certified", result.sized.needed * each_rps, "good"),
        Rule(f"{result.sized.by_poisson} replicas, by Poisson", result.sized.by_poisson * each_rps, "bad"),
    )
    return Chart(
        "Demand over time", Axis("minutes"), Axis("requests/s"), marks, "Bursts are what Poisson knows nothing of."
    )


def _by_replicas(result: Result) -> Chart:
    """The share that misses the objective that limits, by replicas, as recorded and as Poisson."""
    names = [one.name for one in result.replica.allowed]
    place = names.index(result.sized.binding)
    budget = result.replica.allowed[place].budget
    shown = result.sized.candidates
    replay = [(float(one.replicas), max(one.replay[place], LEAST_SHARE)) for one in shown]
    poisson = [(float(one.replicas), max(one.poisson[place], LEAST_SHARE)) for one in shown]
    marks = (
        Line("as recorded", replay),
        Line("Poisson", poisson, "second", is_dashed=True),
        Rule("may miss", budget, "bad"),
        Rule("needed", float(result.sized.needed), "good", is_upright=True),
    )
    return Chart(
        f"Requests that miss {result.sized.binding}, by replicas",
        Axis("replicas", is_whole=True),
        Axis("share", "share", is_log=True),
        marks,
        "Where the line crosses the budget, the replay finds enough replicas.",
    )


def _table(result: Result) -> Table:
    names = [one.name for one in result.replica.allowed]
    headings = ("replicas", *names, *(f"{name} by Poisson" for name in names), "")
    said, shown = result.said(), result.sized.candidates
    rows = [
        (str(one.replicas), *(f"{share:.2%}" for share in (*one.replay, *one.poisson)), said.get(one.replicas, ""))
        for one in shown
    ]
    marked = frozenset(place for place, one in enumerate(shown) if one.replicas == result.sized.replicas)
    budgets = ", ".join(f"{one.name} {one.budget:.2%}" for one in result.replica.allowed)
    return Table("Share of requests that miss an objective", headings, rows, marked, f"May miss: {budgets}.")


def _basis(result: Result, made: str) -> Facts:
    known, peak, demand = result.measured, result.sized.peak, result.demand
    refuted = "unknown" if known.refuted_rps is None else f"{known.refuted_rps:.3g} requests/s"
    return Facts(
        "What it rests on",
        (
            ("made", made),
            ("demand", demand.source),
            ("requests", f"{demand.times_s.size:,}"),
            ("over", f"{demand.span_s / 60:,.0f} minutes"),
            ("growth", f"{result.terms.growth - 1:+.0%}"),
            ("mean rate", f"{peak.mean_rps:.3g} requests/s"),
            ("peak rate", f"{peak.peak_rps:.3g} requests/s"),
            ("clumping", f"{peak.dispersion:.3g} times Poisson's"),
            ("capacity of one", f"{known.certified_rps:.3g} requests/s ({known.source})"),
            ("refuted", refuted),
            ("work of a request", f"{result.work:.3g} times that of the certificate's"),
            ("places of one", str(result.replica.places)),
            ("a request stays", f"{result.replica.stay_s:.3g} s"),
            ("cost", hours_text(result.gpu_hours)),
        ),
    )
