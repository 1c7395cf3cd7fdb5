"""What Grafana's server does for its page, as far as panels over Prometheus need it: macros and steps of a query, what
Prometheus answers as data frames, the names of series.

Pure: a query of the page in, what to ask Prometheus out; its answer in, frames out. The steps and macros are Grafana's
own, as its Prometheus data source has them (`$__rate_interval` spans four scrapes and never less than a step and one).
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slo.quantity import whole_seconds

DEFAULT_SCRAPE_S = 15.0
"""Grafana's guess where neither the query nor the data source says how often Prometheus scrapes."""
Frame = dict[str, Any]
Found = dict[str, Any]
WITHOUT_NUMBER = {"NaN": "NaN", "+Inf": "Inf", "-Inf": "NegInf"}
"""What JSON cannot say, as Prometheus writes it and as frames do."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query as Prometheus takes it; an instant one is of `end_s`."""

    ref: str
    expr: str
    legend: str
    start_s: float
    end_s: float
    step_s: float
    is_instant: bool

    def parameters(self) -> tuple[str, dict[str, str]]:
        """The path of Prometheus's API, and what to send to it."""
        if self.is_instant:
            return "query", {"query": self.expr, "time": str(self.end_s)}
        of_range = {"start": self.start_s, "end": self.end_s, "step": self.step_s}
        return "query_range", {"query": self.expr, **{key: str(value) for key, value in of_range.items()}}


def asked(query: Found, start_s: float, end_s: float, *, scrape_s: float = DEFAULT_SCRAPE_S) -> Asked:
    """A query of the page with its macros filled in; `scrape_s` is the data source's own scrape interval."""
    interval_s, own = query["intervalMs"] / 1000, query.get("interval") or ""
    least_s = float(whole_seconds(own)) if own else 0.0
    step_s = max(interval_s, least_s)
    macros = {
        "__rate_interval": f"{rate_interval_s(interval_s, least_s or scrape_s) * 1000:.0f}ms",
        "__interval_ms": f"{step_s * 1000:.0f}",
        "__interval": f"{step_s * 1000:.0f}ms",
        "__range_s": f"{end_s - start_s:.0f}",
        "__range": f"{end_s - start_s:.0f}s",
    }
    names = "|".join(macros)
    expr = re.sub(rf"\$(?:({names})\b|\{{({names})\}})", lambda found: macros[found[1] or found[2]], query["expr"])
    start_s, end_s = (math.floor(at_s / step_s) * step_s for at_s in (start_s, end_s))
    named, is_instant = query.get("legendFormat") or "", bool(query.get("instant"))
    return Asked(query["refId"], expr, named, start_s, end_s, step_s, is_instant)


def rate_interval_s(interval_s: float, scrape_s: float) -> float:
    """What `$__rate_interval` is where points are `interval_s` apart and Prometheus scrapes every `scrape_s`."""
    return max(interval_s + scrape_s, 4 * scrape_s)


def frames(of: Asked, found: Found) -> list[Frame]:
    """The data of Prometheus's answer, a frame a series; an empty one is there when there is none."""
    kind, result = found["resultType"], found["result"]
    if kind == "scalar":
        result = [{"metric": {}, "value": result}]
    made = [_frame(of, one["metric"], one["values"] if "values" in one else [one["value"]], kind) for one in result]
    made = made or [{"schema": {"refId": of.ref, "fields": [], "meta": {}}, "data": {"values": []}}]
    made[0]["schema"]["meta"]["executedQueryString"] = f"Expr: {of.expr}\nStep: {of.step_s:g}s"
    return made


def _frame(of: Asked, labels: Mapping[str, str], samples: Sequence[tuple[float, str]], kind: str) -> Frame:
    time = {
        "name": "Time",
        "type": "time",
        "typeInfo": {"frame": "time.Time"},
        "config": {"interval": of.step_s * 1000},
    }
    value = {
        "name": "Value", "type": "number", "typeInfo": {"frame": "float64"}, "labels": dict(labels),
        "config": {"displayNameFromDS": legend(of, labels)},
    }  # fmt: skip
    places = {
        word: [place for place, (_, text) in enumerate(samples) if text == written]
        for written, word in WITHOUT_NUMBER.items()
    }
    entities = {word: found for word, found in places.items() if found}
    numbers = [None if text in WITHOUT_NUMBER else float(text) for _, text in samples]
    meta: Found = {"type": "timeseries-multi", "custom": {"resultType": kind}}
    return {
        "schema": {"refId": of.ref, "name": legend(of, labels), "meta": meta, "fields": [time, value]},
        "data": {"values": [[at_s * 1000 for at_s, _ in samples], numbers], "entities": [None, entities or None]},
    }


def legend(of: Asked, labels: Mapping[str, str]) -> str:
    """The name of a series: its labels in the words of the query, or its own."""
    if of.legend:
        return re.sub(r"\{\{\s*(.+?)\s*\}\}", lambda found: labels.get(found[1], ""), of.legend)
    shown = ", ".join(f'{key}="{text}"' for key, text in sorted(labels.items()) if key != "__name__")
    name = labels.get("__name__", "")
    return f"{name}{{{shown}}}" if shown else name or of.expr
