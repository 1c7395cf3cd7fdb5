"""The predicted wait against the closed form that bench/ keeps, and against what must hold anyway."""

from itertools import pairwise

import pytest

from capacity.batch.waiting import wait_share


def test_it_agrees_with_the_birth_death_bed() -> None:
    from queues.batching import Batching

    for batch, rate in ((1, 0.5), (8, 5.0), (32, 14.0), (200, 18.0)):
        bed = Batching(batch, 50, 0.01, 0.001, 0.5, 0.050, (0.05, 0.05))
        ours = wait_share(rate, batch, lambda n: 0.01 + 0.001 * n, 50, 0.5)
        assert ours == pytest.approx(bed.shares(rate)[0], rel=1e-9)


def test_one_place_is_the_queue_of_one_server() -> None:
    assert wait_share(0.5, 1, lambda _: 1.0, 1, 1e-12) == pytest.approx(0.5)


def test_more_places_make_fewer_wait_and_more_load_more() -> None:
    def share(rate: float, batch: int) -> float:
        return wait_share(rate, batch, lambda n: 0.01 + 0.001 * n, 50, 0.5)

    by_batch = [share(9.0, batch) for batch in range(10, 60)]
    assert all(more <= fewer for fewer, more in pairwise(by_batch))
    by_rate = [share(rate, 32) for rate in range(1, 30)]
    assert all(a <= b for a, b in pairwise(by_rate))
    assert by_rate[-1] == 1, "it cannot keep up"
    assert wait_share(0.1, 8, lambda _: 1.0, 1, 0.0) == 1, "no wait is as short as none"
