"""A store that does as it is told, behind both doors."""

import asyncio
from collections import Counter
from collections.abc import Callable

from collector.doors.intake import Reception, Room
from collector.keeping.group import Counted
from collector.values.measurement import Batch
from tests.collector import exports

BODY = exports.second(good=1, bad=0, at_s=1_800_000_000).SerializeToString()


class Told:
    """`count` acts, once `held` lets it; the digests it saw are kept, and `came` is set at the first."""

    def __init__(self, act: Callable[[], Counted] = Counted) -> None:
        self.digests: list[bytes] = []
        self.came = asyncio.Event()
        self.held: asyncio.Event | None = None
        self._act = act

    async def count(self, digest: bytes, _batch: Batch) -> Counted:
        self.digests.append(digest)
        self.came.set()
        if self.held is not None:
            await self.held.wait()
        return self._act()


def raises(error: Exception) -> Callable[[], Counted]:
    def act() -> Counted:
        raise error

    return act


def reception(told: Told, *, room_bytes: int = 64 << 20) -> Reception:
    """Both doors' act before that store."""
    return Reception(told, Counter[int](), Room(room_bytes))  # type: ignore[arg-type]
