"""What a receiver was told of each group of alerts, kept in table `notification` so that a restart tells nothing twice.

Of several collectors on one database whoever notifies reads here what the one before it has told.
"""

from collections.abc import Mapping

from sqlalchemy import select
from sqlalchemy.engine import Connection

from collector import schema
from collector.keeping.store import Store
from collector.storage import upsert
from collector.telling.webhook import Told


class Notified:
    """The memory of one receiver."""

    def __init__(self, store: Store, receiver: str) -> None:
        self._store = store
        self._receiver = receiver

    async def recall(self) -> Mapping[str, Told]:
        """By group. Raises `UnavailableError`."""
        return await self._store.read(self._read)

    async def remember(self, told: Mapping[str, Told], /) -> None:
        """Returns once it is committed. Raises `UnavailableError`."""
        rows = [(self._receiver, group, one.status, one.until_s) for group, one in told.items()]
        await self._store.write(lambda connection: upsert.NOTIFICATION.write(connection, sorted(rows)))

    def _read(self, connection: Connection) -> dict[str, Told]:
        table = schema.notification
        rows = connection.execute(select(table).where(table.c.receiver == self._receiver))
        return {row.group_key: Told(row.status, row.at_s) for row in rows}
