"""Durations, shares and sizes as people write them: text in, exact numbers out, and back.

Every number of a spec is read here from its authored text into a Decimal, so that a target of 99.9 % is
0.999 and not 0.9990000000000001. Raises `QuantityError` with what was written and what would be right.
"""

import re
from decimal import Decimal

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86400
LONGEST_S = 10_000 * DAY_S
"""Of a duration: Prometheus counts nanoseconds in 64 bits, and 300 years would not fit."""
MOST_PER_S = 1_000_000
"""Of a rate: what is reckoned of one takes the longer the larger it is."""
SHOWN_CHARS = 60
"""Of a wrong value in a message: a value may be as long as its file."""

UNIT_S = {
    "ms": Decimal("0.001"),
    "s": Decimal(1),
    "m": Decimal(MINUTE_S),
    "h": Decimal(HOUR_S),
    "d": Decimal(DAY_S),
    "w": Decimal(7 * DAY_S),
}
SIZE_BYTES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}

_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,15})?"
"""As many digits as anything real has; without a limit a number is as long as memory."""
_PLAIN = re.compile(_NUMBER)
_DURATION = re.compile(rf"({_NUMBER})(ms|s|m|h|d|w)")
_SHARE = re.compile(rf"({_NUMBER})\s*(%?)")
_RATE = re.compile(rf"({_NUMBER})\s*/\s*([smhd])")
_SIZE = re.compile(rf"({_NUMBER})\s*([kmg]?)b?", re.IGNORECASE)


class QuantityError(ValueError):
    """A text that is not the quantity it should be; the message says what would be."""


def shown(value: object) -> str:
    """A wrong value as a message shows it: as YAML writes it, and no longer than a line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = str(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 3]}..."


def _authored(value: object) -> str:
    """The text of a value as it was written: of a number without the exponent that Decimal gives a small one."""
    return format(value, "f") if isinstance(value, Decimal) else str(value).strip()


def duration_s(text: object) -> Decimal:
    """Seconds of a duration such as `500ms`, `1.5s`, `5m`, `28d`; positive, always with a unit."""
    match = _DURATION.fullmatch(_authored(text))
    if match is None:
        raise QuantityError(
            f"{shown(text)} is not a duration: write a number and a unit, as 500ms, 1.5s, 5m, 1h or 28d"
        )
    seconds = Decimal(match[1]) * UNIT_S[match[2]]
    if seconds <= 0:
        raise QuantityError(f"{shown(text)} is no time at all: a duration is above 0")
    if seconds > LONGEST_S:
        raise QuantityError(f"{shown(text)} is too long: a duration is at most {duration_text(LONGEST_S)}")
    return seconds


def whole_seconds(text: object) -> int:
    """A duration that must be a whole number of seconds, as windows are."""
    seconds = duration_s(text)
    if seconds != seconds.to_integral_value():
        raise QuantityError(f"{shown(text)} is not a whole number of seconds")
    return int(seconds)


def share(text: object) -> Decimal:
    """The fraction that a percentage means: both `95` and `95%` give 0.95. Always in percent, never a fraction: a bare
    number up to 1 is refused, for who writes 0.999 more likely means 99.9 % than a hundredth of it."""
    match = _SHARE.fullmatch(_authored(text))
    if match is None:
        raise QuantityError(f"{shown(text)} is not a share: write a percentage, as 95, 99.9 or 99.9%")
    percent, sign = Decimal(match[1]), match[2]
    if 0 < percent <= 1 and not sign:
        either = f"{plain(percent * 100)}% or {plain(percent)}%"
        raise QuantityError(f"{shown(text)} may be a fraction or a percentage: write {either}, whichever is meant")
    return percent / 100


def number(text: object) -> Decimal:
    """A plain non-negative number."""
    match = _PLAIN.fullmatch(_authored(text))
    if match is None:
        raise QuantityError(f"{shown(text)} is not a number: write 0 or more, as 10 or 2.5")
    return Decimal(match[0])


def per_second(text: object) -> Decimal:
    """Events a second of a rate such as `600/h`, `10/s`; above 0, always with the unit of time."""
    match = _RATE.fullmatch(_authored(text))
    if match is None:
        raise QuantityError(f"{shown(text)} is not a rate: write a number and a unit of time, as 600/h, 10/m or 2.5/s")
    rate = Decimal(match[1]) / UNIT_S[match[2]]
    if rate <= 0:
        raise QuantityError(f"{shown(text)} is no traffic at all: a rate is above 0")
    if rate > MOST_PER_S:
        raise QuantityError(f"{shown(text)} is too much: a rate is at most {MOST_PER_S}/s")
    return rate


def size_bytes(text: object) -> int:
    """Bytes of a size such as `16k` or `1.5m` (k is 1,024)."""
    match = _SIZE.fullmatch(_authored(text))
    if match is None:
        raise QuantityError(f"{shown(text)} is not a size: write bytes, or a number with k, m or g, as 16k")
    return int(Decimal(match[1]) * SIZE_BYTES[match[2].lower()])


def plain(value: Decimal) -> str:
    """Fixed-point text without exponent or trailing zeros: what goes into YAML, PromQL and people's eyes."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def duration_text(seconds: Decimal | float) -> str:
    """The shortest exact label of a duration (`1h`, `28d`, `90s`, `500ms`): the same text everywhere."""
    value = Decimal(str(seconds))
    for unit in ("d", "h", "m", "s"):
        if value and value % UNIT_S[unit] == 0:
            return f"{int(value / UNIT_S[unit])}{unit}"
    if value >= 1:
        return f"{plain(value)}s"
    return f"{plain(value * 1000)}ms"


def about_text(seconds: Decimal | float) -> str:
    """A duration rounded for people, to two units at most: `45s`, `9m`, `3h 37m`, `2d 5h`."""
    whole = max(round(seconds), 1)
    if whole < 120:
        return f"{whole}s"
    minutes = (whole + 30) // 60
    if minutes < 120:
        return f"{minutes}m"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes}m" if hours < 48 else f"{hours // 24}d {hours % 24}h"


def percent_text(fraction: Decimal) -> str:
    """`99.9%` of 0.999."""
    return f"{plain(fraction * 100)}%"
