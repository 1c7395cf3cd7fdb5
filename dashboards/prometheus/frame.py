"""Variables, marks and limits of the dashboards over Prometheus."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from dashboards.model import Marks, Query, Variable
from dashboards.prometheus.dcgm import HOST_LABEL, TEMPERATURE
from dashboards.prometheus.pieces import ask, legend, series
from dashboards.prometheus.selection import EVERYTHING, GPU_LABEL, Labels, Selection
from dashboards.promise import Limit
from dashboards.questions import Events
from slo import promql
from slo.promql import INSTANCE_LABEL, OBJECTIVE_LABEL, SERVICE_KEY, TIER_LABEL, number, selector
from slo.signals import (
    ENVIRONMENT_LABEL,
    GPU_MEMORY_LIMIT,
    HEARTBEAT,
    LABELS,
    LATENCY_DRIFT,
    MODEL_LABEL,
    REQUESTS,
    SERVICE_LABEL,
    SIGNAL,
    SLO_EVENTS,
    SPEC_INFO,
)

STARTED_S = 120
"""For so long a start is marked: a mark needs a sample at one of its steps of a minute."""
CHANGED = "5m"


@dataclass(frozen=True, slots=True)
class PrometheusFrame:
    """What stands around the panels of the dashboard that has the variables of `selection`."""

    selection: Selection

    def variables(self) -> tuple[Variable, ...]:
        of = self.selection
        environment = {key: value for key, value in of.of_service.items() if key.startswith(ENVIRONMENT_LABEL)}
        known = (
            _variable(ENVIRONMENT_LABEL, "Environment", HEARTBEAT.prometheus, {}),
            _variable(SERVICE_LABEL, "Service", HEARTBEAT.prometheus, environment),
            _variable(MODEL_LABEL, "Model", REQUESTS.prometheus, of.of_service),
            _variable(OBJECTIVE_LABEL, "Objective", SLO_EVENTS.prometheus, of.of_service),
            _variable(INSTANCE_LABEL, "Instance", HEARTBEAT.prometheus, of.of_service),
            _variable(GPU_LABEL, "GPU", GPU_MEMORY_LIMIT.prometheus, of.of_service),
            _variable(HOST_LABEL, "Host (dcgm-exporter)", TEMPERATURE, {}),
        )
        return tuple(variable for variable in known if variable.name in of.variables)

    def marks(self, *events: Events) -> tuple[Marks, ...]:
        return tuple({"alerts": self._alerts, "drift": self._drift, "starts": self._starts,
                      "contracts": self._contracts}[event]() for event in events)  # fmt: skip

    def _alerts(self) -> Marks:
        firing = series(promql.ALERTS, {"alertstate": "firing", **self.selection.of_alert})
        text = legend((SERVICE_LABEL, OBJECTIVE_LABEL, MODEL_LABEL))
        return Marks("Firing alerts", firing, "red", "{{alertname}}", text, f"severity,{TIER_LABEL}")

    def _drift(self) -> Marks:
        shifted = series(LATENCY_DRIFT, self.selection.of_model)
        return Marks(
            "Drift",
            shifted,
            "orange",
            "Latency has shifted",
            legend((SERVICE_LABEL, MODEL_LABEL, LABELS[SIGNAL])),
            "kind",
        )

    def _starts(self) -> Marks:
        young = f"{series(HEARTBEAT, self.selection.of_metric(HEARTBEAT))} < {STARTED_S}"
        return Marks("Starts", young, "blue", "Sidecar started", legend((SERVICE_LABEL, INSTANCE_LABEL)))

    def _contracts(self) -> Marks:
        now = series(SPEC_INFO, self.selection.of_service)
        text = f"group by ({', '.join((*SERVICE_KEY, 'hash'))}) ({now})"
        before = f"group by ({', '.join((*SERVICE_KEY, 'hash'))}) ({now} offset {CHANGED})"
        return Marks("Contract changed", f"{text}\nunless {before}", "purple", "slo.yaml changed",
                     legend((SERVICE_LABEL, "hash")))  # fmt: skip

    def limits(self, limits: Sequence[Limit]) -> Query:
        by_line: dict[tuple[Decimal, str], list[Limit]] = {}
        for limit in limits:
            by_line.setdefault((limit.value, limit.text), []).append(limit)
        lines = (self._line(value, text, found) for (value, text), found in sorted(by_line.items()))
        return ask("\nor\n".join(lines), (promql.OBJECTIVE_TARGET,), ref="limit", legend="{{limit}}", look="limit")

    def _line(self, value: Decimal, text: str, limits: Sequence[Limit]) -> str:
        """A constant that is there while one of the objectives that set it is chosen."""
        by_service: dict[str, list[str]] = {}
        for limit in limits:
            by_service.setdefault(limit.service, []).append(limit.objective.replace(".", r"\."))
        set_by = (_set_by(service, objectives) for service, objectives in by_service.items())
        chosen = " or ".join(f"{promql.OBJECTIVE_TARGET}{_both(self.selection.of_promise, own)}" for own in set_by)
        return f'label_replace({number(value)} * group ({chosen}), "limit", {promql.quoted(text)}, "", "")'


def _set_by(service: str, objectives: Sequence[str]) -> Labels:
    """The objectives of a service that set a limit; '' is the service's own."""
    named = {} if "" in objectives else {f"{OBJECTIVE_LABEL}=~": "|".join(objectives)}
    return {SERVICE_LABEL: service, **named}


def _both(chosen: Labels, own: Labels) -> str:
    """A selector by two sets of matchers, which may name the same label."""
    return f"{selector(chosen)[:-1]},{selector(own)[1:]}"


def _variable(label: str, title: str, metric: str, labels: Labels) -> Variable:
    return Variable(label, title, f"label_values({series(metric, labels)}, {label})", EVERYTHING,
                    f"Label {label} of {metric}.")  # fmt: skip
