"""What is said of objectives at one moment, as rows: burn of each window, budget of the period."""

from dataclasses import dataclass


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
