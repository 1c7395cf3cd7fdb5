"""An objective in words: the one wording that `slo check`, alerts and dashboards share; and names as people may see
them."""

from slo.objective import Objective
from slo.quantity import duration_text, percent_text, plain
from slo.signals import SIGNALS


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


def visible(name: str) -> str:
    """A name that somebody else chose, for a terminal: what would steer one stands as its escape."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in name)
