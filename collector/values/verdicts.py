"""What is said at one moment, as rows: burn of each window, budget of the period, drift of a latency."""

from dataclasses import dataclass
from typing import Literal

DriftKind = Literal["server", "mix", "unknown"]


@dataclass(frozen=True, slots=True)
class BurnRow:
    """Burn of one objective over one window; the columns of table `burn_rate`. `basis` is `counts` (exact) or
    `histogram`; `unsure` events of the latter lie in a bucket that the threshold cuts."""

    at_s: int
    environment: str
    service: str
    model: str
    objective: str
    window_s: int
    good: int
    bad: int
    burn: float | None
    coverage: float
    basis: str
    unsure: int


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """Budget of one objective over its period; the columns of table `budget`."""

    at_s: int
    environment: str
    service: str
    model: str
    objective: str
    good: int
    bad: int
    allowance: float
    remaining: float
    exhausted_in_s: float | None
    coverage: float
    basis: str


@dataclass(frozen=True, slots=True)
class DriftRow:
    """A latency that shifted against its own past; the columns of table `drift`. `effect` is relative (0.25: a quarter
    longer), `until_s` None while it lasts, `kind` whose doing it is as far as is known."""

    since_s: int
    environment: str
    service: str
    model: str
    signal: str
    source: str
    effect: float
    before_s: float
    after_s: float
    count: int
    kind: DriftKind
    until_s: int | None = None

    @property
    def latency(self) -> tuple[str, str, str, str, str]:
        """Whose: environment, service, model, signal and source."""
        return self.environment, self.service, self.model, self.signal, self.source
