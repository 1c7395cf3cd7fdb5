"""The eye: sees every admitted request beside its bytes, judges it in time, and counts.

The proxy tells a `Watch` what happened to its request, always through `Eye.look`, where a fault of telemetry ends
(`faults`), and the proxy goes on as if nothing had been. Nothing here touches a byte, a socket or a file.
"""

from collections.abc import Callable, Iterable

from sidecar import dialects
from sidecar.alarm import Alarm
from sidecar.deadlines import Judge, Rule, StateSeconds, Verdict, matching, rules
from sidecar.exchange import Exchange, Record
from sidecar.faults import Faults
from sidecar.http_head import RequestHead, find
from sidecar.labels import ModelLabels
from sidecar.tally import Attributes, Number, Tally
from sidecar.usage_policy import UsagePolicy
from sidecar.watch import EndedRequest, Watch
from slo.objective import Objective, Spec
from slo.signals import (
    BAD,
    CENSORED,
    CLASS,
    DIALECT,
    E2E,
    GOOD,
    HEARTBEAT,
    IN_FLIGHT,
    LAST_TOKEN_AGE,
    LATENCY_METRICS,
    OBJECTIVE,
    OBJECTIVE_HASH,
    OTHER_MODEL,
    OUTCOME,
    OUTCOMES,
    OVERDUE,
    REASON,
    REQUEST_MODEL,
    REQUESTS,
    RESULT,
    SIGNAL,
    SLO_EVENTS,
    SYNTHETIC_CLASS,
    TOKEN_TYPE,
    TOKENS,
    TPOT,
    TTFT,
    UNKNOWN_MODEL,
    UNPARSED,
    USAGE_ASKED,
    WAITING_FIRST_TOKEN,
)

OVERDUE_SIGNALS = (TTFT.sql, E2E.sql)


class Eye:
    """The eye over all requests of one process."""

    def __init__(
        self,
        alarm: Alarm,
        *,
        tally: Tally,
        labels: ModelLabels,
        ended: Callable[[EndedRequest], None],
        class_header: bytes,
    ) -> None:
        self.alarm, self.tally, self.labels = alarm, tally, labels
        self.kv_occupancy: float | None = None
        self.overload_429 = False
        self.usage = UsagePolicy()
        self.last_token_ns = self.busy_since_ns = 0
        self._ended, self._class_header = ended, class_header
        self._classes: frozenset[str] = frozenset((SYNTHETIC_CLASS,))
        self._objectives: tuple[Objective, ...] = ()
        self._hashes: dict[int, tuple[Objective, str]] = {}
        self._current: frozenset[tuple[str, str]] = frozenset()
        self._rules: tuple[Rule, ...] = ()
        self._state = StateSeconds(())
        self._in_flight: set[Watch] = set()
        self._shown: set[str] = set()
        tally.create(HEARTBEAT, ())
        self.look = Faults(tally).look

    # Objectives.

    def load(self, spec: Spec | None) -> None:
        """Judge new requests by `spec`; those in flight keep theirs, and hashes that are gone are exported no more."""
        self._objectives = spec.objectives if spec is not None else ()
        self._rules = rules(self._objectives)
        self._state = StateSeconds(self._rules)
        self._classes = frozenset((*(spec.classes if spec is not None else ()), SYNTHETIC_CLASS))
        self._hashes = {id(objective): (objective, objective.hash) for objective in self._objectives}
        self._current = frozenset((objective.name, digest) for objective, digest in self._hashes.values())
        self.tally.keep(SLO_EVENTS, lambda key: (dict(key)[OBJECTIVE], dict(key)[OBJECTIVE_HASH]) in self._current)
        for model in spec.literal_models if spec is not None else ():
            self.labels.learn(model)
        self.introduce(self.labels.known)

    def introduce(self, models: Iterable[str]) -> None:
        """Make every label set of these models exist, at 0."""
        for model in models:
            for metric in LATENCY_METRICS:
                self.tally.create_latency(metric, ((REQUEST_MODEL, model),))
            for outcome in OUTCOMES:
                self.tally.create(REQUESTS, ((REQUEST_MODEL, model), (OUTCOME, outcome)))
            for objective in self._objectives:
                if objective.match.holds_model(model):
                    for result in (GOOD, BAD):
                        self._add_event(model, objective, result, 0)
                    if objective.signal in OVERDUE_SIGNALS:
                        self.tally.create_latency(CENSORED, ((REQUEST_MODEL, model), (SIGNAL, objective.signal)))

    def _add_event(self, model: str, objective: Objective, result: str, count: int) -> None:
        """Count events, unless a reload has replaced the objective since."""
        known = self._hashes.get(id(objective))
        digest = known[1] if known is not None and known[0] is objective else objective.hash
        if (objective.name, digest) in self._current:
            named: Attributes = ((REQUEST_MODEL, model), (OBJECTIVE, objective.name))
            self.tally.add(SLO_EVENTS, (*named, (OBJECTIVE_HASH, digest), (RESULT, result)), count)

    def learn(self, model: str | None) -> None:
        if self.labels.learn(model) and model is not None:
            self.introduce((model,))

    # Requests.

    def admit(self, head: RequestHead, *, trusted: bool) -> Watch | None:
        """A watch over a request that may ask for generation, or None: then it is only proxied."""
        watch: list[Watch] = []
        if head.method == b"POST":
            self.look(self._admit, head, trusted, watch)
        return watch[0] if watch else None

    def _admit(self, head: RequestHead, trusted: bool, watch: list[Watch]) -> None:
        dialect = dialects.recognise(head.method.decode(), head.path.decode("latin-1"))
        if dialect is None:
            return
        named = find(head.headers, self._class_header) if trusted else None
        request_class = None if named is None else named.decode("latin-1")
        found = Watch(self, head, dialect, request_class if request_class in self._classes else None)
        found.usage = self.usage.candidate(head, dialect)
        watch.append(found)

    def rules_of(self, ask: dialects.Ask, request_class: str | None) -> tuple[Rule, ...]:
        if request_class == SYNTHETIC_CLASS:
            return ()
        model = ask.model or self.labels.sole or UNKNOWN_MODEL
        return matching(self._rules, model=model, request_class=request_class, prompt_bytes=ask.prompt_bytes)

    def begin(self, watch: Watch, at_ns: int) -> None:
        if not self._in_flight:
            self.busy_since_ns = at_ns
        self._in_flight.add(watch)
        self.alarm.set(watch)

    def count(self, watch: Watch, verdicts: Iterable[Verdict]) -> None:
        for verdict in verdicts:
            self._add_event(watch.label, verdict.objective, GOOD if verdict.good else BAD, 1)
            watch.violated = watch.violated or not verdict.good

    def end(self, watch: Watch, exchange: Exchange, judge: Judge) -> None:
        """Count a request that is over, whatever becomes of the counting."""
        self._in_flight.discard(watch)
        self.alarm.cancel(watch)
        record = exchange.record()
        if watch.usage is not None and (result := self.usage.ended(watch.usage, record)) is not None:
            self.tally.add(USAGE_ASKED, ((REASON, result),))
        self.learn(None if record.request_model or record.outcome not in ("ok", "no_output") else record.response_model)
        watch.model = record.request_model or record.response_model
        self._count_record(watch, record, judge)
        self._ended(watch.ended_request(record))

    def _count_record(self, watch: Watch, record: Record, judge: Judge) -> None:
        named: Attributes = ((REQUEST_MODEL, watch.label),)
        klass: Attributes = () if watch.request_class is None else ((CLASS, watch.request_class),)
        self.tally.add(REQUESTS, (*named, (OUTCOME, record.outcome), *klass))
        if record.unparsed_events:
            self.tally.add(UNPARSED, ((DIALECT, record.dialect),), record.unparsed_events)
        if watch.request_class == SYNTHETIC_CLASS:
            return
        self.count(watch, judge.ended(record))
        for metric, seconds in ((TTFT, record.ttft_s), (TPOT, record.tpot_s), (E2E, record.e2e_s)):
            if seconds is not None:
                self.tally.record(metric, named, seconds)
        for signal, seconds in judge.censored(record):
            self.tally.record(CENSORED, (*named, (SIGNAL, signal)), seconds)
        for kind, count in (("input", record.input_tokens), ("output", record.output_tokens)):
            if count:
                self.tally.add(TOKENS, (*named, (TOKEN_TYPE, kind)), count)

    # Time and state.

    def second(self, now_ns: int, *, kv_occupancy: float | None, waiting: float | None, heartbeats: int) -> None:
        """What each second brings: life itself, and the seconds of objectives over the engine's state."""
        self.tally.add(HEARTBEAT, (), heartbeats)
        self.kv_occupancy = kv_occupancy
        if kv_occupancy is not None:
            for watch in self._in_flight:
                watch.kv_max = max(watch.kv_max or 0.0, kv_occupancy)
        label = self.labels.sole or UNKNOWN_MODEL
        seen = self._state.observe(
            now_ns / 1e9, kv_occupancy=kv_occupancy, waiting=waiting, in_flight=len(self._in_flight)
        )
        for seconds in seen:
            for result, count in ((GOOD, seconds.good), (BAD, seconds.bad)):
                self._add_event(label, seconds.objective, result, count)

    def catch_up(self) -> None:
        """Have every request in flight look at what its shell has put aside for later."""
        for watch in list(self._in_flight):
            watch.catch_up()

    def gauges(self, now_ns: int) -> list[Number]:
        """How many requests stand where right now, by model, and the age of the last token."""
        counts: dict[tuple[str, str], int] = {}
        # A label that was shown once stays, at 0: a reader must not take its last value for the present one.
        self._shown.update(self.labels.known or (OTHER_MODEL,))
        self._shown.update(watch.label for watch in self._in_flight)
        for model in sorted(self._shown):
            for column in (IN_FLIGHT.name, WAITING_FIRST_TOKEN.name, *OVERDUE_SIGNALS):
                counts[model, column] = 0
        for watch in self._in_flight:
            for column in watch.columns(now_ns):
                counts[watch.label, column] += 1
        found = []
        for (model, column), count in counts.items():
            named: Attributes = ((REQUEST_MODEL, model),)
            if column in OVERDUE_SIGNALS:
                found.append(Number(OVERDUE, (*named, (SIGNAL, column)), count))
            else:
                metric = IN_FLIGHT if column == IN_FLIGHT.name else WAITING_FIRST_TOKEN
                found.append(Number(metric, named, count))
        if self._in_flight:
            since_ns = max(self.last_token_ns, self.busy_since_ns)
            found.append(Number(LAST_TOKEN_AGE, (), max(0, now_ns - since_ns) / 1e9))
        return found
