"""The queue guard: says of each stream when its first token will come, and which would wait past their objective.

What waits is known: every request that was let through and has no token yet, its bytes and its time. What drains it is
learnt (`drain`). A request that joins at `now` then has its first token at

    since + pace * cost(all that waits, and itself)          since: the newest first token, or when the queue began

and not before an idle engine would give it. Of a queue that is served in turn by one server this is exact; where
many are served at once it holds on average (Little's law: as many wait as arrive in the time that they wait). A silence
longer than any gap of late is expected to last as long again, so that a hung engine is seen in the predictions too.

Engines begin in turn: whoever is overtaken, by the first token of a stream that came later, has left the queue too. So
does an answer that does not stream, which shows no first token; so does a stream that hangs by itself, or has a prompt
that takes a minute, while others are served.

    verdict        the request                                                    goes on
    -----------    -----------------------------------------------------------    -------
    in_time        will be within the threshold                                   yes
    would_shed     will be late; in `shadow` that is only said                    yes
    shed           will be late, and is refused                                   no
    probe          will be late; but nothing has moved for a threshold's time,    yes
                   or it was on its way before that was known
    few            may be late: too little was seen to say so                     yes
    unsure         may be late: predictions were too far off                      yes

Late is a request whose wait, with the margin that the errors of late ask for (`error_ratios`), leaves it no time for
its first token within the loosest TTFT objective that it belongs to. The guard's fear is to refuse in vain, so it does
not act on predictions that were too long; ones that were too short are no reason to spare a request that is late even
so, but a margin beyond `GUARD_MARGIN` is none to refuse one. Nobody is refused whom nothing is before: what would have
changed when they come back? So a queue that has drained is always noticed, and while it does not move there is a probe.

No clock, no socket: times are nanoseconds of one monotonic clock. O(1) for each request (which is overtaken once),
nothing for a token after the first.
"""

import math
from collections import OrderedDict
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from sidecar.guarding.calibration import Calibration
from sidecar.guarding.drain import Drain
from sidecar.guarding.error_ratios import ErrorRatios
from sidecar.limits import GUARD_MARGIN, GUARD_RETRY_S

Shedding: TypeAlias = Literal["shadow", "on", "off"]
Verdict: TypeAlias = Literal["in_time", "would_shed", "shed", "probe", "few", "unsure"]

SHEDDING: tuple[Shedding, ...] = ("shadow", "on", "off")
LEARNT = 4  # of so many first tokens after a short wait, one is learnt from
MAX_DOUBLINGS = 6  # of the time between two probes
_VERDICTS: tuple[Verdict, ...] = ("in_time", "shed", "probe", "few", "unsure")
_SHADOW_VERDICTS: tuple[Verdict, ...] = ("in_time", "would_shed", "few", "unsure")
TELLING_SHARE = 0.25  # of the threshold: shorter predictions come due without saying much of those near it


class Promise(NamedTuple):
    """That this share of requests has a first token within `limit_ns`."""

    limit_ns: int
    share: float


def loosest(promises: Iterable[Promise | None]) -> Promise | None:
    """The promise whose limit is the last to pass: a request that misses it has missed the others."""
    found: Promise | None = None
    for promise in promises:
        if promise is not None and (found is None or promise.limit_ns > found.limit_ns):
            found = promise
    return found


class Fate(NamedTuple):
    """What became of a request with a verdict: whether its first token came in time, and how far off, in seconds, the
    prediction was (None: there was none, or it never came due)."""

    verdict: Verdict
    good: bool
    error_s: float | None


IN_TIME = Fate("in_time", True, None)


class Queued:
    """One request before the queue, and in it. `promise`: that of a stream which may be judged; of others there is no
    verdict. `waits`: until its first token, or its end. `ahead`: how many the queue held when it came. Of
    `predicted_s` it would take `idle_s` with nobody ahead; `raw_wait_s` is the rest, not calibrated: neither is there
    where it was clear that the wait would be short."""

    __slots__ = (
        "ahead", "at_ns", "idle_s", "is_overtaken", "predicted_s", "promise", "raw_wait_s", "size", "streams",
        "verdict", "waits",
    )  # fmt: skip

    def __init__(self, size: int, at_ns: int, promise: Promise | None, *, streams: bool = True) -> None:
        self.size, self.at_ns, self.promise, self.streams, self.waits = size, at_ns, promise, streams, True
        self.verdict: Verdict = "in_time"
        self.predicted_s: float | None = None
        self.ahead = 0
        self.is_overtaken = False
        self.idle_s = self.raw_wait_s = 0.0

    @property
    def retry_s(self) -> int:
        """After how many seconds what waits now will have drained."""
        return min(max(1, math.ceil(self.predicted_s or 0.0)), GUARD_RETRY_S)


class QueueGuard:
    """The queue of one server, as far as this process fills it."""

    __slots__ = (
        "_begun_ns", "_calibration", "_count", "_drain", "_errors", "_first_size", "_looked_ns", "_mode", "_passed",
        "_probes", "_room", "_size", "_streams", "_tightest_ns", "_token_ns", "_unasked", "_whole",
    )  # fmt: skip

    def __init__(self, mode: Shedding) -> None:
        self._mode = mode
        self._drain, self._calibration, self._errors = Drain(), Calibration(), ErrorRatios()
        self._streams: OrderedDict[Queued, None] = OrderedDict()  # the queue, in its order
        self._whole: OrderedDict[Queued, None] = OrderedDict()  # and of that what does not stream
        self._count = self._size = 0  # of all in the queue, in requests and bytes
        self._token_ns = 0  # the newest first token
        self._looked_ns = self._probes = 0  # when the queue was last seen to move or to be probed; probes that wait
        self._begun_ns = self._first_size = 0  # the newest request that met nobody
        self._passed = 0  # first tokens of short waits, of which only some are learnt from
        self._room, self._unasked = math.inf, 0  # so many may go on before they are asked about; so many have since
        self._tightest_ns = 0  # the least that any request so far was promised; 0: none was

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Those that there may be."""
        return _VERDICTS if self._mode == "on" else _SHADOW_VERDICTS

    # What happens to requests.

    def asks(self) -> bool:
        """Whether the next request is to be asked about before it goes on, since it may have to be refused. Many that
        come at once join only after they have gone on: no more of them than would still be in time."""
        self._unasked += 1
        if self._unasked <= self._room:
            return False
        self._unasked = 0
        return True

    def join(self, queued: Queued, *, may_refuse: bool = True) -> Queued:
        """A request has come; unless its verdict is `shed`, it waits from now on. `may_refuse`: it has not gone on."""
        ahead = queued.ahead = self._count
        if self._unasked:
            self._unasked -= 1
        if queued.promise is not None:
            self._judge(queued, queued.promise)
            if queued.verdict == "shed":
                if may_refuse:
                    queued.waits = False
                    return queued
                queued.verdict = "probe"
            if queued.verdict == "probe":
                self._looked_ns = queued.at_ns
                self._probes += 1
        if ahead == 0:
            self._begun_ns, self._first_size = queued.at_ns, queued.size
        self._count = ahead + 1
        self._size += queued.size
        (self._streams if queued.streams else self._whole)[queued] = None
        return queued

    def first_token(self, queued: Queued, at_ns: int) -> Fate | None:
        """Its first token came; what became of it, if it was judged."""
        if not queued.waits:
            return None
        self._learn(queued, at_ns)
        promise, predicted_s = queued.promise, queued.predicted_s
        if promise is None:
            return None
        waited_ns = at_ns - queued.at_ns
        is_good = waited_ns <= promise.limit_ns
        if predicted_s is None or queued.ahead == 0:
            return IN_TIME if is_good and queued.verdict == "in_time" else Fate(queued.verdict, is_good, None)
        self._compare(queued, promise, waited_ns / 1e9, at_ns)
        return Fate(queued.verdict, is_good, abs(waited_ns / 1e9 - predicted_s))

    def leave(self, queued: Queued, at_ns: int) -> Fate | None:
        """It is over without a token; what became of it, if it was judged and that can be said."""
        promise = queued.promise
        if queued.verdict == "shed":
            return Fate("shed", False, None)
        if not queued.waits:
            return None
        self._go(queued)
        waited_ns = at_ns - queued.at_ns
        if promise is None or waited_ns <= promise.limit_ns:
            return None
        if queued.predicted_s is not None and waited_ns / 1e9 > queued.predicted_s:
            self._compare(queued, promise, waited_ns / 1e9, at_ns)  # it was off by at least so much
        return Fate(queued.verdict, False, None)

    def _go(self, queued: Queued) -> None:
        queued.waits = False
        self._probes -= queued.verdict == "probe"
        if not queued.is_overtaken:
            self._step_out(queued)

    def _step_out(self, queued: Queued) -> None:
        """Nobody is behind it any more."""
        self._count -= 1
        self._size -= queued.size
        del (self._streams if queued.streams else self._whole)[queued]

    def _learn(self, queued: Queued, at_ns: int) -> None:
        """Learn from a first token, and let go of all that has left the queue with it."""
        depth, requests, size, token_ns = self._count, 1, queued.size, self._token_ns
        self._go(queued)
        for line in (self._whole, self._streams):
            while line and (overtaken := next(iter(line))).at_ns <= queued.at_ns:
                self._step_out(overtaken)
                overtaken.is_overtaken = True
                requests, size = requests + 1, size + overtaken.size
        if at_ns > token_ns:
            self._token_ns = at_ns
        if queued.is_overtaken:
            return  # of the time since the token before it who knows how much was for it
        if token_ns > queued.at_ns:  # another's came while it waited: since then the server was at this one
            self._looked_ns = at_ns
            if queued.predicted_s is None and queued.verdict == "in_time":  # the wait was short: a few will do
                self._passed += 1
                if self._passed % LEARNT:
                    return
            seconds = (at_ns - token_ns) / 1e9 if at_ns > token_ns else 0.0
            self._drain.drained(depth, requests, size, seconds=seconds, at_ns=at_ns)
        elif queued.ahead == 0:
            self._drain.met_nobody(queued.size, (at_ns - queued.at_ns) / 1e9)

    def _compare(self, queued: Queued, promise: Promise, waited_s: float, at_ns: int) -> None:
        """Note how far the prediction of a wait was off, if it was one that says something of those that matter."""
        actual_s, wait_s = max(0.0, waited_s - queued.idle_s), (queued.predicted_s or 0.0) - queued.idle_s
        self._calibration.add(queued.ahead, predicted_s=queued.raw_wait_s, actual_s=actual_s)
        if wait_s > TELLING_SHARE * promise.limit_ns / 1e9:
            self._errors.add(actual_s / wait_s, at_ns)

    # What will happen to the next one.

    def outlook_s(self, at_ns: int) -> float | None:
        """When a request of the usual size that came now would have its first token; None where nobody can say."""
        size, ahead = self._drain.usual_size, self._count
        idle_s = self._drain.idle_s(size)
        if ahead == 0:
            return idle_s or None
        wait_s, is_known = self._wait(size, at_ns)
        return None if wait_s is None or not is_known else idle_s + wait_s * self._calibration.factor(ahead)

    def _wait(self, size: float, at_ns: int) -> tuple[float | None, bool]:
        """How many seconds longer than with nobody ahead a request that joins others would take to its first token, not
        calibrated, and whether a queue like this one has been seen."""
        drain, ahead = self._drain, self._count
        pace, is_known = drain.pace(ahead + 1, at_ns)
        if not pace:
            return None, False
        before_s, own_s = pace * drain.queued_s(ahead, self._size), pace * drain.queued_s(1, size)
        gap_s, silent_s = before_s / ahead, self._silent_s(pace, at_ns)
        overdue_s = max(0.0, silent_s - max(drain.longest_s, gap_s))
        return max(0.0, before_s + own_s - min(silent_s, gap_s) + overdue_s - drain.idle_s(size)), is_known

    def _silent_s(self, pace: float, at_ns: int) -> float:
        """Since when the server has been at the next request: the newest first token, or, of a queue that began after
        it, so long before the first request is due as that costs at this pace."""
        if self._begun_ns <= self._token_ns:
            return max(0, at_ns - self._token_ns) / 1e9
        drain, size = self._drain, self._first_size
        later_s = max(0.0, drain.idle_s(size) - pace * drain.queued_s(1, size))
        return (at_ns - self._begun_ns) / 1e9 - later_s

    def _judge(self, queued: Queued, promise: Promise) -> None:
        """Say what is to be said of a request before it joins."""
        idle, gap_s = self._drain.idle, self._drain.gap_s
        idle_s = queued.idle_s = idle.fixed_s + idle.per_byte_s * queued.size
        if queued.ahead == 0:
            queued.predicted_s = idle_s or None
            self._leave_room(promise, idle_s, wait_s=gap_s, each_s=gap_s)
            return
        allowed_s = _allowed_s(promise.limit_ns, idle_s)
        # Nearly always it is clear that the wait will be short: then it need not be worked out.
        at_most_s = (queued.ahead + 1) * gap_s + (queued.at_ns - max(self._begun_ns, self._token_ns)) / 1e9
        if gap_s > 0 and at_most_s * GUARD_MARGIN <= allowed_s:
            self._leave_room(promise, idle_s, wait_s=at_most_s, each_s=gap_s)
            return
        raw_s, is_known = self._wait(queued.size, queued.at_ns)
        if raw_s is None:
            queued.verdict, self._room = "few", math.inf
            return
        wait_s = raw_s * self._calibration.factor(queued.ahead)
        queued.raw_wait_s, queued.predicted_s = raw_s, idle_s + wait_s
        self._leave_room(promise, idle_s, wait_s=wait_s, each_s=wait_s / (queued.ahead + 1))
        if wait_s * GUARD_MARGIN > allowed_s:
            self._judge_wait(queued, promise, wait_s / allowed_s, is_known=is_known)

    def _leave_room(self, promise: Promise, idle_s: float, *, wait_s: float, each_s: float) -> None:
        """Behind a wait of `wait_s` so many more may go on unasked that the wait of the last, each of them making it
        longer by `each_s`, is in time even for the tightest promise and the widest margin."""
        if self._mode == "on":
            self._tightest_ns = min(self._tightest_ns or promise.limit_ns, promise.limit_ns)
            spare_s = _allowed_s(self._tightest_ns, idle_s) / GUARD_MARGIN - wait_s
            self._room = spare_s / each_s if each_s else math.inf

    def _judge_wait(self, queued: Queued, promise: Promise, wait: float, *, is_known: bool) -> None:
        """Say what is to be said of a wait, in units of what is allowed, that is late should a margin make it so."""
        margin = self._errors.margin(promise.share, queued.at_ns)
        if wait * (margin or 1.0) <= 1:
            return
        if not (is_known and margin is not None) and not self._is_overdue(queued.at_ns, promise):
            queued.verdict = "few"
        elif margin is not None and (self._errors.is_too_long or (margin > GUARD_MARGIN and wait <= 1)):
            queued.verdict = "unsure"
        elif self._mode != "on":
            queued.verdict = "would_shed"
        else:
            # With each probe that waits the next one comes after twice the time.
            unseen_ns = promise.limit_ns << min(self._probes, MAX_DOUBLINGS)
            queued.verdict = "probe" if queued.at_ns - self._looked_ns > unseen_ns else "shed"

    def _is_overdue(self, at_ns: int, promise: Promise) -> bool:
        """Whether the oldest stream of the queue has waited too long already: such a queue needs no precedent."""
        return bool(self._streams) and at_ns - next(iter(self._streams)).at_ns > promise.limit_ns


def _allowed_s(limit_ns: int, idle_s: float) -> float:
    """How long a wait may be. Of a promise that an idle server breaks the queue is not the cause: a wait is too long
    that would break it alone."""
    limit_s = limit_ns / 1e9
    return limit_s - idle_s if idle_s < limit_s else limit_s
