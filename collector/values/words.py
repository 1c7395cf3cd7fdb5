"""Figures and promises in the words people use. Pure; a figure that is unknown is a dash, never a number."""

from decimal import Decimal

from slo.objective import Objective
from slo.quantity import DAY_S, HOUR_S, MINUTE_S, duration_text, percent_text, plain
from slo.signals import SIGNALS

UNKNOWN = "–"


def duration(seconds: float | None) -> str:
    """A length of time with the two units that matter, as `3 d 4 h` or `2 min 10 s`."""
    if seconds is None:
        return UNKNOWN
    whole = round(seconds)
    if whole >= 100 * DAY_S:
        return f"{whole // DAY_S} d"
    for unit_s, unit, lesser_s, lesser in (
        (DAY_S, "d", HOUR_S, "h"),
        (HOUR_S, "h", MINUTE_S, "min"),
        (MINUTE_S, "min", 1, "s"),
    ):
        if whole >= unit_s:
            rest = whole % unit_s // lesser_s
            return f"{whole // unit_s} {unit}" + (f" {rest} {lesser}" if rest else "")
    return f"{whole} s"


def latency(seconds: float | None) -> str:
    """A latency to three figures, in the unit that fits, as `412 ms` or `1.24 s`."""
    if seconds is None:
        return UNKNOWN
    if seconds >= 100:
        return f"{seconds:.0f} s"
    if seconds >= 1:
        return f"{_three(seconds)} s"
    return f"{_three(seconds * 1000)} ms"


def share(fraction: float | None) -> str:
    """A share as a percentage, as `87 %`, with decimals only where they matter."""
    if fraction is None:
        return UNKNOWN
    percent = fraction * 100
    digits = 0 if abs(percent) >= 10 or percent == 0 else 1 if abs(percent) >= 1 else 2
    return f"{percent:,.{digits}f} %".replace("-0 %", "0 %")


def burn(rate: float | None) -> str:
    """A burn rate, as `0.4×`."""
    if rate is None:
        return UNKNOWN
    return f"{rate:.0f}×" if rate >= 10 else f"{rate:.1f}×"


def count(number: float | None) -> str:
    """A number of things, with thousands apart."""
    return UNKNOWN if number is None else f"{number:,.0f}"


def promise(objective: Objective) -> str:
    """The objective as a sentence, without its period."""
    goal = percent_text(objective.goal).replace("%", " %")
    threshold = objective.threshold
    if threshold is None:
        return f"{goal} of requests are answered"
    return {
        "ttft": f"{goal} of requests get a first token within {_limit(threshold)}",
        "tpot": f"{goal} of requests get each further token within {_limit(threshold)}",
        "e2e": f"{goal} of requests are answered whole within {_limit(threshold)}",
        "kv_occupancy": f"{goal} of the time the KV cache is at most {plain(threshold * 100)} % full",
        "queue": f"{goal} of the time at most {plain(threshold)} requests wait",
    }[objective.signal]


def period(objective: Objective) -> str:
    """The objective's own window, as `over 28 d`."""
    return f"over {duration(objective.window)}"


def limit(objective: Objective) -> str:
    """The objective's threshold as it was written, in the unit of its signal."""
    kind, threshold = SIGNALS[objective.signal].threshold, objective.threshold
    if threshold is None:
        return UNKNOWN
    if kind == "duration":
        return _limit(threshold)
    return f"{plain(threshold * 100)} %" if kind == "share" else plain(threshold)


def value(figure: float | None, unit: str) -> str:
    """A figure of a signal in its unit."""
    if unit == "s":
        return latency(figure)
    return share(figure) if unit == "1" else count(figure)


def _limit(threshold: Decimal) -> str:
    text = duration_text(threshold)
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    return f"{digits} {text[len(digits) :]}"


def _three(number: float) -> str:
    return f"{number:.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"
