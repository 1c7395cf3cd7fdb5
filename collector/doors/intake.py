"""What both doors do with a body they hold whole: read it, count it once, or say why not.

`post` takes bodies by HTTP, `rpc` by gRPC. The same bytes count once, whichever way they come, because the digest is
that of the unpacked body, its kind and its form. A fault of the sender is told with what would be right; while the
database cannot commit, or there is no room, a sender is told to come again with the same bytes.
"""

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from collector.decoding.otlp import decode_traces, read_metrics
from collector.decoding.points import Points
from collector.doors.body import JSON, Form
from collector.doors.reply import Kind, Refusal
from collector.errors import PayloadError, RefusedError, UnavailableError
from collector.keeping.group import Counted
from collector.keeping.store import Store
from collector.values.measurement import Batch

BODY_TIMEOUT_S = 30
ROOM_BYTES = 64 << 20
INLINE_BYTES = 512 << 10
INLINE_JSON_BYTES = 32 << 10
"""What is longer is read beside the event loop; JSON takes ten times as long."""
_DECODE: dict[Kind, Callable[..., Batch | Points]] = {"traces": decode_traces, "metrics": read_metrics}
_OUR_FAULT = "the collector could not store this body: see its log"
NO_ROOM = "more is being read than there is room for: send again later"

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Room:
    """The unpacked bytes in hand at once, of all bodies, from their first byte until they are committed."""

    limit: int = ROOM_BYTES
    used: int = 0
    _coming: set["Place"] = field(default_factory=set)

    @contextmanager
    def place(self, give_up: Callable[[UnavailableError], None] = lambda _error: None) -> Iterator["Place"]:
        """A place for one body, given back at the end. `give_up` lets the body go while it is still coming."""
        place = Place(self, give_up)
        self._coming.add(place)
        try:
            yield place
        finally:
            place.whole()
            place.release()

    def clear(self, size: int, *, for_place: "Place") -> bool:
        """Whether there is room for so much more, once larger bodies that are still coming were given up for it: a few
        slow senders of long bodies must not keep all others out."""
        while self.used + size > self.limit:
            largest = max(self._coming, key=lambda place: place.size, default=for_place)
            if largest is for_place or largest.size <= for_place.size + size:
                return False
            largest.give_up(UnavailableError(NO_ROOM))
            largest.release()
        return True

    def forget(self, place: "Place") -> None:
        """Give up that place no more."""
        self._coming.discard(place)


@dataclass(slots=True, eq=False)
class Place:
    """What one body takes of the room."""

    room: Room
    give_up: Callable[[UnavailableError], None]
    size: int = 0

    def grow(self, size: int) -> None:
        """Take as much as `size` in all. Raises `UnavailableError` when there is no room: others are in hand."""
        more = max(size - self.size, 0)
        if more and not self.room.clear(more, for_place=self):
            raise UnavailableError(NO_ROOM)
        self.room.used += more
        self.size += more

    def release(self) -> None:
        """Give it all back: nothing is kept of the body."""
        self.room.used -= self.size
        self.size = 0

    def whole(self) -> None:
        """All of the body is there: it is not given up any more."""
        self.room.forget(self)


@dataclass(slots=True)
class Reception:
    """The act that both doors share; what is refused is counted in `refused`, by HTTP's status of it."""

    store: Store
    refused: Counter[int]
    room: Room
    _slow: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def count(self, kind: Kind, form: Form, body: bytes) -> Counted:
        """Count the body once, and return when that is committed. Raises what `refusal` reads."""
        longest = INLINE_JSON_BYTES if form == JSON else INLINE_BYTES
        if len(body) <= longest:
            digest, batch = _read(kind, form, body)
        else:
            async with self._slow:  # one at a time: threads share the interpreter with the loop
                digest, batch = await asyncio.to_thread(_read_whole, kind, form, body)
        return await self.store.count(digest, batch)

    def refusal(self, error: Exception) -> Refusal:
        """What the sender is told of the error, once; it is counted."""
        found = _refusal(error)
        if found.status == 500:
            log.error("an export request failed", exc_info=error)
        self.refused[found.status] += 1
        return found


def too_slow() -> RefusedError:
    """Why a body that took too long is not taken."""
    return RefusedError(408, f"the body did not come within {BODY_TIMEOUT_S} s")


def _read(kind: Kind, form: Form, body: bytes) -> tuple[bytes, Batch | Points]:
    digest = hashlib.sha256(f"{kind} {form}\n".encode())
    digest.update(body)
    return digest.digest(), _DECODE[kind](body, json=form == JSON)


def _read_whole(kind: Kind, form: Form, body: bytes) -> tuple[bytes, Batch]:
    digest, read = _read(kind, form, body)
    return digest, read.batch() if isinstance(read, Points) else read


def _refusal(error: Exception) -> Refusal:
    if isinstance(error, UnavailableError):
        return Refusal(503, str(error), retry_after_s=error.retry_after_s)
    if isinstance(error, RefusedError):
        return Refusal(error.status, str(error))
    if isinstance(error, PayloadError):
        return Refusal(400, str(error))
    return Refusal(500, _OUR_FAULT)
