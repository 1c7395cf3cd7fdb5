"""Figures of many tracks at once are those of each alone."""

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.judging.track import Track, tracks
from collector.judging.track_windows import TrackWindows
from collector.values.deltas import Deltas
from collector.windowing.coverage import of_series
from collector.windowing.windows import Windows
from tests.collector import scene
from tests.collector.scene import NOW_S

WINDOWS_S = (300, 3600, 86400)


def every(windows: Windows) -> list[Track]:
    spec = windows.plan.specs[0]
    return [track for some in tracks(windows, spec, spec.objectives[0], "").values() for track in some]


@given(
    st.lists(
        st.tuples(st.integers(0, 4000), st.integers(0, 20), st.integers(0, 5), st.sampled_from("abc")), max_size=10
    ),
    st.booleans(),
)
@settings(deadline=None)
def test_events_and_coverage_are_those_of_each_track(events: list[tuple[int, int, int, str]], live: bool) -> None:
    windows = scene.windows()
    if live:
        windows.add(scene.live(NOW_S - 1800, NOW_S))
    windows.add(Deltas(slo=tuple(scene.slo(NOW_S - age_s, good, bad, model=m) for age_s, good, bad, m in events)))
    found = every(windows)
    held = TrackWindows(windows, found)
    for number, track in enumerate(found):
        mine = [one for one in events if track.model in ("*", one[3])]
        age_s = max((age_s for age_s, *_ in mine), default=-10) + 10
        assert held.age_s(number) == age_s
        for window_s in WINDOWS_S:
            assert held.held(number, window_s) == windows.events.held(track.keys, window_s)
            known = windows.coverage(("", "chat"), window_s)
            assert held.covered(number, window_s) == of_series(known, window_s=window_s, age_s=age_s)


def test_a_track_without_series_holds_nothing() -> None:
    windows = scene.windows()
    held = TrackWindows(windows, every(windows))
    assert held.events(300).tolist() == [[0, 0, 0]]
    assert (held.age_s(0), held.covered(0, 300), held.bad_spans(0, 300, spread_s=60)) == (0, 0.0, 0)
