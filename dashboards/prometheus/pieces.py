"""What several expressions share: rates, series of a metric, legends. Pure text.

`$__rate_interval` is the only window that is not a record's own.
"""

from collections.abc import Sequence
from functools import partial

from dashboards.model import PROMETHEUS, Query
from dashboards.prometheus.selection import Labels
from slo.promql import by, selector
from slo.signals import Metric

RATE_INTERVAL = "$__rate_interval"
ask = partial(Query, PROMETHEUS)


def series(metric: Metric | str, labels: Labels) -> str:
    """The series of a metric or record that the labels select."""
    name = metric if isinstance(metric, str) else metric.prometheus
    return name + (selector(labels) if labels else "")


def rate(text: str, *, offset: str = "") -> str:
    """Increase per second of a counter's series."""
    return f"rate({text}[{RATE_INTERVAL}]{f' offset {offset}' if offset else ''})"


def folded(fold: str, labels: Sequence[str], text: str) -> str:
    """One series for each value of the labels."""
    return f"{fold} {by(tuple(labels))} ({text})"


def legend(labels: Sequence[str], name: str = "") -> str:
    """The labels' values, and what comes after them."""
    return " ".join([*(f"{{{{{label}}}}}" for label in labels), *([name] if name else [])])
