"""An objective in words: the one wording that `slo check`, alerts and dashboards share; and how all commands write a
count, a reason and somebody else's name."""

import re

from slo.objective import Objective
from slo.quantity import duration_text, percent_text, plain
from slo.signals import SIGNALS

_OF_OPENSSL = re.compile(r"^\[[A-Z0-9_: ]+\] | \(_ssl\.c:\d+\)$")
"""What Python puts around the words of OpenSSL."""


def promise(objective: Objective) -> str:
    """The objective as a sentence."""
    signal, within = SIGNALS[objective.signal], limit(objective)
    goal, window = percent_text(objective.goal), duration_text(objective.window)
    if within is None:
        return f"{goal} of requests answered, over {window}"
    if signal.threshold == "duration":
        return f"{goal} of requests with {signal.title} within {within}, over {window}"
    return f"{goal} of the time with {signal.title} at or under {within}, over {window}"


def breach(objective: Objective) -> str:
    """What a bad event of the objective is."""
    title, within = SIGNALS[objective.signal].title, limit(objective)
    return f"{title}: no answer" if within is None else f"{title} over {within}"


def limit(objective: Objective) -> str | None:
    """The threshold in the unit of its signal, as `500ms`, `90%` or `10`; None for a signal without one."""
    if objective.threshold is None:
        return None
    texts = {"duration": duration_text, "share": percent_text}
    return texts.get(SIGNALS[objective.signal].threshold, plain)(objective.threshold)


def counted(number: int, noun: str) -> str:
    """`1 objective`, `2 objectives`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def reason(error: BaseException) -> str:
    """Why something failed, on one line: in the system's words, without its numbers and codes."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    told = error.strerror if isinstance(error, OSError) else None
    return _OF_OPENSSL.sub("", " ".join((told or str(error)).split())) or type(error).__name__


def visible(name: str) -> str:
    """A name that somebody else chose, for a terminal: what would steer one stands as its escape."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in name)
