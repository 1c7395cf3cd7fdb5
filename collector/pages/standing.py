"""How one objective stands for one model, in words: its state, budget, burns and percentiles. Pure.

A figure's tone says how it stands against the promise; the word or sign beside it says the same without colour.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from collector.pages.history import COLUMNS
from collector.values import words
from slo.burn import Tier
from slo.objective import Objective
from slo.quantity import DAY_S, duration_text
from slo.signals import ALL_MODELS

Tone = Literal["good", "warn", "bad", "none"]
Facts = Mapping[str, Any]
STATES: dict[str, tuple[Tone, str]] = {
    "ok": ("good", "kept"),
    "burning": ("warn", "burning"),
    "exhausted": ("bad", "budget spent"),
    "no_data": ("none", "no data"),
}
SETTLED_S = 3600
FULL_BURN = 2.0
LITTLE_KNOWN = 0.9


@dataclass(frozen=True, slots=True)
class Window:
    """Burn over one window. `height` is 0..100; `factor` is the burn at which a tier of that window fires."""

    label: str
    burn: str
    tone: Tone
    height: float
    good: str
    bad: str
    coverage: str
    partly_known: bool
    factor: str


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles over one window: (name, value, tone), the promised one marked by its tone."""

    window: str
    values: Sequence[tuple[str, str, Tone]]
    count: str
    note: str

    @property
    def has_values(self) -> bool:
        return any(value != words.UNKNOWN for _, value, _ in self.values)


@dataclass(frozen=True, slots=True)
class Standing:
    """How one objective stands for one model, or over all of them."""

    model: str
    tone: Tone
    state: str
    remaining: str
    width: float
    bad: str
    allowance: str
    lasts: str
    coverage: str
    windows: Sequence[Window]
    latencies: Sequence[Latency]
    basis: str


def standing(objective: Objective, row: Facts, *, shortest_s: int, tiers: Sequence[Tier]) -> Standing:
    """The words of one row of the status; `tiers` are the objective's. Percentiles are those of the window of
    `shortest_s` and of a settled one; windows longer than the objective's period would only repeat it."""
    tone, state = STATES[row["state"]]
    budget, basis = row["budget"], row["basis"]
    alerting = _alerting_s(tiers, row)
    left = max(0.0, min(1.0, budget["remaining"]))
    return Standing(
        model="all models" if row["model"] == ALL_MODELS else row["model"],
        tone=tone,
        state=state,
        remaining=words.UNKNOWN if row["state"] == "no_data" else words.share(budget["remaining"]),
        width=0.0 if row["state"] == "no_data" else round(100 * left, 1),
        bad=words.count(budget["bad"]),
        allowance=words.count(budget["allowance"]),
        lasts=_lasts(row),
        coverage=words.share(budget["coverage"]),
        windows=[
            _window(tiers, window, alerting=alerting)
            for window in row["windows"]
            if window["window_s"] <= objective.window
        ],
        latencies=[
            _latency(objective, row, duration_text(window_s))
            for window_s in dict.fromkeys((shortest_s, min(SETTLED_S, objective.window)))
            if duration_text(window_s) in row["percentiles"]
        ],
        basis="" if basis in (None, "counts") else "read off the histogram at the threshold, not counted at the source",
    )


def _lasts(row: Facts) -> str:
    if row["state"] == "no_data":
        return "waiting for the first events"
    if row["budget"]["remaining"] <= 0:
        return "spent"
    ends_s = row["budget"]["exhausted_in_s"]
    if ends_s is None:
        return "not being spent"
    return f"lasts {lasting(ends_s, row['period_s'])}"


def lasting(ends_s: float, period_s: int) -> str:
    """How long a budget lasts at the last hour's rate; that it outlasts a period of days is enough to know."""
    return f"beyond {words.duration(period_s)}" if ends_s >= period_s >= DAY_S else words.duration(ends_s)


def _alerting_s(tiers: Sequence[Tier], row: Facts) -> set[int]:
    """The windows of the tiers that fire."""
    firing = {alert["tier"] for alert in row["alerts"] if alert["state"] == "firing"}
    return {window_s for tier in tiers if tier.name in firing for window_s in (tier.long_s, tier.short_s)}


def _window(tiers: Sequence[Tier], row: Facts, *, alerting: set[int]) -> Window:
    """Red is a window whose tier fires, amber one that spends faster than allowed; one of which too little is known to
    say so has no colour."""
    factors = [float(tier.factor) for tier in tiers if row["window_s"] in (tier.long_s, tier.short_s)]
    rate, factor = row["burn"], min(factors, default=None)
    tone: Tone = "none" if rate is None or rate > 1 else "good"
    if rate is not None and rate * row["coverage"] > 1:
        tone = "bad" if row["window_s"] in alerting else "warn"
    return Window(
        label=row["window"],
        burn=words.burn(rate),
        tone=tone,
        height=0.0 if rate is None else round(100 * min(rate / ((factor or FULL_BURN) * 1.25), 1.0), 1),
        good=words.count(row["good"]),
        bad=words.count(row["bad"]),
        coverage=words.share(row["coverage"]),
        partly_known=row["coverage"] < LITTLE_KNOWN,
        factor="" if factor is None else words.burn(factor),
    )


def _latency(objective: Objective, row: Facts, window: str) -> Latency:
    figures = row["percentiles"][window]
    promised = COLUMNS.get(float(objective.goal), "")
    values = [
        (quantile_name(name), _quantile(figures, name), _against(figures, name, objective, promised=name == promised))
        for name in ("p50", "p95", "p99")
    ]
    if promised and promised not in ("p50", "p95", "p99"):
        values.append(
            (
                quantile_name(promised),
                _quantile(figures, promised),
                _against(figures, promised, objective, promised=True),
            )
        )
    note = f"±{words.share(figures['rel_error'])}" if figures["rel_error"] is not None else ""
    censored = f", {words.count(figures['censored'])} without a value" if figures["censored"] else ""
    return Latency(window, values, f"{words.count(figures['count'])} requests{censored}", note)


def quantile_name(name: str) -> str:
    """A column of a quantile as people write it."""
    return "p99.9" if name == "p999" else name


def _quantile(figures: Facts, name: str) -> str:
    if figures[name] is not None:
        return words.latency(figures[name])
    if figures["at_least"] is not None:
        return f"> {words.latency(figures['at_least'])}"
    return words.UNKNOWN


def _against(figures: Facts, name: str, objective: Objective, *, promised: bool) -> Tone:
    """Only the promised percentile is held against the threshold."""
    if not promised or objective.threshold is None:
        return "none"
    value, threshold_s = figures[name], float(objective.threshold)
    if value is not None:
        return "bad" if value > threshold_s else "good"
    # Of an unknown one it is known what it exceeds: from the threshold on that is too much, below it says nothing.
    least = figures["at_least"]
    return "bad" if least is not None and least >= threshold_s else "none"
