"""What the SLO overview asks of whatever keeps the figures: one question a panel, answered in a datasource's language.

Each method gives queries that keep to the dashboard's variables. A query of shape `latest` gives one value a series,
`table` rows with a label a column. Units are those of the signals: seconds, shares, events per second.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Literal, Protocol

from dashboards.model import Datasource, Marks, Query, Variable
from dashboards.promise import Limit
from slo.signals import Metric

State = Literal["no data", "kept", "burning", "spent"]
STATES: tuple[State, ...] = ("no data", "kept", "burning", "spent")
"""States of an objective; their places are the values that `state` gives."""
NOT_SPENT = -1
"""What `exhausted_in` gives of an objective whose budget nothing is spending."""


class Source(Protocol):
    """Where figures come from."""

    @property
    def datasource(self) -> Datasource: ...

    def variables(self) -> tuple[Variable, ...]: ...

    def marks(self) -> tuple[Marks, ...]: ...

    def budget_left(self) -> Query:
        """Share of each objective's budget that is left now."""

    def exhausted_in(self) -> Query:
        """Seconds to the end of each objective's budget, or `NOT_SPENT`."""

    def state(self) -> Query:
        """Each objective's state, as its place in `STATES`."""

    def standing(self, windows_s: Sequence[int]) -> tuple[Query, ...]:
        """A row an objective and model: columns environment, service_name, objective, model_name, and the figures
        state, left, ends, coverage, target and burn<window> of each window."""

    def alerts(self) -> Query:
        """A row an alert that fires: its labels, and as `since` when it began, in milliseconds of the epoch."""

    def burn(self, long_s: int, short_s: int) -> tuple[Query, ...]: ...

    def limits(self, limits: Sequence[Limit]) -> Query:
        """A line at each distinct value that one of the objectives chosen sets."""

    def budget_over_time(self) -> Query: ...

    def coverage(self) -> Query:
        """Share of each objective's period from which telemetry is known."""

    def events(self, result: str) -> Query:
        """Good or bad events per second of each objective."""

    def outcomes(self) -> Query:
        """Requests per second by outcome, without synthetic ones."""

    def in_flight(self) -> tuple[Query, ...]: ...

    def overdue(self) -> Query: ...

    def silence(self) -> Query:
        """Seconds since the last token of the instance that has been silent longest with work at hand."""

    def latency(self, metric: Metric, quantiles: Sequence[Decimal]) -> tuple[Query, ...]: ...

    def kv_occupancy(self) -> Query: ...

    def engine(self) -> tuple[Query, ...]:
        """Requests that engines run, and those that they hold in their queues."""
