"""What requests did and nobody has looked at yet: noted in order, looked at together.

To look at a request takes far more code than to forward it, and between two requests a processor forgets that code:
fetched anew for each, it costs twice what it costs again and again in a row, and whoever waits for a first token waits
for it. So who forwards bytes only notes what happened, and the notes of many requests are looked at one after the
other: `BACKLOG_S` after the first of them and `BACKLOG_TURN` at a turn of the loop, or all of them as soon as somebody
asks what was counted (`settle`). What nobody waits for (`note_late`: tokens after the first) makes no wake of its own
before `BACKLOG_LATE` notes wait: a wake costs as much as what it is for.

Each note carries its time, and all are looked at in their order: looking late changes no number.

Bounded: beyond `BACKLOG_NOTES`, or `BACKLOG_BYTES` of bodies that they hold on to, they are looked at at once.
"""

from collections.abc import Callable

from sidecar.limits import BACKLOG_BYTES, BACKLOG_LATE, BACKLOG_NOTES, BACKLOG_S, BACKLOG_TURN

Act = Callable[..., object]
Note = tuple[Act, tuple[object, ...]]


class Backlog:
    """The notes of one process. `fault` takes what goes wrong in one of them, `settled` is told when all were looked
    at, and `call_later` is the event loop's."""

    __slots__ = ("_bytes", "_call_later", "_fault", "_is_awaited", "_notes", "_settled", "is_settling")

    def __init__(
        self,
        call_later: Callable[[float, Callable[[], None]], object],
        *,
        fault: Callable[[Exception], None],
        settled: Callable[[], None],
    ) -> None:
        self._call_later, self._fault, self._settled = call_later, fault, settled
        self._notes: list[Note] = []
        self._bytes = 0
        self._is_awaited = self.is_settling = False

    def note(self, act: Act, *about: object) -> None:
        """Do `act` with what it is about later, after everything noted before."""
        self._notes.append((act, about))
        if not self._is_awaited:
            self._wake_in(BACKLOG_S)

    def note_late(self, act: Act, *about: object) -> None:
        """As `note`, of an act that nobody waits for."""
        self._notes.append((act, about))
        if not self._is_awaited and len(self._notes) >= BACKLOG_LATE:
            self._wake_in(BACKLOG_S)

    def note_bytes(self, act: Act, data: bytes, *about: object) -> None:
        """As `note`, of an act that is about bytes, first of all."""
        self._bytes += len(data)
        self._notes.append((act, (data, *about)))
        if self._bytes > BACKLOG_BYTES or len(self._notes) > BACKLOG_NOTES:
            self.settle()
        elif not self._is_awaited:
            self._wake_in(BACKLOG_S)

    def settle(self) -> None:
        """Look at all that is noted. Never raises."""
        if not self.is_settling:
            while self._notes:
                self._look_at(len(self._notes))

    def _due(self) -> None:
        """Look at some, and let the loop serve whoever came meanwhile before the next ones."""
        self._is_awaited = False
        self._look_at(BACKLOG_TURN)
        if self._notes:
            self._wake_in(0)

    def _wake_in(self, delay_s: float) -> None:
        self._is_awaited = True
        self._call_later(delay_s, self._due)

    def _look_at(self, count: int) -> None:
        notes = self._notes[:count]
        del self._notes[:count]
        if not self._notes:
            self._bytes = 0
        self.is_settling = True
        for act, about in notes:
            try:
                act(*about)
            except Exception as error:  # noqa: BLE001  promise 1: the user's bytes outrank telemetry
                self._fault(error)
        self.is_settling = False
        self._settled()
