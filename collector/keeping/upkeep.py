"""Runs the sweeps of `retention` every ten minutes, piece by piece, in between the commits of the store."""

import asyncio
import logging
from collections.abc import Callable

from collector.keeping.store import Store
from collector.storage import retention
from collector.storage.retention import Limits

SWEEP_S = 600
WHOLE_SWEEP_S = 86400
FOLLOW_S = 60

log = logging.getLogger(__name__)


async def sweep(store: Store, limits: Limits, *, now_s: int, whole: bool) -> int:
    """One sweep; the number of its transactions. A piece that fails is left to the next sweep."""
    done = 0
    for piece in retention.pieces(now_s, limits, whole=whole):
        try:
            while await store.write(piece):
                done += 1
            done += 1
        except Exception as error:  # noqa: BLE001  a sweep is never worth the collector
            log.warning("a piece of upkeep failed: %s", error)
    store.ledger.forget_streams(before_s=now_s - limits.streams_s)
    return done


async def sweep_on(
    store: Store, limits: Callable[[], Limits], *, clock: Callable[[], float], leads: Callable[[], bool] = lambda: True
) -> None:
    """Sweep until cancelled: a whole sweep at the start and once a day, by the limits as they are then: a spec that is
    read anew may have longer windows. Of several collectors on one database the one that leads sweeps it; the others
    look again every minute whether they do."""
    whole_s = float("-inf")
    while True:
        now_s = clock()
        if not leads():
            store.ledger.forget_streams(before_s=int(now_s) - limits().streams_s)
            await asyncio.sleep(FOLLOW_S)
            continue
        whole = now_s - whole_s >= WHOLE_SWEEP_S
        await sweep(store, limits(), now_s=int(now_s), whole=whole)
        whole_s = now_s if whole else whole_s
        await asyncio.sleep(SWEEP_S)
