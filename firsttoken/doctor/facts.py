"""All that the doctor knows when it judges: values of what was asked, once, of each place. No socket, no clock.

A place that gave no usable answer has its reason in `error`, and everything else of it is empty; a value that nobody
told is None or absent, never 0. `offset_s` is how far a server's clock is ahead of ours.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

from firsttoken.json_fields import Object
from firsttoken.status_reply import Status
from sidecar.engine.metrics_text import Page
from sidecar.polling.backing import Sight
from slo.objective import Spec

Kind = Literal["server", "sidecar", "collector", "prometheus", "alertmanager"]
Labels = Mapping[str, str]
NO_PAGE = Page({}, 0)


class _Asked(Protocol):
    """Any kind of place."""

    @property
    def error(self) -> str: ...


Place = TypeVar("Place", bound=_Asked)


def answering(places: Iterable[Place]) -> Iterator[Place]:
    """Those that gave a usable answer."""
    return (one for one in places if not one.error)


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a latency histogram reaches: its last finite edge, the number of values, and those beyond that edge."""

    signal: str
    model: str
    edge_s: float
    count: int
    beyond: int


@dataclass(frozen=True, slots=True)
class StreamSeen:
    """How a streamed answer came; its times are seconds since the request was sent.

    `bursts` are the moments at which something arrived, each with the number of events that came together then. Where
    the stream was compressed (`encoding` is not ''), the numbers mean nothing. Nothing of its content is kept.
    """

    error: str = ""
    head_s: float = 0.0
    encoding: str = ""
    bursts: Sequence[tuple[float, int]] = ()

    @property
    def events(self) -> int:
        return sum(count for _, count in self.bursts)


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """An inference server, or what stands before it. `names` are the metrics on its page; `via` what its headers say
    of who passed the answer on."""

    url: str
    error: str = ""
    engine: str = ""
    version: str = ""
    metrics_url: str = ""
    sight: Sight | None = None
    reaches: Sequence[Reach] = ()
    names: frozenset[str] = frozenset()
    via: str = ""
    offset_s: float | None = None
    stream: StreamSeen | None = None


@dataclass(frozen=True, slots=True)
class SidecarFacts:
    """A sidecar's admin address: its page, now and (where a counter showed trouble) a while later."""

    url: str
    error: str = ""
    page: Page = NO_PAGE
    later: Page | None = None
    unready: str = ""


@dataclass(frozen=True, slots=True)
class CollectorFacts:
    """A collector: its page, as of a sidecar, and the status of its objectives. `unjudged` are services that it hears
    and that no objective speaks of."""

    url: str
    error: str = ""
    page: Page = NO_PAGE
    later: Page | None = None
    unready: str = ""
    status: Status | None = None
    unjudged: Sequence[str] = ()
    version: str = ""
    offset_s: float | None = None


@dataclass(frozen=True, slots=True)
class ScrapeTarget:
    """One target of a Prometheus. `interval_s` None: it does not say."""

    job: str
    instance: str
    url: str
    health: str
    error: str
    interval_s: float | None


@dataclass(frozen=True, slots=True)
class LoadedRule:
    """One rule as a Prometheus runs it; since when its alert has been active, None where it is not."""

    group: str
    name: str
    is_alert: bool
    query: str
    labels: Labels
    health: str
    error: str
    since_s: float | None = None


@dataclass(frozen=True, slots=True)
class LoadedGroup:
    """A rule group as a Prometheus runs it; how long its last evaluation took."""

    name: str
    interval_s: float
    took_s: float
    rules: Sequence[LoadedRule]


@dataclass(frozen=True, slots=True)
class PrometheusFacts:
    """A Prometheus. `events`, `in_flight` are the labels of the sidecars' series; `sidecars` and `collectors` those
    (job, instance) heard within the last day; `names` the metrics of the last ten minutes.

    `retention_s` None: not told, or limited by size alone. `loaded_s`: when it last loaded its configuration.
    `is_itself`: it is a Prometheus, and nothing else that speaks its API, of which rules and Alertmanagers are
    elsewhere."""

    url: str
    error: str = ""
    version: str = ""
    is_itself: bool = True
    retention_s: float | None = None
    is_reloaded: bool = True
    loaded_s: float | None = None
    targets: Sequence[ScrapeTarget] = ()
    groups: Sequence[LoadedGroup] = ()
    alertmanagers: Sequence[str] = ()
    dropped_alertmanagers: Sequence[str] = ()
    names: frozenset[str] = frozenset()
    events: Sequence[Labels] = ()
    in_flight: Sequence[Labels] = ()
    sidecars: frozenset[tuple[str, str]] = frozenset()
    collectors: frozenset[tuple[str, str]] = frozenset()
    offset_s: float | None = None

    @property
    def own_groups(self) -> Sequence[LoadedGroup]:
        """The groups that `firsttoken alerts build` made."""
        return [group for group in self.groups if group.name.startswith("firsttoken:")]


@dataclass(frozen=True, slots=True)
class AlertmanagerFacts:
    """An Alertmanager: its configuration, None where it cannot be read, the names of the alerts it holds, and since
    when it runs."""

    url: str
    error: str = ""
    config: Object | None = None
    alerts: frozenset[str] = frozenset()
    since_s: float | None = None
    offset_s: float | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything at once. `ours` is the version of this command; `now_s` the moment of the look."""

    now_s: float
    ours: str = ""
    specs: Sequence[Spec] = ()
    servers: Sequence[ServerFacts] = ()
    sidecars: Sequence[SidecarFacts] = ()
    collectors: Sequence[CollectorFacts] = ()
    prometheuses: Sequence[PrometheusFacts] = ()
    alertmanagers: Sequence[AlertmanagerFacts] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    """Places that a Prometheus names and that do not answer here, with the reason: no fault, only not looked at."""

    @property
    def places(self) -> Iterator[tuple[Kind, str, str]]:
        """Everybody: kind, URL, and why there is no answer."""
        yield from (("server", one.url, one.error) for one in self.servers)
        yield from (("sidecar", one.url, one.error) for one in self.sidecars)
        yield from (("collector", one.url, one.error) for one in self.collectors)
        yield from (("prometheus", one.url, one.error) for one in self.prometheuses)
        yield from (("alertmanager", one.url, one.error) for one in self.alertmanagers)

    @property
    def pages(self) -> Iterator[tuple[Kind, str, Page]]:
        """The pages of our own: kind, URL, page."""
        yield from (("sidecar", one.url, one.page) for one in answering(self.sidecars))
        yield from (("collector", one.url, one.page) for one in answering(self.collectors))
