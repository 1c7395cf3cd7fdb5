"""Alerts on a share of a service's requests: empty replies, client errors, abandonment, broken streams (DESIGN 4.6).

The share is reached over both windows, by enough requests in enough different minutes; a minute counts once it is
over, as it does for the rules. Traffic is the whole of it, of every model and instance, quota refusals too, but for
the synthetic class. A ticket from the alert's own share on, and where it may be one a page from nine in ten: both
stand then, each by the share from which it is told.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from collector.judging.trouble_alert import Said, spec_of, subject, trouble_alert
from collector.values import words
from collector.values.alerting import AlertKey, Wanted
from collector.windowing.fleet import Service
from collector.windowing.recent import Recent
from collector.windowing.trail import Trail
from collector.windowing.windows import Windows
from slo.objective import Notify, Spec
from slo.quantity import MINUTE_S, duration_text, percent_text
from slo.signals import REQUESTS
from slo.trouble import (
    PAGE_FROM,
    SHARE_LONG_S,
    SHARE_MIN_EVENTS,
    SHARE_MIN_MINUTES,
    SHARE_SHORT_S,
    SHARES,
    TROUBLES,
    Share,
)


@dataclass(frozen=True, slots=True)
class _Counted:
    """Requests of one kind and all of them, over a window."""

    mine: int
    all: int

    def reach(self, share: Decimal) -> bool:
        return self.all > 0 and self.mine >= share * self.all


def wanted(windows: Windows, *, now_s: int) -> Iterator[Wanted]:
    """The alerts of this kind that should fire now."""
    for service, _ in windows.recent.moving(REQUESTS.sql):
        spec = spec_of(windows.plan, service)
        for share in SHARES if spec is not None else ():
            assert spec is not None
            yield from _alerts(spec, service, share, windows.recent, now_s=now_s)


def _alerts(spec: Spec, service: Service, share: Share, recent: Recent, *, now_s: int) -> Iterator[Wanted]:
    part = () if share.outcome is None else (share.outcome,)
    mine = recent.trails(share.metric.sql, (service, "")).get(part)
    everything = recent.trails(REQUESTS.sql, (service, "")).get(())
    if mine is None or everything is None or mine.sum(SHARE_LONG_S, at_s=now_s) < SHARE_MIN_EVENTS:
        return
    long, short = (
        _Counted(round(mine.sum(window_s, at_s=now_s)), round(everything.sum(window_s, at_s=now_s)))
        for window_s in (SHARE_LONG_S, SHARE_SHORT_S)
    )
    if _minutes(mine, now_s=now_s) < SHARE_MIN_MINUTES:
        return
    told: list[tuple[Decimal, Notify]] = [(share.ticket_from, "ticket")]
    if share.may_page:
        told.append((PAGE_FROM, "page"))
    for at_least, notify in told:
        if long.reach(at_least) and short.reach(at_least):
            yield _alert(spec, service, share, long, told_from=(at_least, notify))


def _minutes(mine: Trail, *, now_s: int) -> int:
    """In how many minutes that are over, and ended within the long window, there were any."""
    starts_s, counts = mine.steps(SHARE_LONG_S + MINUTE_S, at_s=now_s)
    ends_s = np.unique(starts_s[counts > 0] // MINUTE_S + 1) * MINUTE_S
    return int(np.count_nonzero((ends_s > now_s - SHARE_LONG_S) & (ends_s <= now_s)))


def _alert(spec: Spec, service: Service, share: Share, long: _Counted, *, told_from: tuple[Decimal, Notify]) -> Wanted:
    at_least, notify = told_from
    least = percent_text(at_least)
    return trouble_alert(
        spec,
        AlertKey(share.name, *service, tier=least),
        replace(TROUBLES[share.name], notify=notify),
        Said(
            f"{least} or more of the requests of {spec.service} {share.words}.",
            f"{subject(service)}: {long.mine} of {long.all} requests of the last {duration_text(SHARE_LONG_S)} "
            f"({words.share(long.mine / long.all)}) {share.words}; told from {least} on.",
        ),
    )
