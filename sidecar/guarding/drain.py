"""How fast the queue before the first token drains, learnt from the first tokens themselves.

What waits is work: so many requests of so many bytes. What drains it is not known from outside (prefill, a slot in the
batch, memory), and need not be: while somebody waits, the time between two first tokens is what one request costs
there. That cost is `fixed + per_byte * bytes`, fitted by least squares to the latest gaps, the older the less; where
prefill is the bottleneck `per_byte` carries it, where slots are it is `fixed`.

An engine that serves many at once drains a long queue faster than a short one: before a short queue it idles between
two arrivals. So each depth, by powers of two, has a pace of its own, a factor on that cost. A depth at which no gaps
were seen takes the pace of the next lower one that has some: from there on it is an extrapolation, too slow rather
than too fast, and `is_known` says so.

A request that meets nobody waits for something else, its own prefill and all that stands before it: another fit.

Free of any scale: no constant here has a unit of time or bytes but the time after which gaps are forgotten. One gap
that is far too long (a hang, a restart, a cold start) counts as long as `CLIP` usual ones.
"""

from sidecar.limits import GUARD_FORGET_S

MEMORY = 32  # gaps: the weight of one falls to 1/e after so many more
FEWEST = 7  # weight of the gaps from which a pace is one: of eight in a row
DEPTHS = 16  # powers of two, the last one open
KNOWN = 1  # so many powers of two beyond the depths seen are no extrapolation yet
CLIP = 8.0
_KEPT = 1 - 1 / MEMORY
_SPREAD = 0.05  # sizes that vary less than this (squared, of their mean) say little of what a byte costs
_FORGET_NS = GUARD_FORGET_S * 1_000_000_000


class Cost:
    """What a request takes, by its size: seconds `fixed_s + per_byte_s * size`, both at least 0, of the latest seen."""

    __slots__ = ("_seconds", "_size", "_size_seconds", "_size_squared", "_weight", "fixed_s", "per_byte_s")

    def __init__(self) -> None:
        self._weight = self._size = self._seconds = self._size_squared = self._size_seconds = 0.0
        self.fixed_s = self.per_byte_s = 0.0

    @property
    def mean_size(self) -> float:
        """Of the latest requests."""
        return self._size / self._weight if self._weight else 0.0

    def add(self, size: int, seconds: float) -> None:
        """A request of `size` bytes took so long."""
        weight = self._weight = self._weight * _KEPT + 1
        self._size = self._size * _KEPT + size
        self._seconds = self._seconds * _KEPT + seconds
        self._size_squared = self._size_squared * _KEPT + size * size
        self._size_seconds = self._size_seconds * _KEPT + size * seconds
        mean_size, mean_s = self._size / weight, self._seconds / weight
        spread = self._size_squared / weight - mean_size * mean_size + _SPREAD * mean_size * mean_size
        together = self._size_seconds / weight - mean_size * mean_s
        if together <= 0 or spread <= 0:
            self.fixed_s, self.per_byte_s = mean_s, 0.0
            return
        self.per_byte_s = min(together / spread, mean_s / mean_size)
        self.fixed_s = max(0.0, mean_s - self.per_byte_s * mean_size)

    def of(self, requests: float, size: float) -> float:
        """Seconds that so many requests of so many bytes together take."""
        return self.fixed_s * requests + self.per_byte_s * size


class _Pace:
    """The gaps seen at one depth: their number (older ones count less), what left the queue in them, and the time."""

    __slots__ = ("at_ns", "gaps", "requests", "seconds", "size")

    def __init__(self) -> None:
        self.gaps = self.requests = self.size = self.seconds = 0.0
        self.at_ns = 0

    def add(self, requests: int, size: int, seconds: float, at_ns: int) -> None:
        kept = 0.0 if at_ns - self.at_ns > _FORGET_NS else _KEPT
        self.gaps = self.gaps * kept + 1
        self.requests = self.requests * kept + requests
        self.size = self.size * kept + size
        self.seconds = self.seconds * kept + seconds
        self.at_ns = at_ns


class Drain:
    """What was learnt of one server: `idle`, what a request takes that meets nobody; `gap_s`, the usual gap of late
    whatever the depth; `longest_s`, about the longest: a silence up to it says nothing. Times are nanoseconds of one
    monotonic clock."""

    __slots__ = ("_paces", "_queued", "gap_s", "idle", "longest_s")

    def __init__(self) -> None:
        self.idle, self._queued = Cost(), Cost()
        self._paces = tuple(_Pace() for _ in range(DEPTHS))
        self.gap_s = self.longest_s = 0.0

    # What is seen.

    def met_nobody(self, size: int, seconds: float) -> None:
        """A request that nobody was before, and nobody overtook, had its first token after so long."""
        usual_s = self.idle.of(1, size)
        self.idle.add(size, min(seconds, CLIP * usual_s) if usual_s else seconds)

    def drained(self, depth: int, requests: int, size: int, *, seconds: float, at_ns: int) -> None:
        """While `depth` requests waited, the next first token came `seconds` after the one before it, and with it so
        many requests of `size` bytes left the queue."""
        usual_s = CLIP * max(self._queued.of(requests, size), self.idle.of(1, size))
        if seconds > usual_s > 0:
            seconds = usual_s
        if requests == 1:
            self._queued.add(size, seconds)
        self.gap_s += (seconds - self.gap_s) / MEMORY if self.gap_s else seconds
        self.longest_s = max(self.longest_s * _KEPT, seconds)
        self._paces[_place(depth)].add(requests, size, seconds, at_ns)

    # What follows.

    @property
    def usual_size(self) -> float:
        """Bytes of a request, on average."""
        return self._queued.mean_size or self.idle.mean_size

    def idle_s(self, size: float) -> float:
        """How long a request takes that meets nobody; 0 while none was seen."""
        return self.idle.of(1, size)

    def queued_s(self, requests: int, size: float) -> float:
        """What so many requests of so many bytes cost at a pace of 1."""
        return self._queued.of(requests, size)

    def pace(self, depth: int, at_ns: int) -> tuple[float, bool]:
        """The factor on `queued_s` where `depth` requests wait (0: nothing is known), and whether that was seen."""
        own = _place(depth)
        for place in range(own, -1, -1):
            seen = self._paces[place]
            if seen.gaps >= FEWEST and at_ns - seen.at_ns <= _FORGET_NS:
                usual_s = self._queued.of(seen.requests, seen.size)
                return (seen.seconds / usual_s if usual_s else 0.0), own - place <= KNOWN
        return 0.0, False


def _place(depth: int) -> int:
    return min(depth.bit_length(), DEPTHS) - 1
