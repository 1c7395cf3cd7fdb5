"""Rules of what panels show: words, units, bounds, what no data looks like, and over which time rates are taken."""

import re
from collections.abc import Iterator

from dashboards.check.reading import at, figures, objects, pairs, queries, title
from dashboards.model import SHARE, TOKENS_A_SECOND, Json, JsonObject
from slo.signals import COLLECTOR_METRICS, GPU_METRICS, SIDECAR_METRICS, WIRE_METRICS

NAME = re.compile(r"\b(?:firsttoken:[a-z_]+:\w+|(?:firsttoken|gen_ai|hw_gpu)_\w+|ALERTS\w*|DCGM_FI_\w+|prometheus_\w+)")
SERIES = re.compile(r"_(?:bucket|count|sum)$")
READ = re.compile(r"\b(?:FROM|JOIN) ([a-z_]+)\b(?!\s*\()")
RATE = re.compile(r"(?:rate|irate|increase|delta)\([^\[]*\[([^\]]+)\]")
STEP = re.compile(r"[1-9][0-9]*s")
LEAST_DESCRIPTION = 20
METRICS = (*WIRE_METRICS, *GPU_METRICS, *SIDECAR_METRICS, *COLLECTOR_METRICS)
BY_TEXT = {name: metric for metric in METRICS for name in (metric.prometheus, metric.sql)}
UNITS = {"s": "s", "By": "bytes", "W": "watt", "Cel": "celsius"}
RATE_UNITS = {"{event}": "eps", "{request}": "reqps", "J": "watt", "{token}": TOKENS_A_SECOND}
"""Of a counter's increase per second, where the unit follows from the metric's."""
NO_TRAFFIC: JsonObject = {"match": "nan", "result": {"text": "No traffic", "color": "text", "index": 0}}


def described(found: JsonObject) -> Iterator[str]:
    for one in figures(found):
        description = str(one.get("description", ""))
        for text in queries(one):
            names = {SERIES.sub("", name) for name in NAME.findall(text)} or set(READ.findall(text)) - {"seen"}
            yield from (f"{title(one)} does not name {name}" for name in sorted(names) if name not in description)
        if len(description) < LEAST_DESCRIPTION:
            yield f"{title(one)} says nothing"


def ref_ids(found: JsonObject) -> Iterator[str]:
    for one in figures(found):
        refs = [str(target.get("refId", "")) for target in objects(one, "targets")]
        if not refs or len(set(refs)) < len(refs) or "" in refs:
            yield f"{title(one)}: {refs}"


def units(found: JsonObject) -> Iterator[str]:
    yield from (title(one) for one in figures(found) if not _default(one, "unit"))


def true_units(found: JsonObject) -> Iterator[str]:
    """F03: seconds are shown as seconds and shares as shares, unless the query makes something else of them."""
    for one in figures(found):
        wanted = {unit for text in queries(one, with_limits=False) if (unit := _unit_of(text))}
        if one.get("type") == "timeseries" and wanted and _default(one, "unit") not in wanted:
            yield f"{title(one)}: {_default(one, 'unit')}, not {' or '.join(sorted(wanted))}"


def _unit_of(text: str) -> str:
    """The unit that follows from the sole metric a query reads; '' when it makes another quantity of it."""
    known = {metric.name: metric for name, metric in BY_TEXT.items() if re.search(rf"(?<![\w]){name}(?![\w])", text)}
    if "histogram_quantile(" in text or re.search(r"\b(?:FROM) percentile\b.*signal", text, re.DOTALL):
        return "s" if "rel_error" not in text else ""
    if len(known) != 1 or "FROM counter" in text or re.search(r"\) ?/|\n/ |time\(\)|_(?:sum|count)\{|1 - ", text):
        return ""
    (metric,) = known.values()
    if metric.kind == "counter":
        return RATE_UNITS.get(metric.unit, "")
    is_share = metric.unit == "1" and metric.kind == "gauge"
    return SHARE if is_share else UNITS.get(metric.unit, "") if metric.kind == "gauge" else ""


def no_values(found: JsonObject) -> Iterator[str]:
    yield from (title(one) for one in figures(found) if not _default(one, "noValue"))


def bounds(found: JsonObject) -> Iterator[str]:
    for one in figures(found):
        has_soft = at(one, "fieldConfig", "defaults", "custom", "axisSoftMin") is not None
        if _default(one, "min") is None and not has_soft and "budget" not in str(one.get("description")):
            yield title(one)


def nan(found: JsonObject) -> Iterator[str]:
    wanted: JsonObject = {"type": "special", "options": NO_TRAFFIC}
    yield from (
        title(one) for one in figures(found) if wanted not in objects(one, "fieldConfig", "defaults", "mappings")
    )


def rates(found: JsonObject) -> Iterator[str]:
    for one in figures(found):
        windows = (window for text in queries(one) for window in RATE.findall(text))
        yield from (f"{title(one)}: {window}" for window in windows if window != "$__rate_interval")


def min_step(found: JsonObject) -> Iterator[str]:
    """F04: with a step of the scrape interval, `$__rate_interval` is four of them; of a query the step is its own."""
    for one in figures(found):
        rates = (target for target in objects(one, "targets") if "$__rate_interval" in str(target.get("expr")))
        for of in (one, *rates):
            if not STEP.fullmatch(str(of.get("interval", ""))):
                yield f"{title(one)}: {of.get('interval')}"


def steps(found: JsonObject) -> Iterator[str]:
    for path, value in pairs(found):
        if path.endswith("/steps") and isinstance(value, list):
            starts = [start for step in value if isinstance(start := at(step, "value"), int | float)]
            if starts != sorted(starts) or not starts:
                yield f"{path}: {starts}"


def _default(one: JsonObject, key: str) -> Json:
    return at(one, "fieldConfig", "defaults", key)
