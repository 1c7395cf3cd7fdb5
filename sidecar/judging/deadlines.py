"""Good or bad, and when: one request against the objectives it matches, and an instance's state against its own.

Promise 2 of the design: bad is counted when the deadline passes, not when the request ends, so that a hung engine is
seen while it hangs. At most one event for each request and objective (DESIGN 5):

    signal         good                            bad                                           none
    -----------    ----------------------------    ------------------------------------------    ----------------------
    ttft, e2e      the value is within             the deadline passes; or error, rejected,      the client left, or
                   the threshold                   timeout before it                             no_output, before it
    tpot           at the end, within the          at the end, above it; or at once when a       too few tokens, no
                   threshold                       running stream is silent for `stall`          value
    availability   ok, no_output                   error, rejected, timeout; or at once when     the client left before
                                                   `patience` passes with nothing received       `patience`

client_error and quota make none, but what a deadline has counted stands: at that moment the user had waited in vain.
ttft and tpot speak of streams alone. A threshold itself is still within: a deadline passes one nanosecond later.

`kv_occupancy` and `queue` are counted by `StateSeconds` in whole seconds of an instance with work.

No clock: times are arguments, nanoseconds of the exchange's clock.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple, TypeAlias

from sidecar.guarding.queue_guard import Promise
from sidecar.said.exchange import Exchange
from sidecar.said.record import Outcome, Record
from slo.objective import Match, Objective
from slo.trouble import SYNTHETIC_MOST

DEFAULT_PATIENCE_NS = 30_000_000_000
MAX_HELD_S = 15
"""How long a state is taken to last when nothing newer is known."""

_TTFT, _TPOT, _E2E, _AVAILABILITY, _KV, _QUEUE = "ttft", "tpot", "e2e", "availability", "kv_occupancy", "queue"

# What an outcome says of availability; of the others it says nothing.
_AVAILABLE: dict[Outcome, bool] = {"ok": True, "no_output": True, "error": False, "rejected": False, "timeout": False}


@dataclass(frozen=True, slots=True)
class Rule:
    """An objective ready to judge by. `limit_ns`: the threshold of ttft, tpot and e2e; `limit`: that of kv_occupancy
    (share) and queue (requests). `waits_ns`: how long a request, whole or streamed, may lack what the objective asks
    for, after t0 or, of tpot, after its last token; None for ever. `takes_all`: every request belongs to it.
    `promise`: what a ttft objective says of a first token."""

    objective: Objective
    signal: str
    limit_ns: int = 0
    waits_ns: tuple[int | None, int | None] = (None, None)
    takes_all: bool = False
    min_tokens: int = 0
    limit: float = math.inf
    promise: Promise | None = None


Verdict: TypeAlias = tuple[Objective, bool, int]
"""One event: good or bad for an objective, at the time (nanoseconds) when that was certain. (A plain tuple: made for
each objective of each request, it costs a quarter of one with names.)"""


class Seconds(NamedTuple):
    """Whole seconds of an instance with work, good and bad for an objective."""

    objective: Objective
    good: int
    bad: int


def rules(objectives: Iterable[Objective]) -> tuple[Rule, ...]:
    """The rules of a spec's objectives: made once when a spec is loaded."""
    return tuple(_rule(objective) for objective in objectives)


def soonest_ns(rules: Iterable[Rule]) -> float:
    """After how long waiting alone first turns a request bad for one of the rules; infinite where it never does."""
    return min((wait_ns for rule in rules for wait_ns in rule.waits_ns if wait_ns is not None), default=math.inf)


def _rule(objective: Objective) -> Rule:
    signal = objective.signal
    if signal in (_KV, _QUEUE):
        return Rule(objective, signal, limit=float(objective.threshold or 0))
    limit_ns, patience_ns, stall_ns = _ns(objective.threshold), _ns(objective.patience), _ns(objective.stall_s)
    waits_ns = {
        _TTFT: (None, limit_ns),
        _E2E: (limit_ns, limit_ns),
        _TPOT: (stall_ns, stall_ns),
        _AVAILABILITY: (patience_ns, DEFAULT_PATIENCE_NS if patience_ns is None else patience_ns),
    }
    return Rule(
        objective,
        signal,
        limit_ns=limit_ns or 0,
        waits_ns=waits_ns[signal],
        takes_all=objective.match == Match(),
        min_tokens=objective.min_tokens,
        promise=Promise(limit_ns, float(objective.goal)) if signal == _TTFT and limit_ns is not None else None,
    )


def _ns(seconds: Decimal | None) -> int | None:
    return None if seconds is None else int(seconds * 1_000_000_000)


def matching(
    candidates: tuple[Rule, ...], model: str, request_class: str | None, prompt_bytes: int
) -> tuple[Rule, ...]:
    """The rules that a request belongs to."""
    return tuple(
        [
            rule
            for rule in candidates
            if rule.takes_all
            or (
                rule.signal not in (_KV, _QUEUE)
                and rule.objective.match.holds(model=model, request_class=request_class, prompt_bytes=prompt_bytes)
            )
        ]
    )


class Judge:
    """The judge of one exchange: gives each verdict once, as soon as it is certain."""

    __slots__ = ("_exchange", "_open", "_rules")

    def __init__(self, rules: tuple[Rule, ...], exchange: Exchange) -> None:
        self._rules = rules
        self._open: Sequence[Rule] = rules
        self._exchange = exchange

    def next_deadline_ns(self) -> int | None:
        """When `passed` may have something to say, None when only the end can."""
        next_ns: int | None = None
        for rule in self._open:
            at_ns = self._deadline_ns(rule)
            if at_ns is not None and (next_ns is None or at_ns < next_ns):
                next_ns = at_ns
        return next_ns

    def _deadline_ns(self, rule: Rule) -> int | None:
        """When an open rule turns bad if nothing comes; None when waiting alone cannot make it bad."""
        exchange, signal = self._exchange, rule.signal
        wait_ns = rule.waits_ns[exchange.ask.stream]
        if wait_ns is None:
            return None
        if signal == _TPOT:
            return self._stall_ns(wait_ns)
        if signal == _TTFT:
            came_at_ns = exchange.first_token_at_ns
        else:
            came_at_ns = exchange.finished_at_ns if signal == _E2E else exchange.received_at_ns
        deadline_ns = exchange.t0_ns + wait_ns + 1
        return deadline_ns if came_at_ns is None or came_at_ns >= deadline_ns else None

    def _stall_ns(self, wait_ns: int) -> int | None:
        """When silence after the last token becomes a stall, unless the answer finishes first."""
        last_ns = self._exchange.last_token_at_ns
        if last_ns is None:
            return None
        finished_ns = self._exchange.finished_at_ns
        return last_ns + wait_ns + 1 if finished_ns is None or finished_ns > last_ns + wait_ns else None

    def passed(self, now_ns: int) -> list[Verdict]:
        """The deadlines that have gone by: bad, at the deadline's own time."""
        verdicts: list[Verdict] = []
        still_open: list[Rule] = []
        for rule in self._open:
            at_ns = self._deadline_ns(rule)
            if at_ns is None or at_ns > now_ns:
                still_open.append(rule)
            else:
                verdicts.append((rule.objective, False, at_ns))
        self._open = still_open
        return verdicts

    def first_token(self) -> list[Verdict]:
        """The verdicts that the first token brings; to be asked when it has come."""
        at_ns = self._exchange.first_token_at_ns
        if at_ns is None:
            return []
        verdicts: list[Verdict] = []
        still_open: list[Rule] = []
        for rule in self._open:
            if rule.signal == _TTFT:
                verdicts.append(self._by_first_token(rule, at_ns))
            else:
                still_open.append(rule)
        self._open = still_open
        return verdicts

    def _by_first_token(self, rule: Rule, at_ns: int) -> Verdict:
        deadline_ns = self._exchange.t0_ns + rule.limit_ns + 1
        return rule.objective, at_ns < deadline_ns, min(at_ns, deadline_ns)

    def ended(self, record: Record) -> list[Verdict]:
        """The verdicts that the end brings, among them deadlines that passed unasked; nothing is open afterwards."""
        verdicts: list[Verdict] = []
        ended_ns, first_ns, is_stream = record.ended_at_ns, self._exchange.first_token_at_ns, record.stream
        lasted_ns = ended_ns - record.t0_ns
        is_whole = first_ns is None and not is_stream  # of which ttft and tpot have nothing to say
        for rule in self._open:
            if is_whole and rule.signal in (_TTFT, _TPOT):
                continue
            wait_ns = rule.waits_ns[is_stream]
            deadline_ns = None if wait_ns is None or wait_ns >= lasted_ns else self._deadline_ns(rule)
            if deadline_ns is not None and deadline_ns <= ended_ns:
                verdicts.append((rule.objective, False, deadline_ns))
            elif rule.signal == _TTFT and first_ns is not None:
                verdicts.append(self._by_first_token(rule, first_ns))
            elif (good := _good_at_end(rule, record)) is not None:
                verdicts.append((rule.objective, good, ended_ns))
        self._open = ()
        return verdicts

    def at_stake(self) -> list[Objective]:
        """The objectives still open that the request would be bad for, were it to break off now."""
        breaks = (_TTFT, _E2E, _AVAILABILITY) if self._exchange.ask.stream else (_E2E, _AVAILABILITY)
        return [rule.objective for rule in self._open if rule.signal in breaks]

    def overdue(self, now_ns: int) -> tuple[str, ...]:
        """Of ttft and e2e, those of which a deadline has passed while the value is still missing."""
        if self._exchange.ended:
            return ()
        return tuple(
            signal
            for signal in (_TTFT, _E2E)
            if (deadline_ns := self._first_deadline_ns(signal)) is not None
            and deadline_ns <= now_ns
            and not self._has_come(signal)
        )

    def _has_come(self, signal: str) -> bool:
        if signal == _E2E:
            return self._exchange.finished_at_ns is not None
        return self._exchange.first_token_at_ns is not None or not self._exchange.ask.stream

    def censored(self, record: Record) -> tuple[tuple[str, float], ...]:
        """Of a request that ended past a deadline without a value: the signal, and the seconds it had waited."""
        ttft_misses = record.ttft_s is None and record.stream
        if not ttft_misses and record.e2e_s is not None:
            return ()
        return tuple(
            (signal, record.duration_s)
            for signal, misses in ((_TTFT, ttft_misses), (_E2E, record.e2e_s is None))
            if misses
            and (deadline_ns := self._first_deadline_ns(signal)) is not None
            and deadline_ns <= record.ended_at_ns
        )

    def _first_deadline_ns(self, signal: str) -> int | None:
        limits = [rule.limit_ns for rule in self._rules if rule.signal == signal]
        return self._exchange.t0_ns + min(limits) + 1 if limits else None


def _good_at_end(rule: Rule, record: Record) -> bool | None:
    """What the end itself decides: good, bad, or nothing, as for client_error, quota and a client that left."""
    signal = rule.signal
    if signal == _AVAILABILITY:
        return _AVAILABLE.get(record.outcome)
    if signal == _TPOT:
        return _good_pace(rule, record)
    if signal == _E2E and record.outcome == "ok" and record.e2e_s is not None:
        return round(record.e2e_s * 1e9) <= rule.limit_ns
    is_asked = signal == _E2E or record.stream
    return False if is_asked and _AVAILABLE.get(record.outcome) is False else None


def _good_pace(rule: Rule, record: Record) -> bool | None:
    gap_s, wait_ns = record.longest_gap_s, rule.waits_ns[record.stream]
    if gap_s is not None and wait_ns is not None and round(gap_s * 1e9) > wait_ns:
        return False
    if record.tpot_s is None or record.streamed_tokens is None or record.streamed_tokens < rule.min_tokens:
        return None
    return round(record.tpot_s * 1e9) <= rule.limit_ns


def speaks_of(objective: Objective, models: tuple[str, ...]) -> bool:
    """Whether an objective over an instance's state means one that serves `models`; none: what it serves is unknown,
    and it may be any."""
    return not models or any(objective.match.holds_model(model) for model in models)


def users_in_flight(in_flight: int, synthetic: int) -> int:
    """How many requests an instance's state is judged by: none while most are synthetic, for then whoever measures the
    engine fills it, and not its users."""
    return 0 if synthetic > float(SYNTHETIC_MOST) * in_flight else in_flight


class StateSeconds:
    """Seconds of an instance with work, by its KV occupancy and queue.

    Each whole second is judged by the state last observed before it, so that neither the interval of observation nor
    the number of observers changes the count. A state that is unknown, or older than `MAX_HELD_S`, counts for nothing.
    """

    __slots__ = ("_in_flight", "_models", "_own", "_rules", "_seen_s", "_values")

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules = self._own = tuple(rule for rule in rules if rule.signal in (_KV, _QUEUE))
        self._models: tuple[str, ...] = ()
        self._values: dict[str, float | None] = {}
        self._in_flight = 0
        self._seen_s: float | None = None

    def serve(self, models: tuple[str, ...]) -> None:
        """Judge as an instance that serves `models`: the objectives of others are left out."""
        if models is not self._models:
            self._models = models
            self._own = tuple(rule for rule in self._rules if speaks_of(rule.objective, models))

    def observe(
        self, now_s: float, *, kv_occupancy: float | None, waiting: float | None, in_flight: int
    ) -> list[Seconds]:
        """The state at `now_s`, a monotonic time, of an instance with so many requests; returns the seconds since the
        last call, judged."""
        passed_s = 0 if self._seen_s is None else min(math.floor(now_s) - math.floor(self._seen_s), MAX_HELD_S)
        seconds: list[Seconds] = []
        if passed_s > 0 and self._in_flight > 0:
            for rule in self._own:
                value = self._values.get(rule.signal)
                if value is not None:
                    good = passed_s if value <= rule.limit else 0
                    seconds.append(Seconds(rule.objective, good, passed_s - good))
        self._values = {_KV: kv_occupancy, _QUEUE: waiting}
        self._in_flight = in_flight
        self._seen_s = now_s
        return seconds
