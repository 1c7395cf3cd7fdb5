"""What a series of arrivals is like: how many there are on average and at the peak, and how they clump.

Takes times in seconds in ascending order. A peak is a rate that 99 % of windows stay within; the index of dispersion is
the variance of counts over their mean, 1 where arrivals know nothing of each other, and more where they come in bursts.
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PEAK_WINDOW_S = 300.0
"""About how long it takes to notice that there is more load, and to start another server."""
PEAK_SHARE = 0.99
STEPS = 30
"""A window moves by one part in so many of its length, and by more where that would be too many windows."""
MAX_BINS = 5_000_000


def mean_rps(times_s: Floats) -> float:
    """Arrivals a second between the first and the last; 0 where there is no time between them."""
    span_s = _span(times_s)
    return (times_s.size - 1) / span_s if span_s else 0.0


def peak_rps(times_s: Floats, window_s: float = PEAK_WINDOW_S) -> float | None:
    """The rate that 99 % of windows stay within; of shorter windows where the whole is shorter, None where it is
    nothing."""
    span_s = _span(times_s)
    if not span_s:
        return None
    window_s = min(window_s, span_s)
    begins = windows(times_s, window_s)
    counts = np.searchsorted(times_s, begins + window_s, "left") - np.searchsorted(times_s, begins, "left")
    return float(np.sort(counts)[max(math.ceil(PEAK_SHARE * counts.size) - 1, 0)] / window_s)


def windows(times_s: Floats, window_s: float) -> Floats:
    """Where the windows begin that the peak is looked for in."""
    step_s = max(window_s / STEPS, _span(times_s) / MAX_BINS)
    steps = max(math.ceil((_span(times_s) - window_s) / step_s), 1)
    begins: Floats = times_s[0] + np.arange(steps, dtype=np.float64) * step_s
    return begins


def dispersion(times_s: Floats, scale_s: float, window_s: float = PEAK_WINDOW_S) -> float:
    """The index of dispersion of counts over `scale_s`, within windows: that there is more by day than by night is no
    burst. 1 where there is too little to tell."""
    span_s = _span(times_s)
    scale_s = max(scale_s, span_s / MAX_BINS)
    bins = int(span_s / scale_s) if span_s else 0
    if bins < 2:
        return 1.0
    held = times_s[times_s < times_s[0] + bins * scale_s] - times_s[0]
    counts = np.bincount(np.minimum((held / scale_s).astype(np.int64), bins - 1), minlength=bins).astype(np.float64)
    each = max(min(int(window_s / scale_s), bins), 2)
    whole = counts[: bins // each * each].reshape(-1, each)
    mean = float(whole.mean())
    return max(float(whole.var(axis=1, ddof=1).mean()) / mean, 1.0) if mean else 1.0


def _span(times_s: Floats) -> float:
    return float(times_s[-1] - times_s[0]) if times_s.size > 1 else 0.0
