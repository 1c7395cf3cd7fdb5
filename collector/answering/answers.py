"""The answers of `/api/v1/...` as their readers meet them: the shapes behind the OpenAPI document (DESIGN 4.5).

A figure that is unknown is null, never 0 and never NaN. Times are whole epoch seconds in UTC, durations seconds;
`window` is the length of a window as people write it.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Next = Annotated[str | None, Field(description="pass as `next` for the rows after these; null after the last")]
Coverage = Annotated[float, Field(description="share of the window from which telemetry is known, 0 to 1")]
Basis = Annotated[str, Field(description="counts: judged at the source; histogram: read off it at the threshold")]
Quantile = Annotated[float | None, Field(description="seconds; null when it is not known, see at_least")]
State = Literal["pending", "firing", "resolved"]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Problem(_Answer):
    """What went wrong, in one line that says what would be right."""

    error: str = Field(
        examples=["window: 5x is not a duration: write a number and a unit, as 500ms, 1.5s, 5m, 1h or 28d"]
    )


class Percentile(_Answer):
    """Percentiles of one latency over one window that ends at `at_s`; in seconds."""

    at_s: int
    environment: str
    service: str
    model: str
    signal: str
    source: str
    window: str
    window_s: int
    count: int = Field(description="requests with a value")
    censored: int = Field(description="requests past a deadline and without a value")
    p50: Quantile
    p90: Quantile
    p95: Quantile
    p99: Quantile
    p999: Quantile
    max: Quantile
    at_least: float | None = Field(description="what every quantile that is null is known to exceed")
    rel_error: float | None = Field(description="greatest relative error of the quantiles; 0.011 is 1.1 %")
    coverage: Coverage


class Burn(_Answer):
    """Burn of one objective over one window that ends at `at_s`."""

    at_s: int
    environment: str
    service: str
    model: str
    objective: str
    window: str
    window_s: int
    good: int
    bad: int
    burn: float | None = Field(description="bad share over the allowed bad share; null without events")
    coverage: Coverage
    basis: Basis
    unsure: int = Field(description="events of a histogram whose bucket the threshold cuts; else 0")


class Budget(_Answer):
    """Error budget of one objective over its own period, which ends at `at_s`."""

    at_s: int
    environment: str
    service: str
    model: str
    objective: str
    good: int
    bad: int
    allowance: float = Field(description="bad events the period may have")
    remaining: float = Field(description="1 - bad / allowance; below 0 is overspent")
    exhausted_in_s: float | None = Field(description="at the last hour's rate; null at rate 0, 0 once spent")
    coverage: Coverage
    basis: Basis


class _Told(_Answer):
    name: str = Field(examples=["LLMTTFTBudgetBurn"])
    environment: str
    service: str
    model: str
    objective: str
    tier: str
    state: State
    fired_s: int | None = Field(description="when the firing began; null when it never fired")
    severity: str
    notify: str
    labels: dict[str, str]
    annotations: dict[str, str]


class Cause(_Answer):
    """Why a burn alert is what it is, as far as the evidence tells; the same in one line is the annotation `cause`."""

    kind: str = Field(description="unknown, or what burns the budget", examples=["decode_slower"])
    confidence: float = Field(description="how sure that is, 0 to 1; of unknown, how sure the nearest was")
    instance: str = Field(description="the one instance that it is alone with; empty when it is of all together")
    evidence: list[str] = Field(description="what speaks for it, a sentence each")
    at_s: int = Field(description="moment that the evidence reaches to")
    before_s: int = Field(description="end of the stretch of time that it was compared with, in which nothing burned")


class Alert(_Told):
    """An alert as it stands."""

    since_s: int = Field(description="when it entered this state")
    cause: Cause | None = Field(description="null where none was sought")


class Transition(_Told):
    """An alert that entered a state."""

    at_s: int = Field(description="when it entered this state")


class Percentiles(_Answer):
    """Rows of table `percentile`, in order of time."""

    rows: list[Percentile]
    next: Next


class Burns(_Answer):
    """Rows of table `burn_rate`, in order of time."""

    rows: list[Burn]
    next: Next


class Budgets(_Answer):
    """Rows of table `budget`, in order of time."""

    rows: list[Budget]
    next: Next


class Alerts(_Answer):
    """The alerts that are pending or firing, and what happened in the time asked for, the latest first."""

    alerts: list[Alert]
    history: list[Transition]
    next: Next


class StatusWindow(_Answer):
    """Burn over one window."""

    window: str
    window_s: int
    good: int
    bad: int
    burn: float | None
    coverage: float


class StatusBudget(_Answer):
    """Error budget over the objective's period."""

    good: int
    bad: int
    allowance: float
    remaining: float
    exhausted_in_s: float | None
    coverage: float


class StatusPercentiles(_Answer):
    """Percentiles of the objective's signal over one window."""

    source: str
    count: int
    censored: int
    p50: Quantile
    p90: Quantile
    p95: Quantile
    p99: Quantile
    p999: Quantile
    max: Quantile
    at_least: float | None
    rel_error: float | None
    coverage: float


class StatusAlert(_Answer):
    """An alert of an objective, pending or firing."""

    name: str
    tier: str
    state: str
    since_s: int
    fired_s: int | None
    severity: str
    notify: str
    annotations: dict[str, str]


class StatusObjective(_Answer):
    """One objective for one model, or over all of them (`*`)."""

    environment: str
    service: str
    model: str
    objective: str
    signal: str
    target: float
    threshold: float | None
    unit: str
    period: str
    period_s: int
    owner: str
    basis: str | None
    state: Literal["ok", "burning", "exhausted", "no_data"]
    tiers: list["StatusTier"]
    windows: list[StatusWindow]
    budget: StatusBudget
    percentiles: dict[str, StatusPercentiles]
    alerts: list[StatusAlert]


class StatusTier(_Answer):
    """A burn alert of the objective: it fires when both windows burn above `factor`."""

    name: str
    long: str
    short: str
    factor: float
    notify: str


class StatusTold(StatusAlert):
    """An alert with whom it speaks of."""

    environment: str
    service: str
    model: str
    objective: str


class StatusDrift(_Answer):
    """A latency that has shifted against its own past at this time of day, and has not come back."""

    since_s: int = Field(description="when the shift began")
    environment: str
    service: str
    model: str
    signal: str
    source: str
    effect: float = Field(description="relative change of the p95; 0.25 is a quarter longer")
    before_s: float = Field(description="what was usual when it began")
    after_s: float = Field(description="what became of that")
    count: int = Field(description="requests that it was seen in")
    kind: Literal["server", "mix", "unknown"] = Field(description="whose doing; mix: of prompt lengths")
    until_s: None


class StatusUnjudged(_Answer):
    """A service that is heard from, and that no objective speaks of."""

    environment: str
    service: str
    models: list[str] = Field(description="some of its models")
    models_count: int
    signals: list[str] = Field(description="latencies that are known of it")


class Status(_Answer):
    """Every objective as the last evaluation found it."""

    at_s: int | None = Field(description="moment of the evaluation; null before the first")
    evaluator: bool = Field(description="whether this collector writes figures and notifies; of several one does")
    objectives: list[StatusObjective]
    alerts: list[StatusTold]
    drifts: list[StatusDrift]
    unjudged: list[StatusUnjudged]
    total: int = Field(description="objectives that match, of which these are a part")
    next: int | None = Field(description="pass as `offset` for the objectives after these; null after the last")


class Bounded(_Answer):
    """A figure and its bounds: all three are the same where every event was judged by this very threshold."""

    likely: float
    least: float
    most: float


class TierCost(_Answer):
    """What a burn alert would have done."""

    name: str
    notify: str
    factor: float
    can_fire: bool = Field(description="false where even nothing but bad events would not make it fire")
    times: Bounded = Field(description="how often it would have begun to fire")
    firing_s: Bounded


class Cost(_Answer):
    """What a promise would have cost over the stretch."""

    target: float
    threshold: float | None
    basis: str = Field(description="counts: judged at the source; histogram: read off it at the threshold")
    total: int
    missing: int = Field(
        description="events counted that no histogram holds, as of requests that still wait; bad at most"
    )
    bad: Bounded
    bad_share: Bounded | None = Field(description="null without events")
    remaining: Bounded = Field(description="budget left at the end; below 0 is overspent")
    lowest: Bounded = Field(description="the least budget that was left at any moment")
    lowest_at_s: int
    tiers: list[TierCost]


class WhatIf(_Answer):
    """The stored past by the promise as it is, and as it was asked about."""

    from_s: int
    to_s: int
    promised: Cost | None
    asked: Cost | None = Field(description="null where nothing stored can tell")
    why: str = Field(description="why nothing can; empty when asked is known")
