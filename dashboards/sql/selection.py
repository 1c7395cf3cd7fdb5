"""The variables of a dashboard as conditions on rows.

All stands as `'*'` in a list of values: the model `*` where a table keeps the figure over all models, everything
elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dashboards.subjects import subject
from slo.promql import INSTANCE_LABEL, OBJECTIVE_LABEL
from slo.signals import (
    ALL_MODELS,
    ENVIRONMENT_LABEL,
    HW_ID,
    LABELS,
    MODEL_LABEL,
    SERVICE_LABEL,
    UNKNOWN_MODEL,
    Metric,
)

EVERYTHING = f"'{ALL_MODELS}'"
ALWAYS = "1 = 1"
GPU_LABEL = LABELS[HW_ID]
COLUMNS: Mapping[str, str] = {
    ENVIRONMENT_LABEL: "environment",
    SERVICE_LABEL: "service",
    MODEL_LABEL: "model",
    OBJECTIVE_LABEL: "objective",
    INSTANCE_LABEL: "instance",
}
"""The column that a variable of the dashboard chooses from."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Conditions of the variables that a dashboard has; of one that it lacks there is none."""

    variables: tuple[str, ...]

    def chosen(self, *labels: str) -> str:
        """The rows whose columns are among the values chosen, or all rows."""
        return self._all(*(self._of(COLUMNS[label], label) for label in labels if label in self.variables))

    @property
    def of_service(self) -> str:
        return self.chosen(ENVIRONMENT_LABEL, SERVICE_LABEL)

    @property
    def of_model(self) -> str:
        return self.chosen(ENVIRONMENT_LABEL, SERVICE_LABEL, MODEL_LABEL)

    @property
    def of_objective(self) -> str:
        """Without the model: figures of an objective are kept over all models too."""
        return self.chosen(ENVIRONMENT_LABEL, SERVICE_LABEL, OBJECTIVE_LABEL)

    @property
    def of_promise(self) -> str:
        """What slo.yaml says holds in any environment, for any model."""
        return self.chosen(SERVICE_LABEL, OBJECTIVE_LABEL)

    @property
    def together(self) -> str:
        """The figure of objectives over all models when All is chosen, else each chosen model's."""
        model = f"model IN ({self._values(MODEL_LABEL)})" if MODEL_LABEL in self.variables else f"model = {EVERYTHING}"
        return self._all(self.of_objective, model)

    @property
    def of_alert(self) -> str:
        """Alerts of a whole service have neither model nor objective: they stay whatever is chosen of these."""
        model = f"(model IN ('', {EVERYTHING}) OR {self.chosen(MODEL_LABEL)})"
        return self._all(self.of_service, model, f"(objective = '' OR {self.chosen(OBJECTIVE_LABEL)})")

    def of_metric(self, metric: Metric, gpu: str = "attribute") -> str:
        """What the variables choose of a gauge or counter; `gpu` is what gives the GPU of a row."""
        instance = self.chosen(INSTANCE_LABEL)
        match subject(metric):
            case "collector":
                return ALWAYS
            case "gpu":
                chosen = (self._of(gpu, GPU_LABEL),) if GPU_LABEL in self.variables else ()
                return self._all(self.of_service, instance, *chosen)
            case "instance":
                return self._all(self.of_service, instance)
            case "engine":
                model = f"({self.chosen(MODEL_LABEL)} OR model = '{UNKNOWN_MODEL}')"
                return self._all(self.of_service, model, instance)
            case "request":
                return self._all(self.of_model, instance)

    def _of(self, column: str, label: str) -> str:
        return f"({EVERYTHING} IN ({self._values(label)}) OR {column} IN ({self._values(label)}))"

    def _values(self, label: str) -> str:
        return f"${{{label}:sqlstring}}"

    def _all(self, *conditions: str) -> str:
        return " AND ".join(condition for condition in conditions if condition != ALWAYS) or ALWAYS
