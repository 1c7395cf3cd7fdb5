"""Whether a synthetic load filled an instance: then its saturation is the doing of whoever measures it (`slo.trouble`).

An engine's gauges say how full it is, not with whose requests. Those that end are counted by class; an instance that
counts none itself (a sidecar that only scrapes an engine behind another one) goes by its service.
"""

import numpy as np

from collector.judging.lasting import Answers
from collector.values.histogram import Counts, Floats
from collector.windowing.recent import ENDED, SYNTHETIC, Part, Place, Recent
from collector.windowing.trail import Trail
from slo.trouble import SYNTHETIC_LOOK_S, SYNTHETIC_MOST

WHOLE: Part = ()


def filled(recent: Recent, place: Place, at_s: Counts, *, window_s: int, tick_s: int) -> Answers:
    """Whether at any tick of the window that ends at each of these moments, which ascend by the tick, most of the
    requests that had lately ended there were synthetic."""
    ticks_s = np.arange(at_s[0] - window_s + tick_s, at_s[-1] + tick_s, tick_s)
    service = place[0]
    counts = WHOLE in recent.trails(ENDED, place)
    places = [place] if counts else [one for one in recent.moving(ENDED) if one[0] == service]
    most = _added(recent, SYNTHETIC, places, ticks_s) > float(SYNTHETIC_MOST) * _added(recent, ENDED, places, ticks_s)
    reached, back = np.concatenate(([0.0], np.cumsum(most, dtype=np.float64))), window_s // tick_s
    found: Answers = reached[back:] > reached[: reached.size - back]
    return found


def _added(recent: Recent, name: str, places: list[Place], at_s: Counts) -> Floats:
    """The requests of a kind that ended lately at these places, at each moment."""
    trails: list[Trail] = [trail for place in places for trail in recent.trails(name, place).values()]
    return sum((trail.sums(SYNTHETIC_LOOK_S, at_s=at_s) for trail in trails), np.zeros(at_s.size))
