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
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from sidecar.exchange import Exchange
from sidecar.record import Record
from slo.objective import Objective

DEFAULT_PATIENCE_NS = 30_000_000_000
MAX_HELD_S = 15
"""How long a state is taken to last when nothing newer is known."""

_TTFT, _TPOT, _E2E, _AVAILABILITY, _KV, _QUEUE = "ttft", "tpot", "e2e", "availability", "kv_occupancy", "queue"

_FAILED = ("error", "rejected", "timeout")


@dataclass(frozen=True, slots=True)
class Rule:
    """An objective ready to judge by. `limit_ns`: of ttft, tpot and e2e the threshold, of availability the patience
    that was written, None if none was; `limit`: the threshold of kv_occupancy (share) and queue (requests)."""

    objective: Objective
    signal: str
    limit_ns: int | None = None
    stall_ns: int = 0
    min_tokens: int = 0
    limit: float = math.inf


class Verdict(NamedTuple):
    """One event: good or bad for an objective, at the time when that was certain."""

    objective: Objective
    good: bool
    at_ns: int


class Seconds(NamedTuple):
    """Whole seconds of an instance with work, good and bad for an objective."""

    objective: Objective
    good: int
    bad: int


def rules(objectives: Iterable[Objective]) -> tuple[Rule, ...]:
    """The rules of a spec's objectives: made once when a spec is loaded."""
    return tuple(_rule(objective) for objective in objectives)


def _rule(objective: Objective) -> Rule:
    signal = objective.signal
    if signal in (_KV, _QUEUE):
        return Rule(objective, signal, limit=float(objective.threshold or 0))
    limit_s = objective.patience if signal == _AVAILABILITY else objective.threshold
    return Rule(
        objective,
        signal,
        limit_ns=None if limit_s is None else int(limit_s * 1_000_000_000),
        stall_ns=int(objective.stall_s * 1_000_000_000),
        min_tokens=objective.min_tokens,
    )


def matching(
    candidates: tuple[Rule, ...], *, model: str, request_class: str | None, prompt_bytes: int
) -> tuple[Rule, ...]:
    """The rules that a request belongs to."""
    return tuple(
        rule
        for rule in candidates
        if rule.signal not in (_KV, _QUEUE)
        and rule.objective.match.holds(model=model, request_class=request_class, prompt_bytes=prompt_bytes)
    )


class Judge:
    """The judge of one exchange: gives each verdict once, as soon as it is certain."""

    __slots__ = ("_exchange", "_open", "_rules")

    def __init__(self, rules: tuple[Rule, ...], exchange: Exchange) -> None:
        self._rules = rules
        self._open = list(rules)
        self._exchange = exchange

    def next_deadline_ns(self) -> int | None:
        """When `passed` may have something to say, None when only the end can."""
        return min((at_ns for rule in self._open if (at_ns := self._deadline_ns(rule)) is not None), default=None)

    def _deadline_ns(self, rule: Rule) -> int | None:
        """When an open rule turns bad if nothing comes; None when waiting alone cannot make it bad."""
        exchange = self._exchange
        if rule.signal == _TPOT:
            return self._stall_ns(rule)
        limit_ns = rule.limit_ns
        if rule.signal == _AVAILABILITY and limit_ns is None and exchange.ask.stream:
            limit_ns = DEFAULT_PATIENCE_NS
        if limit_ns is None:
            return None
        deadline_ns = exchange.t0_ns + limit_ns + 1
        return None if self._is_kept(rule.signal, deadline_ns) else deadline_ns

    def _is_kept(self, signal: str, deadline_ns: int) -> bool:
        """Whether what the deadline asks for is there, or was never asked for."""
        exchange = self._exchange
        if signal == _TTFT and not exchange.ask.stream:
            return True
        came_at_ns = {
            _AVAILABILITY: exchange.received_at_ns,
            _E2E: exchange.finished_at_ns,
            _TTFT: exchange.first_token_at_ns,
        }[signal]
        return came_at_ns is not None and came_at_ns < deadline_ns

    def _stall_ns(self, rule: Rule) -> int | None:
        """When silence after the last token becomes a stall, unless the answer finishes first."""
        last_ns, finished_ns = self._exchange.last_token_at_ns, self._exchange.finished_at_ns
        if last_ns is None or (finished_ns is not None and finished_ns <= last_ns + rule.stall_ns):
            return None
        return last_ns + rule.stall_ns + 1

    def passed(self, now_ns: int) -> list[Verdict]:
        """The deadlines that have gone by: bad, at the deadline's own time."""
        verdicts: list[Verdict] = []
        still_open: list[Rule] = []
        for rule in self._open:
            at_ns = self._deadline_ns(rule)
            if at_ns is None or at_ns > now_ns:
                still_open.append(rule)
            else:
                verdicts.append(Verdict(rule.objective, good=False, at_ns=at_ns))
        self._open = still_open
        return verdicts

    def first_token(self) -> list[Verdict]:
        """The verdicts that the first token brings; to be asked when it has come."""
        at_ns = self._exchange.first_token_at_ns
        if at_ns is None:
            return []
        decided = [rule for rule in self._open if rule.signal == _TTFT]
        self._open = [rule for rule in self._open if rule.signal != _TTFT]
        return [self._by_first_token(rule, at_ns) for rule in decided]

    def _by_first_token(self, rule: Rule, at_ns: int) -> Verdict:
        deadline_ns = self._exchange.t0_ns + (rule.limit_ns or 0) + 1
        return Verdict(rule.objective, good=at_ns < deadline_ns, at_ns=min(at_ns, deadline_ns))

    def ended(self, record: Record) -> list[Verdict]:
        """The verdicts that the end brings, among them deadlines that passed unasked; nothing is open afterwards."""
        verdicts = self.passed(record.ended_at_ns) + self.first_token()
        for rule in self._open:
            good = _good_at_end(rule, record)
            if good is not None:
                verdicts.append(Verdict(rule.objective, good=good, at_ns=record.ended_at_ns))
        self._open = []
        return verdicts

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
        values = {_TTFT: record.ttft_s, _E2E: record.e2e_s}
        return tuple(
            (signal, record.duration_s)
            for signal, value in values.items()
            if value is None
            and (deadline_ns := self._first_deadline_ns(signal)) is not None
            and deadline_ns <= record.ended_at_ns
            and (signal == _E2E or record.stream)
        )

    def _first_deadline_ns(self, signal: str) -> int | None:
        limits = [rule.limit_ns for rule in self._rules if rule.signal == signal and rule.limit_ns is not None]
        return self._exchange.t0_ns + min(limits) + 1 if limits else None


def _good_at_end(rule: Rule, record: Record) -> bool | None:
    """What the end itself decides: good, bad, or nothing, as for client_error, quota and a client that left."""
    if rule.signal == _TPOT:
        return _good_pace(rule, record)
    if record.outcome in _FAILED:
        return False if rule.signal != _TTFT or record.stream else None
    if rule.signal == _AVAILABILITY:
        return True if record.outcome in ("ok", "no_output") else None
    if rule.signal == _E2E and record.outcome == "ok" and record.e2e_s is not None:
        return round(record.e2e_s * 1e9) <= (rule.limit_ns or 0)
    return None


def _good_pace(rule: Rule, record: Record) -> bool | None:
    if record.longest_gap_s is not None and round(record.longest_gap_s * 1e9) > rule.stall_ns:
        return False
    if record.tpot_s is None or record.streamed_tokens is None or record.streamed_tokens < rule.min_tokens:
        return None
    return round(record.tpot_s * 1e9) <= (rule.limit_ns or 0)


class StateSeconds:
    """Seconds of an instance with work, by its KV occupancy and queue.

    Each whole second is judged by the state last observed before it, so that neither the interval of observation nor
    the number of observers changes the count. A state that is unknown, or older than `MAX_HELD_S`, counts for nothing.
    """

    __slots__ = ("_in_flight", "_rules", "_seen_s", "_values")

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules = tuple(rule for rule in rules if rule.signal in (_KV, _QUEUE))
        self._values: dict[str, float | None] = {}
        self._in_flight = 0
        self._seen_s: float | None = None

    def observe(
        self,
        now_s: float,
        *,
        kv_occupancy: float | None,
        waiting: float | None,
        in_flight: int,
        model: str | None = None,
    ) -> list[Seconds]:
        """The state at `now_s`, a monotonic time; returns the seconds since the last call, judged.

        `in_flight`: requests the instance has. `model`: the engine's, to leave out objectives of others.
        """
        passed_s = 0 if self._seen_s is None else min(math.floor(now_s) - math.floor(self._seen_s), MAX_HELD_S)
        seconds: list[Seconds] = []
        if passed_s > 0 and self._in_flight > 0:
            for rule in self._rules:
                value = self._values.get(rule.signal)
                if value is not None and (model is None or rule.objective.match.holds_model(model)):
                    good = passed_s if value <= rule.limit else 0
                    seconds.append(Seconds(rule.objective, good, passed_s - good))
        self._values = {_KV: kv_occupancy, _QUEUE: waiting}
        self._in_flight = in_flight
        self._seen_s = now_s
        return seconds
