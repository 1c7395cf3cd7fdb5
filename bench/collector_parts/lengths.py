"""How long a run takes: rounds, and how much of everything in each."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lengths:
    """`series` below a thousand is a run in which no promise can be judged."""

    rounds: int
    bodies: int
    series: int
    ticks: int
    prometheus_series: int
    month_series: int

    @property
    def whole(self) -> bool:
        return self.series >= 1000


FULL = Lengths(rounds=5, bodies=120, series=1000, ticks=12, prometheus_series=10, month_series=100)
QUICK = Lengths(rounds=2, bodies=40, series=1000, ticks=6, prometheus_series=4, month_series=20)
SMOKE = Lengths(rounds=1, bodies=5, series=20, ticks=1, prometheus_series=1, month_series=1)
