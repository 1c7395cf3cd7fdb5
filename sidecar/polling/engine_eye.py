"""The eye of scraping alone: what an engine tells of its own requests becomes counts, events and state.

It takes the place of `Eye` where no request passes through us. Every number is the increase of one of the engine's
own: latencies as its histograms have them, tokens, outcomes, and the good and bad of each objective whose threshold
is an edge of them (`backing`). What cannot be counted so has no series at all, since a series of zeros would say that
nothing was bad; the log says which objectives those are, and why.
"""

from collections.abc import Iterable

from sidecar.counting.tally import Attributes, Number, Tally
from sidecar.engine.engine_growth import Growth
from sidecar.engine.engine_histograms import within
from sidecar.engine.engine_view import EngineView
from sidecar.engine.engines import Engine
from sidecar.engine.metrics_text import Page
from sidecar.engine.scrape import ServerSample
from sidecar.judging.deadlines import StateSeconds, rules
from sidecar.judging.faults import Faults
from sidecar.judging.labels import ModelLabels
from sidecar.polling.backing import Said, Sight, backing, lines
from sidecar.usage.usage_policy import UsagePolicy
from slo.objective import STATE_SIGNALS, Objective, Spec
from slo.signals import (
    BAD,
    GOOD,
    HEARTBEAT,
    OBJECTIVE,
    OBJECTIVE_HASH,
    REQUEST_MODEL,
    RESULT,
    SIGNALS,
    SLO_EVENTS,
    UNKNOWN_MODEL,
    Metric,
)


class EngineEye:
    """Watches one engine by its pages."""

    def __init__(self, *, tally: Tally, labels: ModelLabels) -> None:
        self.tally, self.labels = tally, labels
        self.overload_429 = False
        self.usage = UsagePolicy()
        self.view = EngineView(self._label)
        self.look = Faults(tally).look
        self._objectives: tuple[Objective, ...] = ()
        self._hashes: dict[str, str] = {}
        self._counted: dict[tuple[Metric, str], tuple[Objective, ...]] = {}
        self._states: list[Objective] = []
        self._state_seconds = StateSeconds(())
        self._sight: Sight | None = None
        self._working = False
        self._said = Said()
        tally.create(HEARTBEAT, ())

    @property
    def has_seen(self) -> bool:
        """Whether a page of a known engine was read."""
        return self._sight is not None

    def load(self, spec: Spec | None) -> None:
        """Judge by `spec` from now on."""
        self._objectives = spec.objectives if spec is not None else ()
        self._hashes = {one.name: one.hash for one in self._objectives}
        self._state_seconds = StateSeconds(rules(self._objectives))
        self._decide()

    def introduce(self, models: Iterable[str]) -> None:
        """Models that the server lists; the state of an engine with one is its own."""

    def page(self, page: Page, engine: Engine, sample: ServerSample) -> None:
        """Count what a page of the engine's metrics brings, and judge it."""
        growth = self.view.page(page, engine)
        self._working = bool(sample.running or sample.waiting)
        sight = self._seen(growth, engine, sample)
        if sight != self._sight:
            self._sight = sight
            self._decide()
        self._judge(growth)
        for (metric, attributes, model), count in growth.counts.items():
            self.tally.add(metric, ((REQUEST_MODEL, self._label(model)), *attributes), count)

    def _seen(self, growth: Growth, engine: Engine, sample: ServerSample) -> Sight:
        """What has been seen of the engine so far: a line that a page lacks was there before."""
        fresh: dict[tuple[Metric, str], tuple[float, ...]] = {}
        for (metric, model), grown in growth.histograms.items():
            of = metric, self._label(model)
            fresh[of] = tuple(edge for edge in grown.bounds if edge in fresh.get(of, grown.bounds))
        before = self._sight if self._sight is not None and self._sight.engine == engine.name else Sight(engine.name)
        return Sight(
            engine.name,
            {**before.edges_s, **fresh},
            occupancy=before.occupancy or sample.kv_occupancy is not None,
            waiting=before.waiting or sample.waiting is not None,
            models=self.labels.served,
        )

    def _label(self, model: str | None) -> str:
        """An engine names a model because it has served it."""
        self.labels.learn(model)
        return self.labels.of(model)

    def _decide(self) -> None:
        """Settle what is counted of which model, forget the counts of all else, and say what cannot be counted."""
        sight = self._sight
        if sight is None:
            return
        self._counted = {
            (metric, model): tuple(
                one
                for one in self._objectives
                if SIGNALS[one.signal].metric is metric
                and one.match.holds_model(model)
                and backing(one, sight, model=model).basis == "counts"
            )
            for metric, model in sight.edges_s
        }
        exact = {
            (model, one.name, self._hashes[one.name]) for (_, model), some in self._counted.items() for one in some
        }
        self._states = [
            one for one in self._objectives if one.signal in STATE_SIGNALS and backing(one, sight).basis == "counts"
        ]
        states = {(one.name, self._hashes[one.name]) for one in self._states}

        def is_counted(attributes: Attributes) -> bool:
            model, *objective, _ = (value for _, value in attributes)
            return (model, *objective) in exact or tuple(objective) in states

        self.tally.keep(SLO_EVENTS, is_counted)
        self._said.say(lines(self._objectives, sight))

    def _judge(self, growth: Growth) -> None:
        for (metric, model), grown in growth.histograms.items():
            label = self._label(model)
            for objective in self._counted.get((metric, label), ()):
                good = within(grown, float(objective.threshold or 0))
                if good is not None:
                    self._count(label, objective, good, grown.count - good)
        for objective in self._states:
            self._count(self.labels.sole or UNKNOWN_MODEL, objective, 0, 0)  # its series begin at 0

    def _count(self, label: str, objective: Objective, good: int, bad: int) -> None:
        for result, count in ((GOOD, good), (BAD, bad)):
            key = (
                (REQUEST_MODEL, label),
                (OBJECTIVE, objective.name),
                (OBJECTIVE_HASH, self._hashes[objective.name]),
                (RESULT, result),
            )
            self.tally.add(SLO_EVENTS, key, count)

    def second(self, now_ns: int, *, kv_occupancy: float | None, waiting: float | None, heartbeats: int) -> None:
        """What each second brings: life itself, and the seconds of objectives over the engine's state. An engine has
        work while it runs a request or holds one waiting."""
        self.tally.add(HEARTBEAT, (), heartbeats)
        self._state_seconds.serve(self.labels.served)
        seen = self._state_seconds.observe(
            now_ns / 1e9, kv_occupancy=kv_occupancy, waiting=waiting, in_flight=int(self._working)
        )
        for seconds in seen:
            self._count(self.labels.sole or UNKNOWN_MODEL, seconds.objective, seconds.good, seconds.bad)

    def catch_up(self) -> None:
        """Nothing is put aside here: no request passes."""

    def gauges(self, now_ns: int) -> list[Number]:  # noqa: ARG002  what a page asks of whoever watches
        """None of our own: how many requests stand where is the engine's to say."""
        return []
