"""The worst requests of the last day, in memory: some of each hour, for each latency of each model.

Histograms tell how many were slow; which ones they were only their spans tell, and those are stored by whoever keeps
traces. What is kept here is enough to find them there: ids, times, names and lengths. It begins anew with the process
(`since_s`), it knows the spans that came to this collector alone, and it is bounded: in each hour, in keys, and in all.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappush, heappushpop

from collector.values.measurement import Request
from slo.quantity import DAY_S, HOUR_S

MAX_OF_HOUR = 10
MAX_LISTS = 5_000
"""Of an hour, a service, a model and a latency each; beyond it the oldest hour is given up."""
KEPT_S = DAY_S
FUTURE_S = 300

_Key = tuple[int, str, str, str, str]  # hour, environment, service, model, ranked by
_Ranked = tuple[float, str, str, Request]


@dataclass(slots=True)
class Worst:
    """The worst requests heard of since `since_s`."""

    since_s: int
    _kept: dict[_Key, list[_Ranked]] = field(default_factory=dict)
    _swept_hour: int = 0

    def take(self, requests: Iterable[Request], *, now_s: int) -> None:
        """Keep those that are among the worst of their hour; a request that comes again is kept once."""
        self._sweep(now_s)
        for request in requests:
            if not now_s - KEPT_S < request.end_s <= now_s + FUTURE_S:
                continue
            of = request.resource
            for rank, value in request.ranks().items():
                key = (request.end_s // HOUR_S, of.environment, of.service, request.model, rank)
                self._keep(key, (value, request.trace_id, request.span_id, request))

    def of(self, environment: str, service: str, rank: str) -> list[Request]:
        """Those of a service that are kept for a latency, the worst first."""
        mine = [
            one
            for (_, *whose, _, by), some in self._kept.items()
            if (whose, by) == ([environment, service], rank)
            for one in some
        ]
        return [request for *_, request in sorted(mine, key=lambda one: one[:3], reverse=True)]

    def _keep(self, key: _Key, one: _Ranked) -> None:
        mine = self._kept.get(key)
        if mine is None:
            if len(self._kept) >= MAX_LISTS:
                self._forget(min(self._kept)[0])
            mine = self._kept[key] = []
        if any(other[1:3] == one[1:3] for other in mine):
            return
        if len(mine) < MAX_OF_HOUR:
            heappush(mine, one)
        elif one[:3] > mine[0][:3]:
            heappushpop(mine, one)

    def _sweep(self, now_s: int) -> None:
        """Let go of the hours that are over, once an hour."""
        hour = now_s // HOUR_S
        if hour != self._swept_hour:
            self._swept_hour = hour
            self._forget((now_s - KEPT_S) // HOUR_S)

    def _forget(self, hour: int) -> None:
        """Let go of what ended in that hour or before."""
        self._kept = {key: some for key, some in self._kept.items() if key[0] > hour}
