"""Events and coverage of many tracks over windows, read at once: what burn, budget and tiers are made of.

Each answer is an array with one place a track, made when a window is first asked for.
"""

from collections.abc import Sequence

import numpy as np

from collector.judging.track import Track
from collector.values.histogram import Counts, Floats
from collector.windowing.events import Held
from collector.windowing.windows import Windows


class TrackWindows:
    """Several tracks over the windows that end now."""

    def __init__(self, windows: Windows, tracks: Sequence[Track]) -> None:
        self.tracks = tracks
        self._windows = windows
        # A track without series reads the lane behind the last, which holds nothing.
        lanes = [windows.events.lanes(track.keys) or [windows.events.count] for track in tracks]
        self._lanes = np.array([lane for some in lanes for lane in some], dtype=np.int64)
        self._starts = np.cumsum([0, *(len(some) for some in lanes)])[:-1]
        until_s = windows.now_s + windows.plan.tick_s
        firsts = np.append(windows.events.firsts_s(), until_s)[self._lanes]
        self.ages_s: Counts = until_s - np.minimum.reduceat(firsts, self._starts)
        numbers: dict[tuple[str, str], int] = {}
        of = [numbers.setdefault((track.environment, track.spec.service), len(numbers)) for track in tracks]
        self._services, self._service_of = tuple(numbers), np.array(of, dtype=np.int64)
        self._held: dict[int, Counts] = {}
        self._coverage: dict[int, Floats] = {}

    def events(self, window_s: int) -> Counts:
        """Good, bad and unsure events: (tracks, 3)."""
        if window_s not in self._held:
            sums = self._windows.events.sums(window_s)
            self._held[window_s] = np.add.reduceat(sums[self._lanes], self._starts, axis=0)
        return self._held[window_s]

    def coverage(self, window_s: int) -> Floats:
        """The share of the window that is known: that of the service, and at most the track's own age: (tracks)."""
        if window_s not in self._coverage:
            known = np.array([self._windows.coverage(service, window_s) for service in self._services])
            ages = np.maximum(self.ages_s, 0) / window_s
            self._coverage[window_s] = np.minimum(known[self._service_of], ages)
        return self._coverage[window_s]

    def age_s(self, track: int) -> int:
        """Since when one track is heard of, to the end of the running tick."""
        return int(self.ages_s[track])

    def covered(self, track: int, window_s: int) -> float:
        """The coverage of one track."""
        return float(self.coverage(window_s)[track])

    def held(self, track: int, window_s: int) -> Held:
        """The events of one track."""
        return Held(*self.events(window_s)[track].tolist())

    def bad_spans(self, track: int, window_s: int, *, spread_s: int | None) -> int:
        """In how many spans the bad events of one track lie; see `Events.bad_spans`."""
        return self._windows.events.bad_spans(self.tracks[track].keys, window_s, spread_s=spread_s)
