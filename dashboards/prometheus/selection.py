"""The variables of a dashboard as matchers of series.

Variables stand in regular expressions only, in Grafana's own escaping, so that any model name may be chosen; All is
`.*`, which also matches a label that is not there.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dashboards.subjects import subject
from slo.promql import INSTANCE_LABEL, OBJECTIVE_LABEL, SERVICE_KEY
from slo.signals import HW_ID, LABELS, MODEL_LABEL, SERVICE_LABEL, Metric

EVERYTHING = ".*"
GPU_LABEL = LABELS[HW_ID]
Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Selection:
    """Matchers of the variables that a dashboard has; of one that it lacks there is none."""

    variables: tuple[str, ...]

    def chosen(self, *labels: str) -> Labels:
        """The values chosen of each label."""
        return {f"{label}=~": f"${label}" for label in labels if label in self.variables}

    def chosen_if_any(self, *labels: str) -> Labels:
        """The values chosen of each label, and series that lack it."""
        return {f"{label}=~": f"(${label})?" for label in labels if label in self.variables}

    @property
    def of_service(self) -> Labels:
        return self.chosen(*SERVICE_KEY)

    @property
    def of_model(self) -> Labels:
        return self.chosen(*SERVICE_KEY, MODEL_LABEL)

    @property
    def of_objective(self) -> Labels:
        return self.chosen(*SERVICE_KEY, MODEL_LABEL, OBJECTIVE_LABEL)

    @property
    def of_promise(self) -> Labels:
        """What slo.yaml says holds in any environment, for any model."""
        return self.chosen(SERVICE_LABEL, OBJECTIVE_LABEL)

    @property
    def of_alert(self) -> Labels:
        """Alerts of a whole service have neither model nor objective: they stay whatever is chosen of these."""
        model = {f"{MODEL_LABEL}=~": f"(${MODEL_LABEL})?|[*]"} if MODEL_LABEL in self.variables else {}
        named = {"alertname=~": "LLM.+", f"{SERVICE_LABEL}!=": ""}
        return {**named, **self.of_service, **model, **self.chosen_if_any(OBJECTIVE_LABEL)}

    def of_metric(self, metric: Metric) -> Labels:
        """What the variables choose of a metric."""
        match subject(metric):
            case "collector":
                return {}
            case "gpu":
                return self.chosen(*SERVICE_KEY, INSTANCE_LABEL, GPU_LABEL)
            case "instance":
                return self.chosen(*SERVICE_KEY, INSTANCE_LABEL)
            case "engine":
                return {**self.chosen(*SERVICE_KEY, INSTANCE_LABEL), **self.chosen_if_any(MODEL_LABEL)}
            case "request":
                return self.chosen(*SERVICE_KEY, MODEL_LABEL, INSTANCE_LABEL)
