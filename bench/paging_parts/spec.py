"""The contract of a service that is watched: four objectives over three models, each with a page and a ticket.

The period is four weeks, as in production; only the windows of the tiers are shorter. As with the default tiers a
ticket begins to burn after its page, and its short window is the longer one: it burns on when the page is over. A
ticket that is told all the same is one that nothing held back.
"""

from dataclasses import dataclass
from decimal import Decimal

from firsttoken.demo_plan import MODEL

SERVICE = "chat"
MODELS = (MODEL, "demo-llama-large", "demo-llama-code")
PERIOD_S = 28 * 86400
FACTOR = 5
"""Of both tiers. In a short window of few events a lower one would outlive the page by chance."""

TTFT_S = 5
"""This threshold and the others lie far above what a healthy server takes, so that a busy machine is no incident."""
STREAMS = 15
"""More than there are at any moment: the few that break off at the begin of a hang would be nothing in a day's traffic,
but are much in minutes of it."""

COARSE_YAML = f"""\
service: {SERVICE}
objectives:
  - {{name: ttft, signal: ttft, percentile: 75, threshold: 1s}}
  - {{name: answered, signal: availability, target: 80%}}
"""
"""What minutes are enough to certify."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Long and short ones, of the page and of the ticket, in seconds."""

    page: tuple[int, int]
    ticket: tuple[int, int]


SHORTEST = Windows((60, 30), (120, 45))
MINUTES = Windows((600, 60), (1800, 90))
"""From ten minutes on, the bad events of a tier must lie in two different minutes."""


def slo_yaml(windows: Windows, *, elastic: bool = False) -> str:
    """The contract as it is authored."""
    both = f"{_tier('fast', windows.page, 'page')}, {_tier('slow', windows.ticket, 'ticket')}"
    alerts, of_many = (f"alerts: {{{least}tiers: [{both}]}}" for least in ("", f"min_bad_events: {STREAMS}, "))
    return f"""\
service: {SERVICE}
elastic: {str(elastic).lower()}
objectives:
  - {{name: ttft, signal: ttft, percentile: 95, threshold: {TTFT_S}s, {alerts}}}
  - {{name: tpot, signal: tpot, percentile: 95, threshold: 600ms, {of_many}}}
  - {{name: e2e, signal: e2e, percentile: 95, threshold: 15s, {alerts}}}
  - {{name: answered, signal: availability, target: 97%, patience: 15s, {alerts}}}
"""


def _tier(name: str, windows: tuple[int, int], notify: str) -> str:
    """A tier: its share of the period's budget is what the factor spends within the long window."""
    long_s, short_s = windows
    budget = Decimal(FACTOR * long_s * 100) / PERIOD_S
    return f"{{name: {name}, budget: {budget:.6f}%, long: {long_s}s, short: {short_s}s, notify: {notify}}}"
