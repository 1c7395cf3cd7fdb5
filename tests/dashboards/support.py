"""Dashboards made from small specs, and what Grafana does with them before it asks: variables and macros filled in."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dashboards.boards.catalogue import PLANS, source_of
from dashboards.boards.plan import Given, drawn
from dashboards.cli import dashboards
from dashboards.grafana.board import text_of
from dashboards.model import DATASOURCES
from slo.capacity_result import CapacityResult
from slo.objective import Spec, parse

Found = dict[str, Any]
ALL = "$__all"
STRANGE_MODELS = ("org/model-7b", "C:\\m", "a.b+c", "/models/h70b/", "it's (new)")
"""Names that a server may really give its models (case F02), and one with a quote."""

CHAT = """
service: chat
objectives:
  - {name: ttft, signal: ttft, percentile: 95, threshold: 500ms, window: 28d}
  - {name: tpot, signal: tpot, percentile: 99, threshold: 50ms}
  - {name: whole, signal: e2e, percentile: 90, threshold: 20s, window: 7d}
  - {name: answered, signal: availability, target: 99.9%}
  - {name: kv-headroom, signal: kv_occupancy, threshold: 90%, target: 99%}
  - {name: short-queue, signal: queue, threshold: 10, target: 95%}
"""


def specs(text: str = CHAT) -> tuple[Spec, ...]:
    return parse(text)


def many(count: int) -> tuple[Spec, ...]:
    """`count` services whose thresholds and targets all differ a little."""
    texts = (
        CHAT.replace("service: chat", f"service: chat-{n}\nenvironment: e{n % 2}")
        .replace("500ms", f"{400 + 50 * n}ms")
        .replace("percentile: 95", f"percentile: {(90, 95, 99)[n % 3]}")
        for n in range(count)
    )
    return parse("\n---".join(texts))


def everything(
    datasource: str = "prometheus",
    of: tuple[Spec, ...] | None = None,
    *,
    results: tuple[CapacityResult, ...] = (),
    scrape_interval_s: int = 60,
) -> dict[str, Found]:
    """Every dashboard by its name, as Grafana reads it from the file."""
    given = Given(of or specs(), results)
    texts = dashboards(given, DATASOURCES[datasource], scrape_interval_s=scrape_interval_s)
    suffix = "" if datasource == "prometheus" else f"-{datasource}"
    return {name.removesuffix(f"{suffix}.json"): json.loads(text) for name, text in texts.items()}


def built(
    datasource: str = "prometheus",
    of: tuple[Spec, ...] | None = None,
    *,
    name: str = "slo-overview",
    results: tuple[CapacityResult, ...] = (),
    scrape_interval_s: int = 60,
) -> Found:
    """One dashboard as Grafana reads it from the file."""
    (plan,) = (plan for plan in PLANS if plan.name == name)
    given, kind = Given(of or specs(), results), DATASOURCES[datasource]
    found: Found = json.loads(text_of(drawn(plan, source_of(plan, given, kind), given, min_step_s=scrape_interval_s)))
    return found


def panels(found: Found) -> Iterator[Found]:
    """Every panel, those inside closed rows too."""
    for panel in found["panels"]:
        yield panel
        yield from panel.get("panels", [])


def figures(found: Found) -> Iterator[Found]:
    """Every panel that asks a datasource."""
    return (panel for panel in panels(found) if panel["type"] not in ("row", "text"))


def panel(found: Found, title: str) -> Found:
    (one,) = (panel for panel in panels(found) if panel["title"] == title)
    return one


def query_of(target: Found) -> str:
    """The text of a target in whatever language."""
    for key in ("expr", "rawSql", "queryText"):
        if key in target:
            return str(target[key])
    raise AssertionError(f"no query in {target}")


def promql(text: str, found: Found, chosen: Mapping[str, Sequence[str]] | None = None, *, interval: str = "4m") -> str:
    """An expression as Grafana's Prometheus data source sends it: All is the variable's own `allValue`, one value is
    escaped for a regular expression inside a PromQL string, several stand in brackets."""

    def escaped(value: str) -> str:
        doubled = value.replace("\\", "\\\\\\\\")
        return re.sub(r"[$^*{}\[\]+?.()|]", lambda match: f"\\\\{match[0]}", doubled).replace("'", "\\\\'")

    for variable in found["templating"]["list"]:
        values = (chosen or {}).get(variable["name"], [ALL])
        if variable["type"] != "query":
            continue
        one = [escaped(value) for value in values]
        shown = variable["allValue"] if list(values) == [ALL] else one[0] if len(one) == 1 else f"({'|'.join(one)})"
        text = re.sub(rf"\$(?:{variable['name']}\b|\{{{variable['name']}\}})", lambda _, shown=shown: shown, text)  # type: ignore[misc]
    return text.replace("$__rate_interval", interval).replace("$__interval", "2s").replace("$__range", "10m")


def sql(text: str, found: Found, *, start_s: int, end_s: int, chosen: Mapping[str, Sequence[str]] | None = None) -> str:
    """A query as the SQL data sources send it."""
    for variable in found["templating"]["list"]:
        if variable["type"] != "query":
            continue
        values = (chosen or {}).get(variable["name"], [ALL])
        quoted = ",".join("'" + value.replace("'", "''") + "'" for value in values)
        shown = variable["allValue"] if list(values) == [ALL] else quoted
        text = text.replace(f"${{{variable['name']}:sqlstring}}", shown)
    text = re.sub(r"\$__unixEpochFilter\((\w+)\)", rf"\1 >= {start_s} AND \1 <= {end_s}", text)
    text = text.replace("$__interval_ms", "60000")
    return text.replace("$__from", str(start_s * 1000)).replace("$__to", str(end_s * 1000))
