"""An inference server: what it is, what its own metrics can back, and how people's names for them fare."""

from collections.abc import Iterator

from firsttoken.doctor.engine_facts import renames
from firsttoken.doctor.facts import Facts, Reach, ServerFacts, answering
from firsttoken.doctor.finding import Check, Finding
from firsttoken.doctor.page import reaches, sees_requests
from sidecar.polling.backing import Backing, backing
from slo.objective import STATE_SIGNALS, Objective
from slo.quantity import duration_text
from slo.signals import SIGNALS

BEYOND_SHARE = 0.01
"""From this share of values beyond the last edge on, a 99th percentile is not known."""
LEAST_VALUES = 20
_PROXY = "firsttoken sidecar --upstream URL"


def _unknown(facts: Facts) -> Iterator[Finding]:
    for one in answering(facts.servers):
        if not one.engine:
            yield Finding(
                "engine-unknown",
                "warning",
                "none of the usual places shows the metrics of an engine that firsttoken knows",
                f"server {one.url}",
                "switch them on (SGLang: --enable-metrics, llama.cpp: --metrics, TensorRT-LLM: return_perf_metrics); "
                f"a server without any is measured by the proxy alone: {_PROXY}",
            )


def _unbacked(facts: Facts) -> Iterator[Finding]:
    """What scraping alone could not do; where requests pass by a sidecar, it counts them itself."""
    if any(sees_requests(one.page) for one in facts.sidecars):
        return
    for server in facts.servers:
        for spec in facts.specs:
            for objective in spec.objectives:
                if server.sight is not None:
                    found = backing(objective, server.sight)
                    yield from _of_backing(server, f"{spec.service}/{objective.name}", objective, found)


def _of_backing(server: ServerFacts, name: str, objective: Objective, found: Backing) -> Iterator[Finding]:
    where = f"server {server.url}"
    if found.basis == "none":
        fix = f"let requests pass by the proxy, which sees them all: {_PROXY}, or use the middleware"
        if objective.signal in STATE_SIGNALS:
            fix = "switch the engine's metrics on (llama.cpp: --slots), or take the objective out of slo.yaml"
        yield Finding("sli-unbacked", "warning", f"objective {name} cannot be backed: {found.why}", where, fix)
    elif found.basis == "histogram":
        what = f"objective {name} would be estimated, not counted: {found.why}"
        fix = f"{_nearest(server, objective)}the proxy counts at any threshold: {_PROXY}"
        yield Finding("threshold-off-edge", "warning", what, where, fix)


def _nearest(server: ServerFacts, objective: Objective) -> str:
    """The edges beside a threshold, as something to choose."""
    edges = server.sight.edges_of(SIGNALS[objective.signal].metric, None) if server.sight is not None else None
    if not edges or objective.threshold is None:
        return ""
    wanted = float(objective.threshold)
    under = [edge for edge in edges if edge < wanted][-1:]
    over = [edge for edge in edges if edge > wanted][:1]
    texts = [duration_text(edge) for edge in (*under, *over)]
    return f"set the threshold to {' or '.join(texts)}; " if texts and wanted not in edges else ""


def _renamed(facts: Facts) -> Iterator[Finding]:
    for one in facts.servers:
        for rename in renames(one.engine, one.names):
            yield Finding(
                "metric-renamed",
                "note",
                f"{rename.old} is called {rename.new} since {one.engine} {rename.since}",
                f"server {one.url}",
                "dashboards and rules of your own must know both names; those of firsttoken need neither",
            )


def _full(facts: Facts) -> Iterator[Finding]:
    for server in facts.servers:
        for reach in server.reaches:
            fix = "give the engine wider buckets (vLLM: --custom-histogram-buckets), or measure by the proxy"
            yield from _of_reach(reach, f"server {server.url}", fix)
    for sidecar in facts.sidecars:
        for reach in reaches(sidecar.page):
            fix = "percentiles of these are known to the collector, which has no buckets; Prometheus alone knows less"
            yield from _of_reach(reach, f"sidecar {sidecar.url}", fix)


def _of_reach(reach: Reach, where: str, fix: str) -> Iterator[Finding]:
    if reach.count >= LEAST_VALUES and reach.beyond > BEYOND_SHARE * reach.count:
        edge = duration_text(reach.edge_s)
        of = f" of {reach.model}" if reach.model else ""
        what = (
            f"{reach.beyond} of {reach.count} values of {reach.signal}{of} lie above the last bucket edge, {edge}: "
            f"high percentiles stand at {edge}, however slow it is"
        )
        yield Finding("top-bucket-full", "warning", what, where, fix)


CHECKS = (
    Check(("engine-unknown",), "which engine it is, by its own metrics", _unknown),
    Check(
        ("sli-unbacked", "threshold-off-edge"),
        "objectives that the engine's own metrics cannot back, or only estimate",
        _unbacked,
    ),
    Check(("metric-renamed",), "metrics that another version of the engine calls otherwise", _renamed),
    Check(("top-bucket-full",), "latencies beyond the last edge of their histogram", _full),
)
