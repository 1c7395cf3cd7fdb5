"""The eye: sees every admitted request beside its bytes, judges it in time, and counts.

The proxy tells a `Watch` what happened to its request, always through `Eye.look`, where a fault of telemetry ends
(`faults`), and the proxy goes on as if nothing had been. Nothing here touches a byte, a socket or a file.
"""

from collections.abc import Callable, Iterable

from sidecar import dialects
from sidecar.deadline_timer import DeadlineTimer
from sidecar.deadlines import Judge, Rule, StateSeconds, Verdict, matching, rules
from sidecar.exchange import Exchange
from sidecar.exemplar import Trace
from sidecar.faults import Faults
from sidecar.http_head import RequestHead
from sidecar.labels import ModelLabels
from sidecar.record import EndedRequest, Record
from sidecar.series import Events, ModelSeries
from sidecar.tally import Attributes, Number, Tally
from sidecar.usage_policy import UsagePolicy
from sidecar.watch import Watch
from slo.objective import Objective, Spec
from slo.signals import (
    BAD,
    CENSORED,
    CLASS,
    DIALECT,
    E2E,
    HEARTBEAT,
    IN_FLIGHT,
    LAST_TOKEN_AGE,
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
    TTFT,
    UNKNOWN_MODEL,
    UNPARSED,
    USAGE_ASKED,
    WAITING_FIRST_TOKEN,
)

OVERDUE_SIGNALS = (TTFT.sql, E2E.sql)


class Eye:
    """The eye over all requests of one process.

    `ended` is told of each request once its verdicts are in, and says which trace it left that can be looked up."""

    def __init__(
        self,
        timer: DeadlineTimer,
        *,
        tally: Tally,
        labels: ModelLabels,
        ended: Callable[[EndedRequest], Trace | None],
        class_header: bytes,
    ) -> None:
        self.timer, self.tally, self.labels = timer, tally, labels
        self.kv_occupancy: float | None = None
        self.overload_429 = False
        self.exports_spans = True
        self.usage = UsagePolicy()
        self.last_token_ns = self.busy_since_ns = 0
        self._ended, self._class_header = ended, class_header
        self._classes: frozenset[str] = frozenset((SYNTHETIC_CLASS,))
        self._objectives: tuple[Objective, ...] = ()
        self._hashes: dict[int, tuple[Objective, str]] = {}
        self._current: frozenset[tuple[str, str]] = frozenset()
        self._series: dict[str, ModelSeries] = {}
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
        self.tally.keep(SLO_EVENTS, self.judges)
        for series in self._series.values():
            series.forget_events()
        for model in spec.literal_models if spec is not None else ():
            self.labels.learn(model)
        self.introduce(self.labels.known)

    def judges(self, attributes: Attributes) -> bool:
        """Whether these are of an event of an objective in force."""
        named = dict(attributes)
        return (named[OBJECTIVE], named[OBJECTIVE_HASH]) in self._current

    def introduce(self, models: Iterable[str]) -> None:
        """Make every label set of these models exist, at 0."""
        for model in models:
            series = self._series_of(model)
            for outcome in OUTCOMES:
                series.requests(outcome)
            for objective in self._objectives:
                if objective.match.holds_model(model):
                    self._events_of(series, objective)
                    if objective.signal in OVERDUE_SIGNALS:
                        self.tally.latency(CENSORED, ((REQUEST_MODEL, model), (SIGNAL, objective.signal)))

    def _series_of(self, label: str) -> ModelSeries:
        series = self._series.get(label)
        if series is None:
            series = self._series[label] = ModelSeries(self.tally, label)
        return series

    def _events_of(self, series: ModelSeries, objective: Objective) -> Events:
        """Where the events of an objective are counted: nowhere, once a reload has replaced it."""
        found = series.events(objective)
        if found is None:
            digest = self._digest(objective)
            found = series.judge_by(objective, digest if (objective.name, digest) in self._current else None)
        return found

    def _digest(self, objective: Objective) -> str:
        known = self._hashes.get(id(objective))
        return known[1] if known is not None and known[0] is objective else objective.hash

    def learn(self, model: str | None) -> None:
        """Let a model that the server has served have a label, and series, of its own."""
        if self.labels.learn(model) and model is not None:
            self.introduce((model,))

    # Requests.

    def admit(self, head: RequestHead, *, trusted: bool) -> Watch | None:
        """A watch over a request that may ask for generation, or None: then it is only proxied."""
        return self.look(self._admit, head, trusted) if head.method == b"POST" else None

    def _admit(self, head: RequestHead, trusted: bool) -> Watch | None:
        dialect = dialects.recognise(head.target)
        if dialect is None:
            return None
        named = head.find(self._class_header) if trusted else None
        request_class = None if named is None else named.decode("latin-1")
        watch = Watch(self, head, dialect, request_class if request_class in self._classes else None)
        watch.usage = self.usage.candidate(head, dialect)
        return watch

    def rules_of(self, ask: dialects.Ask, request_class: str | None) -> tuple[Rule, ...]:
        """What a request is judged by."""
        if request_class == SYNTHETIC_CLASS:
            return ()
        model = ask.model or self.labels.sole or UNKNOWN_MODEL
        return matching(self._rules, model=model, request_class=request_class, prompt_bytes=ask.prompt_bytes)

    def begin(self, watch: Watch, at_ns: int) -> None:
        """A request is held, and in flight from now on until `end`."""
        if not self._in_flight:
            self.busy_since_ns = at_ns
        self._in_flight.add(watch)
        self.timer.set(watch)

    def count(self, watch: Watch, verdicts: Iterable[Verdict]) -> None:
        """Count what was judged of a request."""
        self._count(self._series_of(watch.label), watch, verdicts)

    def _count(self, series: ModelSeries, watch: Watch, verdicts: Iterable[Verdict]) -> None:
        for objective, good, _ in verdicts:
            events = series.events(objective) or self._events_of(series, objective)
            if good:
                events.good.count += 1
            else:
                events.bad.count += 1
                watch.violated = True

    def end(self, watch: Watch, exchange: Exchange, judge: Judge) -> None:
        """Count a request that is over, whatever becomes of the counting."""
        self._in_flight.discard(watch)
        self.timer.cancel(watch)
        record = exchange.record()
        if watch.usage is not None and (result := self.usage.ended(watch.usage, record)) is not None:
            self.tally.add(USAGE_ASKED, ((REASON, result),))
        if not record.request_model and record.outcome in ("ok", "no_output"):
            self.learn(record.response_model)
        watch.model = record.request_model or record.response_model
        series = self._series_of(watch.label)
        series.requests(record.outcome, watch.request_class).count += 1
        if record.unparsed_events:
            self.tally.add(UNPARSED, ((DIALECT, record.dialect),), record.unparsed_events)
        if watch.request_class == SYNTHETIC_CLASS:
            self._ended(watch.ended_request(record))
            return
        self._count(series, watch, judge.ended(record))
        # The span goes first, and may fail alone: whether there is one decides whether a bucket may point at it.
        self._measure(series, record, self.look(self._ended, watch.ended_request(record)))
        for signal, seconds in judge.censored(record):
            self.tally.record(CENSORED, ((REQUEST_MODEL, watch.label), (SIGNAL, signal)), seconds)

    def _measure(self, series: ModelSeries, record: Record, trace: Trace | None) -> None:
        if record.ttft_s is not None:
            series.ttft.record(record.ttft_s, trace)
        if record.tpot_s is not None:
            series.tpot.record(record.tpot_s, trace)
        if record.e2e_s is not None:
            series.e2e.record(record.e2e_s, trace)
        if record.input_tokens:
            series.tokens("input").count += record.input_tokens
        if record.output_tokens:
            series.tokens("output").count += record.output_tokens

    # Time and state.

    def second(self, now_ns: int, *, kv_occupancy: float | None, waiting: float | None, heartbeats: int) -> None:
        """What each second brings: life itself, and the seconds of objectives over the engine's state."""
        self.tally.add(HEARTBEAT, (), heartbeats)
        self.occupied(kv_occupancy)
        self.count_state(now_ns, kv_occupancy=kv_occupancy, waiting=waiting, in_flight=self.in_flight)

    def occupied(self, kv_occupancy: float | None) -> None:
        """Take down how full the engine's memory is, for each request in flight; None while that is unknown."""
        self.kv_occupancy = kv_occupancy
        if kv_occupancy is not None:
            for watch in self._in_flight:
                watch.kv_max = max(watch.kv_max or 0.0, kv_occupancy)

    def count_state(self, now_ns: int, *, kv_occupancy: float | None, waiting: float | None, in_flight: int) -> None:
        """Judge the seconds since the last time by the engine's state."""
        label = self.labels.sole or UNKNOWN_MODEL
        self._state.serve(self.labels.served)
        seen = self._state.observe(now_ns / 1e9, kv_occupancy=kv_occupancy, waiting=waiting, in_flight=in_flight)
        for seconds in seen:
            events = self._events_of(self._series_of(label), seconds.objective)
            events.good.count += seconds.good
            events.bad.count += seconds.bad

    def catch_up(self) -> None:
        """Have every request in flight look at what its shell has put aside for later."""
        for watch in list(self._in_flight):
            watch.catch_up()

    @property
    def in_flight(self) -> int:
        """How many requests are in flight."""
        return len(self._in_flight)

    def at_stake(self) -> tuple[Number, ...]:
        """What the requests in flight would count as, were they all to break off now."""
        broken = Tally(lambda _: ())
        for watch in self._in_flight:
            named: Attributes = ((REQUEST_MODEL, watch.label),)
            klass: Attributes = () if watch.request_class is None else ((CLASS, watch.request_class),)
            broken.add(REQUESTS, (*named, (OUTCOME, "error"), *klass))
            for objective in watch.at_stake():
                judged: Attributes = ((OBJECTIVE, objective.name), (OBJECTIVE_HASH, self._digest(objective)))
                broken.add(SLO_EVENTS, (*named, *judged, (RESULT, BAD)))
        return tuple(broken.totals())

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
