"""What the episodes draw: every counter as long as the others, each model with both results."""

import itertools
import re
from collections import Counter

from alerts.episodes import BORN, FIRING, HEALTHY, IDLE, RESETS, RESTARTS, SILENT, SPIKE, Pace, episodes
from slo.signals import MODEL_LABEL

PACE = Pace(healthy=12, burning=20, step_s=60, events=20)


def samples(values: str) -> list[float | None]:
    """The samples of a notation, None where there is none."""
    found: list[float | None] = []
    for part in values.split():
        if part == "stale":
            found.append(None)
        elif missing := re.fullmatch(r"_x(\d+)", part):
            found += [None] * int(missing[1])
        elif run := re.fullmatch(r"(\d+)\+(\d+)x(\d+)", part):
            start, step, times = map(int, run.groups())
            found += [start + step * n for n in range(times + 1)]
        elif held := re.fullmatch(r"(\d+)x(\d+)", part):
            found += [float(held[1])] * (int(held[2]) + 1)
        else:
            found.append(float(part))
    return found


def test_each_model_has_both_results_and_the_restarted_one_two_instances() -> None:
    found = Counter(dict(counted.labels).get(MODEL_LABEL, "") for counted in episodes(PACE))
    assert found == {"": 2, HEALTHY: 2, SPIKE: 2, IDLE: 2, RESTARTS: 4, BORN: 2, RESETS: 2}
    assert set(found) == {*FIRING, *SILENT}


def test_every_counter_ends_with_the_episode_or_is_stale() -> None:
    for counted in episodes(PACE):
        drawn = samples(counted.values)
        if drawn[-1] is not None:
            assert len(drawn) == PACE.steps + 1, counted


def test_one_counter_falls_and_it_is_the_one_that_resets() -> None:
    falling = []
    for counted in episodes(PACE):
        drawn = [value for value in samples(counted.values) if value is not None]
        if any(after < before for before, after in itertools.pairwise(drawn)):
            falling.append((dict(counted.labels)[MODEL_LABEL], counted.result))
    assert falling == [(RESETS, "bad")]
