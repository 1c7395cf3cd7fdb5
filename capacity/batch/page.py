"""A search for the batch as a page: the verdict, the flags to paste, and the step and the misses by batch."""

from collections.abc import Iterator, Mapping

from capacity.batch.fit import ALONE, Mix
from capacity.batch.recorded import Outcome as RecordedOutcome
from capacity.batch.report import HEADINGS, change_lines, memory_lines, table_rows
from capacity.batch.result import Result
from capacity.batch.search import Outcome
from capacity.batch.trial import AskHeld, Held
from capacity.batch.verdict import ERROR
from capacity.report.chart import Axis, Chart, Dot, Dots, Line, Mark, Rule
from capacity.report.drawing import value_text
from capacity.report.page import Facts, Mood, Page, Part, Table, Words

MOODS: Mapping[str, Mood] = {"chosen": "good", "none": "bad"}


def page_of(result: Result, settings: Mapping[str, object]) -> Page:
    """The report of a test."""
    parts: list[Part] = []
    if result.outcome is not None:
        parts += [_figures(result, result.outcome), _step(result, result.outcome), _missed(result, result.outcome)]
        parts += [_probes(result, result.outcome), _full_runs(result), _fit(result.outcome, Mix(*result.lengths.mean))]
    if result.flags:
        flags = [f"{server}: {flags}" for server, flags in result.flags.items()]
        parts.append(Words("Flags to paste", flags, is_code=True))
    change = list(change_lines(result))
    parts += [Words("What it changes", change)] if change else []
    parts += [Words("The KV cache", list(memory_lines(result))), _settings(settings)]
    title = f"Batch of {settings.get('model')} at {settings.get('target')}"
    return Page(title, result.sentence(), MOODS.get(result.verdict, "warn"), parts)


def page_of_records(outcome: RecordedOutcome, settings: Mapping[str, object]) -> Page:
    """The report of what was recorded."""
    dots = [
        Dot(pair.running, pair.step_s, f"{pair.running:.1f} running: {1000 * pair.step_s:.1f} ms")
        for pair in outcome.recorded.pairs
    ]
    marks: list[Mark] = [Dots("window of 5 minutes", dots), Rule("promise", outcome.threshold_s, "bad")]
    if outcome.fit is not None and dots:
        ends = (0.0, max(dot.x for dot in dots))
        marks.append(Line("fit", [(n, outcome.fit.step_s(n, ALONE)) for n in ends], "second", is_dashed=True))
    name = f"p{100 * outcome.recorded.share:g} of the time per output token"
    chart = Chart("The step, by how many run", Axis("running at once"), Axis(name, "seconds"), tuple(marks))
    title = f"Batch of {settings.get('model')}, as recorded"
    mood: Mood = "good" if outcome.chosen is not None else "warn"
    return Page(title, outcome.sentence(), mood, [chart, _settings(settings)])


def _figures(result: Result, found: Outcome) -> Facts:
    def shown(value: float | None, unit: str = "") -> str:
        return "none" if value is None else f"{value:.3g}{unit}"

    pairs = [
        ("chosen", shown(found.chosen)),
        ("feasible", f"{shown(found.feasible_min)} to {shown(found.feasible_max)}"),
        ("99 % as much", shown(found.efficient)),
        ("limited by", result.binding or "what was allowed"),
        ("open loop at", shown(found.rate_rps, "/s")),
    ]
    return Facts("", pairs, are_large=True)


def _probes(result: Result, found: Outcome) -> Table:
    says = "Full: as many requests outstanding as the batch has places; otherwise open loop at a rate."
    return Table("Each probe", HEADINGS, table_rows(result), _kept(found), says)


def _full_runs(result: Result) -> Table:
    """Every run of a full server, those of the calibration too."""
    names = [goal.name for goal in result.plan.held_goals]
    tails = (f"{name} within" for name in names)
    headings = ("batch", "lengths", "lasted", "mean step", *tails, "tokens/s", "requests/s", "client")
    says = (
        "Within: what the share of requests that an objective speaks of stays within. Tokens/s: those of all places, "
        "while all of them decode."
    )
    rows = [
        tuple(_full_run(run.ask, run.answer))
        for run in result.account.runs
        if isinstance(run.ask, AskHeld) and isinstance(run.answer, Held)
    ]
    return Table("Runs of a full server", headings, rows, says=says)


def _full_run(ask: AskHeld, seen: Held) -> Iterator[str]:
    yield from (str(ask.batch), ask.mix, f"{seen.seconds:.0f} s", value_text(seen.step_s, "seconds"))
    yield from (value_text(tail, "seconds") for tail in seen.tails)
    yield f"{ask.batch / seen.step_s:,.0f}"
    yield f"{seen.rate_rps:.3g}"
    yield "late" if seen.is_client_late else "in time"


def _fit(found: Outcome, mix: Mix) -> Facts:
    r_squared = found.fit.r_squared
    pairs = (
        ("a step's own time", value_text(found.fit.a, "seconds")),
        ("each sequence of this workload", value_text(found.fit.each_s(mix), "seconds")),
        ("of that, the sequence", value_text(found.fit.b, "seconds")),
        ("a held token", value_text(found.fit.c, "seconds")),
        ("a prompt token", value_text(found.fit.d, "seconds")),
        ("explains", "nothing varies" if r_squared is None else f"{r_squared:.2%} of the variance"),
        ("farthest point", f"{found.fit.largest_residual():.1%} off"),
        ("predicted", f"{found.predicted}, found {'none' if found.chosen is None else found.chosen}"),
    )
    return Facts("The fit", pairs)


def _step(result: Result, found: Outcome) -> Chart:
    """Measured steps and the fit, for the stated lengths."""
    mix = Mix(*result.lengths.mean)
    dots = [
        Dot(p.batch, p.step_s, f"{p.batch:g} at once: {1000 * p.step_s:.2f} ms, {residual:+.1%} from the fit")
        for p, residual in zip(found.fit.points, found.fit.residuals, strict=True)
        if p.mix == mix
    ]
    most = max((dot.x for dot in dots), default=1.0)
    fitted = [(n, found.fit.step_s(n, mix)) for n in (0.0, most)]
    marks: list[Mark] = [Line("fit", fitted, "second", is_dashed=True), Dots("measured", dots)]
    limits = zip(result.plan.held_goals, result.plan.thresholds_s, found.tails, strict=True)
    marks += [Rule(f"{goal.name} allows", limit / tail, "bad") for goal, limit, tail in limits]
    says = "Where the line of the promise lies, the share it allows to be slower is already taken off."
    return Chart(
        "Mean step, by batch", Axis("sequences at once", is_whole=True), Axis("step", "seconds"), tuple(marks), says
    )


def _missed(result: Result, found: Outcome) -> Chart:
    """The share of requests that miss the promise of the step, by batch, with as many outstanding."""
    kept, broken = list[Dot](), list[Dot]()
    for probe in found.probes:
        if probe.kind == "held":
            place = [goal.name for goal in result.plan.held_goals].index(probe.verdict.binding)
            one = probe.verdict.found[place]
            low, high = one.interval(ERROR)
            says = f"{probe.batch} at once: {one.share:.1%} ({low:.1%}-{high:.1%}) miss {probe.verdict.binding}"
            (kept if probe.verdict.is_kept else broken).append(Dot(probe.batch, one.share, says, low, high))
    marks = [Dots("kept", kept, "good"), Dots("broken", broken, "bad")]
    rules = [Rule(f"budget of {goal.name}", goal.budget, "bad") for goal in result.plan.held_goals]
    says = "Bars are what the true share lies within, at 95 % confidence."
    axis = Axis("sequences at once", from_zero=False, is_whole=True)
    return Chart("Requests too slow, by batch", axis, Axis("share that misses", "share"), (*marks, *rules), says)


def _kept(found: Outcome) -> frozenset[int]:
    """The rows that speak for the chosen batch."""
    ordered = sorted(found.probes, key=lambda probe: (probe.kind, probe.batch, probe.rate_rps))
    return frozenset(
        place for place, probe in enumerate(ordered) if probe.batch == found.chosen and probe.verdict.is_kept
    )


def _settings(settings: Mapping[str, object]) -> Facts:
    return Facts("How it was asked", [(name.replace("_", " "), _text(value)) for name, value in settings.items()])


def _text(value: object) -> str:
    """A setting in words: of a list its names, or its values."""
    if isinstance(value, list):
        words = [str(one.get("name")) if isinstance(one, dict) else str(one) for one in value]
        return ", ".join(words) or "none"
    return "none" if value in (None, "") else str(value)
