"""What services are certified for, read again now and then: a run of `firsttoken capacity certify` tells nobody.

It is read beside the ticks, once a minute: a database that does not answer delays no verdict, and what was known
stands.
"""

import asyncio
import logging

from collector.errors import UnavailableError
from collector.judging.certified_trouble import CertifiedRps
from collector.keeping.store import Store
from collector.storage import certificates
from slo.quantity import MINUTE_S

log = logging.getLogger(__name__)


class Certifying:
    """What is known of a store's services."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asked_s: int | None = None
        self._asking: asyncio.Task[None] | None = None
        self.certified_rps: CertifiedRps = {}

    def observe(self, now_s: int) -> None:
        """A tick; once a minute it is asked again."""
        is_due = self._asked_s is None or not 0 <= now_s - self._asked_s < MINUTE_S
        if is_due and (self._asking is None or self._asking.done()):
            self._asked_s = now_s
            self._asking = asyncio.create_task(self._ask(), name="certified")

    async def settled(self) -> None:
        """Wait until what was asked is known."""
        if self._asking is not None:
            await self._asking

    async def _ask(self) -> None:
        try:
            self.certified_rps = await self._store.read(certificates.certified_rps)
        except UnavailableError as error:
            log.warning("what services are certified for is not read: %s", error)
