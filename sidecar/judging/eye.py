"""The eye: sees every admitted request beside its bytes, judges it in time, and counts.

The proxy tells a `Watch` what happened to its request: what can wait through the `backlog`, which everybody who asks
here for a count or a state has looked at first, the rest through `Eye.look`. In both a fault of telemetry ends
(`faults`), and the proxy goes on as if nothing had been. Nothing here touches a byte, a socket or a file.
"""

import functools
from collections.abc import Callable, Iterable

from sidecar.counting.exemplar import Trace
from sidecar.counting.series import Events, ModelSeries
from sidecar.counting.tally import Attributes, Number, Tally
from sidecar.guarding.queue_guard import Fate, Promise, Queued, QueueGuard, loosest
from sidecar.http.http_head import RequestHead
from sidecar.judging.arming import Arming
from sidecar.judging.backlog import Backlog
from sidecar.judging.deadline_timer import NEVER_NS, DeadlineTimer
from sidecar.judging.deadlines import Judge, Rule, StateSeconds, Verdict, matching, rules, soonest_ns, users_in_flight
from sidecar.judging.faults import Faults
from sidecar.judging.labels import ModelLabels
from sidecar.judging.watch import Watch
from sidecar.said import dialects
from sidecar.said.record import EndedRequest, Record
from sidecar.usage.usage_policy import UsagePolicy
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
    OLDEST_AGE,
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
    TTFT_PREDICTED,
    UNKNOWN_MODEL,
    UNPARSED,
    USAGE_ASKED,
    WAITING_FIRST_TOKEN,
)

MAX_KINDS = 256  # of requests whose objectives are remembered
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
        self.guard: QueueGuard | None = QueueGuard("shadow")
        self.last_token_ns = self.busy_since_ns = 0
        self._ended, self._class_header = ended, class_header
        self._classes: frozenset[str] = frozenset((SYNTHETIC_CLASS,))
        self._objectives: tuple[Objective, ...] = ()
        self._hashes: dict[int, tuple[Objective, str]] = {}
        self._current: frozenset[tuple[str, str]] = frozenset()
        self._series: dict[str, ModelSeries] = {}
        self._rules: tuple[Rule, ...] = ()
        self._matching: Callable[..., tuple[Rule, ...]] = functools.partial(matching, ())
        self._sizes_matter = self._is_guarding = False
        self._latest_rules: tuple[Rule, ...] = ()
        self._latest_promise: Promise | None = None
        self._state = StateSeconds(())
        self._in_flight: set[Watch] = set()
        self._shown: set[str] = set()
        tally.create(HEARTBEAT, ())
        faults = Faults(tally)
        self.look, self.fault = faults.look, faults.count
        self._arming = Arming(timer, in_flight=self._in_flight, look=faults.look)
        self.backlog = Backlog(timer.call_later, fault=faults.count, settled=self._arming.settled)

    # Objectives.

    def load(self, spec: Spec | None) -> None:
        """Judge new requests by `spec`; those in flight keep theirs, and hashes that are gone are exported no more."""
        self.catch_up()
        self._objectives = spec.objectives if spec is not None else ()
        self._rules = rules(self._objectives)
        self._matching = functools.lru_cache(MAX_KINDS)(functools.partial(matching, self._rules))
        self._sizes_matter = any(rule.objective.match.prompt_bytes is not None for rule in self._rules)
        self._is_guarding = any(rule.promise is not None for rule in self._rules)
        self._arming.expect(soonest_ns(self._rules))
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
                    if objective.signal == TTFT.sql and self.guard is not None:
                        series.introduce_verdicts(self.guard.verdicts)

    def _series_of(self, label: str) -> ModelSeries:
        series = self._series.get(label)
        if series is None:
            series = self._series[label] = ModelSeries(self.tally, label)
        return series

    def _events_of(self, series: ModelSeries, objective: Objective) -> Events:
        """Where the events of an objective are counted: nowhere, once a reload has replaced it."""
        found = series.by_objective.get(id(objective))
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
        named = head.find(self._class_header) if trusted and self._class_header in head.shape.places else None
        request_class = None if named is None else named.decode("latin-1")
        return Watch(self, head, dialect, request_class if request_class in self._classes else None)

    def rules_of(self, ask: dialects.Ask, request_class: str | None) -> tuple[Rule, ...]:
        """What a request is judged by."""
        if request_class == SYNTHETIC_CLASS:
            return ()
        model = ask.model or self.labels.sole or UNKNOWN_MODEL
        return self._matching(model, request_class, ask.prompt_bytes if self._sizes_matter else 0)

    def begin(self, watch: Watch, at_ns: int) -> None:
        """A request is held, and in flight from now on until `end`."""
        if not self._in_flight:
            self.busy_since_ns = at_ns
        self._in_flight.add(watch)
        self._arming.add(watch, more_follow=self.backlog.is_settling)

    def queue(self, ask: dialects.Ask, judged_by: tuple[Rule, ...], at_ns: int, *, may_refuse: bool) -> Queued | None:
        """Let a request wait for its first token in the guard's eyes too, unless that refuses it; it `may_refuse` one
        that has not gone on. None where nothing is promised of any first token."""
        if self.guard is None or not self._is_guarding:
            return None
        promise = self._promise_of(judged_by) if ask.stream else None
        newcomer = Queued(ask.prompt_bytes, at_ns, promise, streams=ask.stream)
        return self.guard.join(newcomer, may_refuse=may_refuse)

    def _promise_of(self, judged_by: tuple[Rule, ...]) -> Promise | None:
        """What a request that is judged by these is promised of its first token."""
        if judged_by is not self._latest_rules:  # nearly all requests are of one kind
            self._latest_rules = judged_by
            self._latest_promise = loosest(rule.promise for rule in judged_by)
        return self._latest_promise

    def first_token(self, watch: Watch, verdicts: Iterable[Verdict], queued: Queued | None, at_ns: int) -> None:
        """Count what a first token decided of a request, which waited in the queue if it is `queued`."""
        series = self._series.get(label := self.labels.of(watch.model)) or self._series_of(label)
        self._count(series, watch, verdicts)
        if queued is None or self.guard is None:
            return
        if (fate := self.guard.first_token(queued, at_ns)) is not None:
            self._came_of(series, fate)

    def unqueue(self, watch: Watch, queued: Queued, at_ns: int) -> None:
        """A request that is over without a token waits no longer."""
        if self.guard is not None and (fate := self.guard.leave(queued, at_ns)) is not None:
            self._came_of(self._series_of(watch.label), fate)

    def _came_of(self, series: ModelSeries, fate: Fate) -> None:
        """Count what came of what the guard had said."""
        series.guarded(fate.verdict, good=fate.good).count += 1
        if fate.error_s is not None:
            series.prediction_error.record(fate.error_s)

    def count(self, watch: Watch, verdicts: Iterable[Verdict]) -> None:
        """Count what was judged of a request."""
        self._count(self._series_of(watch.label), watch, verdicts)

    def _count(self, series: ModelSeries, watch: Watch, verdicts: Iterable[Verdict]) -> None:
        for objective, good, _ in verdicts:
            events = series.by_objective.get(id(objective)) or self._events_of(series, objective)
            if good:
                events.good.count += 1
            else:
                events.bad.count += 1
                watch.violated = True

    def end(self, watch: Watch, record: Record | None, judge: Judge | None) -> None:
        """A request is over, and counted if there is a record of it."""
        self._in_flight.discard(watch)
        if watch.armed_ns != NEVER_NS:
            self.timer.cancel(watch)
        if record is None or judge is None:
            return
        asking = watch.usage
        if asking is not None and asking.streams and (result := self.usage.ended(asking, record)) is not None:
            self.tally.add(USAGE_ASKED, ((REASON, result),))
        if not record.request_model and record.outcome in ("ok", "no_output"):
            self.learn(record.response_model)
        watch.model = record.request_model or record.response_model
        label = self.labels.of(watch.model)
        series = self._series.get(label) or self._series_of(label)
        series.requests(record.outcome, watch.request_class).count += 1
        if record.unparsed_events:
            self.tally.add(UNPARSED, ((DIALECT, record.dialect),), record.unparsed_events)
        if watch.request_class == SYNTHETIC_CLASS:
            self._ended(watch.ended_request(record))
            return
        self._count(series, watch, judge.ended(record))
        if record.outcome != "ok":
            self._went_wrong(series, record)
        # The span goes first, and may fail alone: whether there is one decides whether a bucket may point at it.
        try:
            trace = self._ended(watch.ended_request(record))
        except Exception as error:  # noqa: BLE001  where a span is made, as anywhere in telemetry
            self.fault(error)
            trace = None
        self._measure(series, record, trace)
        if record.e2e_s is None or record.ttft_s is None:
            for signal, seconds in judge.censored(record):
                self.tally.record(CENSORED, ((REQUEST_MODEL, label), (SIGNAL, signal)), seconds)

    def _went_wrong(self, series: ModelSeries, record: Record) -> None:
        """Count what an outcome alone does not say: where on the way it came."""
        if record.outcome == "cancelled" and record.token_events == 0:
            series.abandoned.count += 1
        elif record.outcome == "error" and record.streamed:
            series.broken.count += 1

    def _measure(self, series: ModelSeries, record: Record, trace: Trace | None) -> None:
        if record.ttft_s is not None:
            series.ttft.record(record.ttft_s, trace)
            if record.input_tokens is not None:
                series.ttft_by_prompt(record.input_tokens).record(record.ttft_s)
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
        in_flight = users_in_flight(self.in_flight, self.synthetic_in_flight)
        self.count_state(now_ns, kv_occupancy=kv_occupancy, waiting=waiting, in_flight=in_flight)

    def occupied(self, kv_occupancy: float | None) -> None:
        """Take down how full the engine's memory is, for each request in flight; None while that is unknown."""
        self.backlog.settle()  # what arrived before arrived under the occupancy before
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
        """Look at all that shells have noted or put aside for later: what is counted is then true up to now."""
        self.backlog.settle()
        for watch in list(self._in_flight):
            watch.catch_up()
        self.backlog.settle()

    @property
    def in_flight(self) -> int:
        """How many requests are in flight."""
        self.backlog.settle()
        return len(self._in_flight)

    @property
    def synthetic_in_flight(self) -> int:
        """How many of them measure the server, rather than use it."""
        return sum(watch.request_class == SYNTHETIC_CLASS for watch in self._in_flight)

    def at_stake(self) -> tuple[Number, ...]:
        """What the requests in flight would count as, were they all to break off now."""
        self.backlog.settle()
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
        """How many requests stand where right now and how long the oldest has waited, by model, and the age of the last
        token."""
        self.backlog.settle()
        counts: dict[tuple[str, str], int] = {}
        # A label that was shown once stays, at 0: a reader must not take its last value for the present one.
        self._shown.update(self.labels.known or (OTHER_MODEL,))
        self._shown.update(watch.label for watch in self._in_flight)
        for model in sorted(self._shown):
            for column in (IN_FLIGHT.name, WAITING_FIRST_TOKEN.name, *OVERDUE_SIGNALS):
                counts[model, column] = 0
        oldest_s = dict.fromkeys(self._shown, 0.0)
        for watch in self._in_flight:
            for column in watch.columns(now_ns):
                counts[watch.label, column] += 1
            oldest_s[watch.label] = max(oldest_s[watch.label], watch.unanswered_s(now_ns) or 0.0)
        found = [Number(OLDEST_AGE, ((REQUEST_MODEL, model),), seconds) for model, seconds in oldest_s.items()]
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
        if self.guard is not None and self._is_guarding and (outlook_s := self.guard.outlook_s(now_ns)) is not None:
            found.append(Number(TTFT_PREDICTED, (), outlook_s))
        return found
