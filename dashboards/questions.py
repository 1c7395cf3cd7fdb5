"""What dashboards ask of whatever keeps the figures, answered in a datasource's language: one protocol a subject.

Every answer keeps to the variables of the dashboard that asks. A query of shape `latest` gives one value a series,
`table` rows with a label a column. Units are those of the signals: seconds, shares, events per second. What a
datasource does not hold has no queries, and then no panel.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, Protocol

from dashboards.model import Datasource, Fold, Marks, Query, Variable
from dashboards.promise import Limit
from slo.promql import SERVICE_KEY
from slo.signals import Metric

State = Literal["no data", "kept", "burning", "spent"]
STATES: tuple[State, ...] = ("no data", "kept", "burning", "spent")
"""States of an objective; their places are the values that `state` gives."""
NOT_SPENT = -1
"""What `exhausted_in` gives of an objective whose budget nothing is spending."""
Events = Literal["alerts", "drift", "starts", "contracts"]


class Frame(Protocol):
    """What stands around the panels of every dashboard, and the limits on its charts."""

    def variables(self) -> tuple[Variable, ...]: ...

    def marks(self, *events: Events) -> tuple[Marks, ...]:
        """What is to be marked on the charts; what the datasource cannot tell is left out."""

    def limits(self, limits: Sequence[Limit]) -> Query:
        """A line at each distinct value that one of the objectives or services chosen sets."""


class Figures(Protocol):
    """Any gauge or counter, by any of its labels (Prometheus names; a datasource leaves out those it does not keep).

    `name` is what a line is called after its labels.
    """

    def keeps(self, metric: Metric, /) -> bool:
        """Whether the datasource has the metric at all."""

    def gauge(
        self, metric: Metric, by: Sequence[str] = SERVICE_KEY, *, fold: Fold = "sum", name: str = "", ref: str = "A"
    ) -> Query: ...

    def rate(
        self,
        metric: Metric,
        by: Sequence[str] = SERVICE_KEY,
        *,
        name: str = "",
        ref: str = "A",
        alive: Metric | None = None,
    ) -> Query:
        """Increase per second; of requests without synthetic ones. A counter that is born with its first event is 0
        while its teller is `alive`, where the datasource can tell that."""


class Objectives(Protocol):
    """How the objectives stand."""

    def budget_left(self) -> Query:
        """Share of each objective's budget that is left now."""

    def exhausted_in(self) -> Query:
        """Seconds to the end of each objective's budget, or `NOT_SPENT`."""

    def state(self) -> Query:
        """Each objective's state, as its place in `STATES`."""

    def standing(self, windows_s: Sequence[int]) -> tuple[Query, ...]:
        """A row an objective and model: columns environment, service_name, objective, model_name, and the figures
        state, left, ends, coverage, target and burn<window> of each window."""

    def burn(self, long_s: int, short_s: int) -> tuple[Query, ...]: ...

    def budget_over_time(self) -> Query: ...

    def coverage(self) -> Query:
        """Share of each objective's period from which telemetry is known."""

    def events(self, result: str) -> Query:
        """Good or bad events per second of each objective."""

    def judged(self) -> Query:
        """Share of a service's requests that each objective judges."""

    def unjudged(self) -> Query:
        """Share of a service's requests that no objective judges, at most."""


class Latencies(Protocol):
    """How long requests took."""

    def percentiles(self, metric: Metric, quantiles: Sequence[Decimal]) -> tuple[Query, ...]:
        """As the sidecars measured, by model."""

    def buckets(self, metric: Metric) -> Query:
        """How many requests fell between which edges of latency."""

    def percentile_by_instance(self, metric: Metric, quantile: Decimal, /) -> tuple[Query, ...]: ...

    def mean_by_instance(self, metric: Metric) -> Query: ...

    def beside_engine(self, metric: Metric, quantile: Decimal) -> tuple[Query, ...]:
        """The sidecar's figure, and the engine's own from its coarser buckets."""

    def by_prompt(self, quantile: Decimal, /) -> Query:
        """Time to first token by class of prompt length: the quantile where it is known, else the mean."""

    def censored(self) -> Query:
        """Requests per second that ended past a deadline without a value, by signal."""

    def against_past(self, metric: Metric, quantile: Decimal) -> tuple[Query, ...]:
        """Now, and at this time yesterday and a week ago."""


class Load(Protocol):
    """How much is asked of a service, and how much it is known to bear."""

    def offered(self) -> Query:
        """Requests per second of each service."""

    def peak(self) -> Query:
        """The most of them, over the time range shown."""

    def headroom(self, certified: Sequence[Limit]) -> Query:
        """Share of each service's certified capacity that is free."""

    def concurrency(self) -> tuple[Query, ...]:
        """Requests in flight as counted, and as Little's law has them."""

    def refused(self) -> Query:
        """Share of requests that were turned away or timed out."""

    def speed(self) -> Query:
        """Output tokens per second of one running request, on average."""


class Incidents(Protocol):
    """What went wrong, and what changed."""

    def alerts(self) -> Query:
        """A row an alert that fires: its labels, and as `since` when it began, in milliseconds of the epoch."""

    def firing(self) -> Query:
        """How many alerts fire, by whether they page."""

    def past(self) -> Query:
        """A row an alert that fired in the time range: its labels, and as `since` when it last began."""

    def drift(self) -> Query:
        """By how much latencies have shifted: 0.25 is a quarter longer."""

    def starts(self) -> Query:
        """A row an instance: its labels, and as `since` when it started."""

    def contracts(self) -> Query:
        """A row a version of an objective that is counted: its labels, and events per second of each `result`."""


class Health(Protocol):
    """Whether the figures themselves can be relied on, as only one kind of datasource can tell."""

    def heard(self) -> Query:
        """Share of each service's time in which its telemetry was heard."""

    def instances(self) -> tuple[Query, ...]:
        """A row an instance: its labels, as `silent` the seconds since it was heard, as `since` when it started."""

    def evaluation_age(self) -> Query:
        """Seconds since objectives were last evaluated."""

    def scrapes(self) -> tuple[Query, ...]:
        """Whether each target answers."""

    def rule_failures(self) -> tuple[Query, ...]:
        """Evaluations of rules that failed or were missed, per second."""

    def commit_time(self) -> tuple[Query, ...]:
        """Mean length of a write transaction."""

    def errors_of_quantiles(self) -> tuple[Query, ...]:
        """Greatest relative error of the percentiles, by signal and source."""

    def intake(self) -> tuple[Query, ...]:
        """Bodies per second that were taken in, as the tables know it."""


class Dcgm(Protocol):
    """What NVIDIA's dcgm-exporter says of the same GPUs."""

    def figure(self, field: str, *, worth: Decimal = Decimal(1)) -> Query:
        """One of its fields by GPU; `worth` is what one of it is in the unit shown."""

    def memory_share(self) -> Query:
        """Share of the memory that is in use."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where figures come from. `dcgm` is there where its series can be."""

    datasource: Datasource
    frame: Frame
    figures: Figures
    objectives: Objectives
    latencies: Latencies
    load: Load
    incidents: Incidents
    health: Health
    dcgm: Dcgm | None = None
