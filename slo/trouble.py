"""Alerts on a state rather than a burn: their names, who is told, and the numbers that decide them (DESIGN 4.6).

The Prometheus rules of `alerts` and the collector's own evaluation (`collector/judging`)
judge the same states in two languages; both read this room, so that neither path rings where the other is silent.
`TROUBLES` is the table: one row an alert. The numbers stand below their alert's name, for each is of a kind of its own.

A state that has no error budget is a ticket, and a page only where users surely get nothing: an engine that gives no
token, a service that nobody hears, a GPU that is gone, nine of ten requests that come to nothing.
"""

from dataclasses import dataclass
from decimal import Decimal

from slo.burn import Severity, severity
from slo.objective import Notify
from slo.signals import ABANDONED, BROKEN_STREAMS, REQUESTS, Metric

ENGINE_STALLED = "LLMEngineStalled"
STALLED_OVERDUE = 3
"""An instance that holds this many requests past their deadline, the larger of its counts per signal,"""
STALLED_AGE_S = 60
"""and has given no token to anybody for this long, is stalled."""

TELEMETRY_ABSENT = "LLMTelemetryAbsent"
"""A page when all of a service is silent, a ticket when an instance is lost that no new one replaced."""
SILENT_S = 300
"""A service of which no instance was heard for this long is silent; an instance alone is lost."""
LOST_S = 3600
"""An instance that fell silent is spoken of this long; then the fleet is what it is."""
FORGOTTEN_S = 3 * 86400
"""A service that was taken away is forgotten after this long."""

BUDGET_EXHAUSTED = "LLMBudgetExhausted"
BUDGET_POLICY = "LLMBudgetPolicy"
"""A step of an objective's `policy` is due: told as the step says, of all models together."""
STEP_LABEL = "policy_step"
"""The label of that alert that says which step, by the budget left: `50%`."""

EMPTY_REPLIES = "LLMEmptyReplies"
CLIENT_ERROR_SURGE = "LLMClientErrorSurge"
ABANDONMENT = "LLMAbandonment"
STREAM_ERRORS = "LLMStreamErrors"
SHARE_LONG_S, SHARE_SHORT_S = 900, 300
"""A share of the requests must be reached over both windows: the long one knows, the short one ends it."""
SHARE_MIN_EVENTS, SHARE_MIN_MINUTES = 20, 3
"""Over the long window, and in so many different minutes of it: one client's retry storm is no surge."""
PAGE_FROM = Decimal("0.9")
"""Share of all traffic from which what is a ticket is a page."""

KV_PRESSURE = "LLMKVCachePressure"
KV_WINDOW_S = 600
KV_FULL = Decimal("0.9")
"""The 95th percentile of an instance's occupancy over the window is above this,"""
KV_PREEMPTIONS = 3
"""and so many sequences were thrown out in it. A full cache that preempts nobody is well used, and no trouble."""

QUEUE_GROWING = "LLMQueueGrowing"
QUEUE_WINDOW_S = 600
QUEUE_WAITING = 5
"""An instance's queue holds this many, has grown over the window, and the tightest TTFT threshold of the service does
not hold: at the rate at which requests end the queue takes longer to drain, or the oldest request has waited longer."""

SYNTHETIC_LOOK_S = 120
SYNTHETIC_MOST = Decimal("0.5")
"""An engine's gauges do not say whose requests fill it. Where at any moment of an alert's window more than this share
of the requests that ended at the instance within the last `SYNTHETIC_LOOK_S` were synthetic, its saturation is the
doing of whoever measures it, and no ticket. A ticket on saturation waits at least that long: the first of these
requests must have ended before they can be told from others."""

ABOVE_CERTIFIED = "LLMAboveCertifiedCapacity"
CERTIFIED_WINDOW_S = 600
NO_LOAD = ("client_error", "quota")
"""More requests end than the service was certified for (`firsttoken capacity certify`), all but the synthetic ones and
those of these outcomes, which are refused before anything is computed for them."""

GPU_THROTTLED = "LLMGPUThrottled"
THROTTLE_WINDOW_S = 600
THROTTLE_SHARE = Decimal("0.1")
THROTTLE_REASONS = ("hw_slowdown", "hw_thermal", "hw_power_brake", "sw_thermal")
"""A GPU's clocks were held back for such a reason for more than this share of the window. A power cap of the software
is how GPUs are run, and no fault."""

GPU_FAULTY = "LLMGPUFaulty"
GPU_ERROR_WINDOW_S = 900
GPU_ERROR_TYPES = ("xid", "uncorrected")
LOST_GPU = "LLMGPULost"
APPLICATION_XIDS = (13, 31, 43, 45, 68, 109)
"""Of a program's own making, and no fault of the GPU, as NVIDIA's device plugin for Kubernetes has it."""

DRIFT = "LLMLatencyDrift"

COLLECTOR_DOWN = "LLMCollectorDown"
"""No collector of a scrape job was heard for `SILENT_S`, or none has evaluated for as long."""
RULES_FAILING = "LLMRulesFailing"
RULES_WINDOW_S = 900
WATCHDOG = "LLMWatchdog"
"""Fires always. Who hears it no more knows that nobody would hear of anything else either."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One alert: how long its state must stand before it fires, and how long it outlives the state."""

    name: str
    notify: Notify
    for_s: int = 0
    keep_s: int = 0

    @property
    def severity(self) -> Severity:
        return severity(self.notify)


@dataclass(frozen=True, slots=True)
class Share:
    """What an alert on a share of a service's requests counts, of which outcome (None: all), and from where on it is a
    ticket. `words` follow "N % of the requests"."""

    name: str
    metric: Metric
    outcome: str | None
    ticket_from: Decimal
    words: str
    may_page: bool = True


TROUBLES = {
    trouble.name: trouble
    for trouble in (
        Trouble(ENGINE_STALLED, "page", keep_s=60),
        Trouble(TELEMETRY_ABSENT, "page", for_s=60),
        Trouble(BUDGET_EXHAUSTED, "ticket"),
        Trouble(BUDGET_POLICY, "ticket"),
        Trouble(EMPTY_REPLIES, "ticket"),
        Trouble(CLIENT_ERROR_SURGE, "ticket"),
        Trouble(ABANDONMENT, "ticket"),
        Trouble(STREAM_ERRORS, "ticket"),
        Trouble(KV_PRESSURE, "ticket", for_s=SYNTHETIC_LOOK_S),
        Trouble(QUEUE_GROWING, "ticket", for_s=300, keep_s=300),
        Trouble(ABOVE_CERTIFIED, "ticket", for_s=300, keep_s=300),
        Trouble(GPU_THROTTLED, "ticket", for_s=300),
        Trouble(GPU_FAULTY, "ticket"),
        Trouble(LOST_GPU, "page", for_s=60),
        Trouble(DRIFT, "ticket"),
        Trouble(COLLECTOR_DOWN, "ticket", for_s=60),
        Trouble(RULES_FAILING, "ticket"),
        Trouble(WATCHDOG, "none"),
    )
}

SHARES = (
    Share(EMPTY_REPLIES, REQUESTS, "no_output", Decimal("0.05"), "ended well without one token"),
    Share(CLIENT_ERROR_SURGE, REQUESTS, "client_error", Decimal("0.2"), "were answered as the client's fault (4xx)"),
    Share(ABANDONMENT, ABANDONED, None, Decimal("0.2"), "were left by their client before any token"),
    Share(STREAM_ERRORS, BROKEN_STREAMS, None, Decimal("0.02"), "broke off as a stream that had begun", may_page=False),
)
